"""Large trees of real Markdown for measurements: the documents of the data sets, copied until there are enough.

Where more different texts are needed than there are, they are mixed of ``sentences``.
"""

import os
import random
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.benchmarks.support import data_root

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n\n")
_ENGLISH: Final = ("rust-book", "digital-garden", "cranfield", "xquad-en")
_MADE_UP: Final = 20_000


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


def sentences() -> list[str]:
    """The sentences of all English documents in a fixed order; of made-up words where the data sets are absent."""
    found: list[str] = []
    for path, data in _documents():
        if path.startswith(_ENGLISH):
            # Nothing that would begin a heading, a list or a table at the start of a paragraph.
            found += (piece for piece in split_sentences(data.decode("utf-8", "replace")) if piece[0].isalnum())
    if found:
        return found
    dice = random.Random(7)
    words = [f"w{number:x}" for number in range(_MADE_UP)]
    return [" ".join(dice.choices(words, k=15)) + "." for _ in range(_MADE_UP)]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text that can stand on a line of their own anywhere; no very short or long ones."""
    found = (re.sub(r"\s+", " ", piece) for piece in _SENTENCE.split(text))
    return [piece for piece in found if 20 < len(piece) < 400 and "```" not in piece]


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


def bare_scan(folder: str) -> int:
    """What the system takes for a walk with the state of each file; how many files there are."""
    found = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found += bare_scan(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                found += 1
    return found
