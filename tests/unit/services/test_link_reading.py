"""LinkReader: which documents may hold links to files, and what a second look reads again."""

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.trees import write_tree
from tests.support.writing import note_reads

from local_vector_search_mcp.services.link_reading import LinkReader, Look
from local_vector_search_mcp.workspace.files import Workspace

_LATER_NS = 60_000_000_000

TREE = {
    "target.md": "---\naliases: [Nickname]\n---\n",
    "named.md": "[t](target.md)",
    "nicknamed.md": "[[nickname]]",
    "escaped.md": "[t](%74arget.md)",
    "other.md": "[o](zebra.md)",
    "image.png": "png",
}


class Reading:
    """A reader over a tree, with the paths that it has read."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        self.paths: list[str] = []
        self._workspace = Workspace(write_tree(root, dict(files)))
        note_reads(self._workspace, lambda path: self.paths.append(path.value))
        # A minute later no file has been written shortly before it is read.
        self._reader = LinkReader(self._workspace, now_ns=lambda: time.time_ns() + _LATER_NS)

    def look(self, names: Sequence[str], asked: Collection[str]) -> Look:
        self.paths.clear()
        return self._reader.look(names, asked=asked)


LOOKS: list[tuple[list[str], set[str], set[str]]] = [
    (["target.md"], {"target.md"}, {"target.md", "named.md", "nicknamed.md", "escaped.md"}),
    (["target.md"], set(), {"named.md", "escaped.md"}),
    (["image.png"], {"image.png"}, {"escaped.md"}),
    (["Zebra.md"], {"zebra.md"}, {"other.md", "escaped.md"}),
    # A name without a plain run of letters or digits can be written in many ways.
    (["\u2603.md"], set(), {"target.md", "named.md", "nicknamed.md", "escaped.md", "other.md"}),
]


@pytest.mark.parametrize(("names", "asked", "candidates"), LOOKS)
def test_look__candidates(tmp_path: Path, names: list[str], asked: set[str], candidates: set[str]) -> None:
    """Documents that spell a name or an alias of what is asked about, or spell letters as escapes."""
    look = Reading(tmp_path, TREE).look(names, asked)
    assert set(look.candidates) == candidates
    assert look.tree.documents == TREE.keys() - {"image.png"}
    assert look.tree.others == {"image.png"}
    assert look.tree.aliases == (("target.md", "nickname"),)


def test_look__again_reads_what_changed(tmp_path: Path) -> None:
    """A second look reads what is new or in another state, and answers as a first look would."""
    reading = Reading(tmp_path, TREE)
    first = reading.look(["target.md"], {"target.md"})
    assert sorted(reading.paths) == sorted(TREE.keys() - {"image.png"})
    again = reading.look(["target.md"], {"target.md"})
    assert (reading.paths, again) == ([], first)
    write_tree(tmp_path, {"other.md": "[t](target.md)", "new.md": "[[target]]"})
    (tmp_path / "named.md").unlink()
    look = reading.look(["target.md"], {"target.md"})
    assert sorted(reading.paths) == ["new.md", "other.md"]
    assert set(look.candidates) == {"target.md", "nicknamed.md", "escaped.md", "other.md", "new.md"}


def test_look__another_alias_is_looked_for_everywhere(tmp_path: Path) -> None:
    """Where a file is known by a new alias, documents that had no link to it are searched again."""
    reading = Reading(tmp_path, {**TREE, "late.md": "[[Zebra crossing]]"})
    assert "late.md" not in reading.look(["target.md"], {"target.md"}).candidates
    write_tree(tmp_path, {"target.md": "---\naliases: [Crossing]\n---\n"})
    look = reading.look(["target.md"], {"target.md"})
    assert "late.md" in look.candidates
    assert look.tree.aliases == (("target.md", "crossing"),)


def test_look__what_is_asked_about_later_is_a_candidate(tmp_path: Path) -> None:
    """A document that was found to hold nothing is one when it is itself asked about."""
    reading = Reading(tmp_path, TREE)
    assert "other.md" not in reading.look(["target.md"], {"target.md"}).candidates
    assert "other.md" in reading.look(["target.md"], {"target.md", "other.md"}).candidates


def test_look__what_cannot_be_read_is_named_and_tried_again(tmp_path: Path) -> None:
    """A document that is no text is named in the warnings of each look."""
    reading = Reading(tmp_path, TREE)
    (tmp_path / "named.md").write_bytes(b"\xff[t](target.md)")
    for _ in range(2):
        look = reading.look(["target.md"], {"target.md"})
        assert [warning.partition(" were not")[0] for warning in look.warnings] == ["Links in named.md"]
        assert "named.md" not in look.candidates
