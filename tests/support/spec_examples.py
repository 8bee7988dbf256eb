"""The Markdown examples of the third-party test data, as texts."""

import json
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.support.shared_data import shared_root

_FILES = (
    "commonmark-0.31.2.json",
    "cmark-gfm-0.29.json",
    "cmark-gfm-extensions.json",
    "cmark-gfm-regression.json",
    "markdown-it-fixtures.json",
)


@cache
def spec_texts() -> list[str]:
    """Every example that UTF-8 can hold; skips the calling test where the data is absent."""
    texts: list[str] = []
    for name in _FILES:
        entries: list[dict[str, Any]] = json.loads((shared_root() / "data" / "spec" / name).read_text(encoding="utf-8"))
        for entry in entries:
            text = str(entry.get("markdown", entry.get("input", "")))
            texts.append(text.encode("utf-8", "ignore").decode())
    assert len(texts) > 1_000
    return texts


def tree_documents(archive: str) -> Iterator[tuple[str, bytes]]:
    """Every Markdown file of a packed tree with its name."""
    with tarfile.open(shared_root() / "data" / archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".md"):
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()
