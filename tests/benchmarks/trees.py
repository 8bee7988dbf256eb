"""Large trees of real Markdown for measurements: the documents of the data sets, copied until there are enough."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.support import data_root


def fill_tree(root: Path, files: int) -> int:
    """Write ``files`` documents below a folder, each copy a little different; the bytes of all."""
    documents = list(_documents())
    if not documents:
        raise FileNotFoundError("the data sets are absent; set LVS_TEST_DATA")
    size = 0
    for number in range(files):
        path, data = documents[number % len(documents)]
        copy = number // len(documents)
        target = root / f"copy{copy}" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if copy:
            data += f"\n\nCopy {copy} of this document.\n".encode()
        target.write_bytes(data)
        size += len(data)
    return size


def _documents() -> Iterator[tuple[str, bytes]]:
    root = data_root()
    archives = sorted(root.glob("corpora/*.tar.gz")) + sorted(root.glob("ir/*.tar.gz")) if root is not None else []
    for archive in archives:
        with tarfile.open(archive) as tar:
            for member in tar:
                if not member.isfile() or not member.name.endswith(".md"):
                    continue
                stream = tar.extractfile(member)
                if stream is not None:
                    yield f"{archive.name.partition('.')[0]}/{member.name.lstrip('./')}", stream.read()
