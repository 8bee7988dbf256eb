"""Soak: random edits of real trees through the services, each checked and undone.

``python tests/benchmarks/soak_edits.py [--edits 20000] [--seed 1] [--state FILE]``. Every operation kind meets every
element kind in turn. An accepted edit must keep its promise (``tests/support/random_edits.py``) and its undo must
restore the exact bytes, so that every edit starts from the same tree; with ``--state`` a run that was stopped goes on.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.benchmarks.support import data_root, unpacked  # noqa: E402
from tests.support.random_edits import (  # noqa: E402
    EXPECTED_REFUSALS,
    assert_promise,
    random_document,
    random_operation,
)
from tests.support.writing import Writing  # noqa: E402

from local_vector_search_mcp.editing.operations import KINDS, read_operations  # noqa: E402
from local_vector_search_mcp.editing.patcher import patch  # noqa: E402
from local_vector_search_mcp.errors import InvalidArgument, InvalidFrontmatter, KnowledgeBaseError  # noqa: E402
from local_vector_search_mcp.history.store import HistorySettings  # noqa: E402
from local_vector_search_mcp.markdown.elements import ElementKind, MarkdownDocument  # noqa: E402
from local_vector_search_mcp.markdown.parser import parse_bytes  # noqa: E402
from local_vector_search_mcp.markdown.tables import project_table  # noqa: E402

_TABLE, _FRONTMATTER, _SEVERAL = "edit_table", "edit_frontmatter", "several"
_VALUES = ("", "x", "a|b", "*x*", " y ", "a\\", "<br>", "- z", "a\nb", "[l](u)", "`c`", "日本")
_GENERATED = 300


class Tree:
    """A folder of documents, with what kinds of elements each holds."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.writing = Writing(
            folder / "root", folder / "history.db", settings=HistorySettings(max_bytes=4 * 1024 * 1024)
        )
        self.by_kind: dict[ElementKind, list[str]] = {}
        for path in sorted(self.writing.workspace.scan_documents().documents):
            try:
                document = parse_bytes((folder / "root" / path).read_bytes())
            except KnowledgeBaseError:
                continue
            for kind in {element.kind for element in document.elements}:
                self.by_kind.setdefault(kind, []).append(path)

    @cached_property
    def cells(self) -> list[tuple[str, ElementKind]]:
        """Every operation kind with every element kind that the tree has, mixed."""
        kinds = sorted(self.by_kind)
        cells = [(operation, kind) for operation in (*sorted(KINDS), _SEVERAL) for kind in kinds]
        # What a kind never takes is refused each time, which need not be seen as often as what it takes.
        cells += [cell for cell in cells if _takes(*cell)] * 4
        if ElementKind.TABLE in self.by_kind:
            cells += [(_TABLE, ElementKind.TABLE)] * 10
        cells += [(_FRONTMATTER, kinds[0])] * 10
        random.Random(len(cells)).shuffle(cells)
        return cells


def _takes(operation: str, kind: ElementKind) -> bool:
    if operation in ("replace_section", "delete_section", "append_to_section"):
        return kind is ElementKind.HEADING
    return operation != "replace_subtree" or kind is ElementKind.LIST_ITEM


def main() -> int:
    """Run the soak and print what was done; 1 where an edit broke its promise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--edits", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, help="where to note how far a run has come")
    options = parser.parse_args()
    first = json.loads(options.state.read_text())["next"] if options.state and options.state.exists() else 0
    accepted: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    started = time.monotonic()
    for number, tree in _edits(first, options.edits):
        rng = random.Random(options.seed * 1_000_003 + number)
        cell = tree.cells[(number // 7) % len(tree.cells)]
        try:
            done = _edit(tree, rng, *cell)
        except Exception:
            print(f"edit {number} (--seed {options.seed}) of {tree.name}, {cell[0]} on {cell[1]}:", file=sys.stderr)
            raise
        tried[cell[0]] += 1
        accepted[cell[0]] += done
        if options.state and number % 50 == 0:
            options.state.write_text(json.dumps({"next": number + 1}))
    for name in sorted(tried):
        print(f"{name:20} {accepted[name]:6,} of {tried[name]:6,} accepted")
    total = sum(tried.values())
    seconds = time.monotonic() - started
    print(f"{total:,} edits, {sum(accepted.values()):,} accepted, in {seconds:.0f} s; every promise kept")
    return 0


def _edits(first: int, last: int) -> Iterator[tuple[int, Tree]]:
    """The numbers of the edits with the trees that they are for, in turn."""
    root = data_root()
    archives = sorted(path.relative_to(root).as_posix() for path in root.glob("corpora/*.tar.gz")) if root else []
    with tempfile.TemporaryDirectory(prefix="lvs-soak-") as folder:
        trees = [_generated_tree(Path(folder) / "generated")]
        for archive in archives:
            with unpacked(archive) as source:
                assert source is not None
                place = Path(folder) / Path(archive).name.partition(".")[0]
                place.mkdir()
                source.rename(place / "root")
                source.mkdir()
                trees.append(Tree(place, place.name))
        for number in range(first, last):
            yield number, trees[number % len(trees)]
        for tree in trees:
            tree.writing.close()


def _generated_tree(folder: Path) -> Tree:
    (folder / "root").mkdir(parents=True)
    for number in range(_GENERATED):
        (folder / "root" / f"g{number}.md").write_bytes(random_document(random.Random(number)))
    return Tree(folder, folder.name)


def _edit(tree: Tree, rng: random.Random, kind: str, element_kind: ElementKind) -> bool:
    path = rng.choice(tree.by_kind[element_kind])
    before = (tree.writing.root / path).read_bytes()
    document = parse_bytes(before)
    change_id = _change(tree.writing, path, document, rng, kind, element_kind)
    if change_id is None:
        assert (tree.writing.root / path).read_bytes() == before, "a refused edit changed the file"
        return False
    tree.writing.undo.undo(change_id=change_id)
    assert (tree.writing.root / path).read_bytes() == before, "an undo did not restore the exact bytes"
    return True


def _change(
    writing: Writing, path: str, document: MarkdownDocument, rng: random.Random, kind: str, element_kind: ElementKind
) -> str | None:
    """The id of a change that was made and kept its promise; None where it was refused, or changed nothing."""
    try:
        if kind == _TABLE:
            return _table_change(writing, path, document, rng)
        if kind == _FRONTMATTER:
            return _frontmatter_change(writing, path, document, rng)
        return _patch_change(writing, path, document, rng, kind, element_kind)
    except EXPECTED_REFUSALS:
        return None


def _patch_change(
    writing: Writing, path: str, document: MarkdownDocument, rng: random.Random, kind: str, element_kind: ElementKind
) -> str | None:
    only = [element for element in document.elements if element.kind is element_kind]
    operations: Sequence[Mapping[str, object]]
    if kind == _SEVERAL:
        operations = [random_operation(rng, document) for _ in range(rng.randint(2, 5))]
    else:
        operation = random_operation(rng, document, kind, element=rng.choice(only))
        operations = [operation]
    result = writing.patching.patch(path=path, operations=operations)
    outcome = patch(document, read_operations(operations))
    assert (writing.root / path).read_bytes() == outcome.source
    assert_promise(document, operations, outcome)
    return result.change_id


def _table_change(writing: Writing, path: str, document: MarkdownDocument, rng: random.Random) -> str | None:
    table = rng.choice([element for element in document.elements if element.kind is ElementKind.TABLE])
    projection = project_table(document, table)
    value = rng.choice(_VALUES)
    rows, columns = len(projection.rows), len(projection.columns)
    row, column = rng.randrange(max(1, rows)), rng.randrange(columns)
    actions: list[tuple[str, dict[str, Any]]] = [
        ("update_cells", {"updates": [{"rowIndex": row, "columnIndex": column, "value": value}]}),
        ("insert_row", {"values": [value] * columns, "row_index": rng.randint(0, rows)}),
        ("delete_row", {"row_index": row}),
        ("insert_column", {"name": value, "default": value, "column_index": rng.randint(0, columns)}),
        ("delete_column", {"column_index": column}),
        ("rename_column", {"column_index": column, "name": value}),
        ("set_alignment", {"column_index": column, "alignment": rng.choice(["left", "center", "right", "none"])}),
        ("sort_rows", {"column_index": column, "numeric": rng.random() < 0.5}),
    ]
    action, arguments = rng.choice(actions)
    try:
        result = writing.tables.edit(path=path, pointer=table.pointer, action=action, **arguments)
    except (InvalidArgument, KnowledgeBaseError) as error:
        if error.code in ("TABLE_LOOKUP_FAILED", "UNSUPPORTED_EDIT", "INVALID_ARGUMENT"):
            return None
        raise
    after = parse_bytes((writing.root / path).read_bytes())
    assert len(after.elements) == len(document.elements)
    for old, new in zip(document.elements, after.elements, strict=True):
        assert old is table or old.index == table.index or (old.kind, old.own_bytes) == (new.kind, new.own_bytes)
    shown = project_table(after, after.elements[table.index])
    if action == "update_cells":
        assert shown.rows[row].cells[column] == value
    if action == "insert_row":
        assert len(shown.rows) == rows + 1
    return result.change_id


def _frontmatter_change(writing: Writing, path: str, document: MarkdownDocument, rng: random.Random) -> str | None:
    keys = list(document.metadata.values)
    new = {rng.choice([*keys, "new key", "tags"]): rng.choice([*_VALUES, 1, True, None, ["a", 2], {"k": "v"}])}
    gone = [key for key in keys if rng.random() < 0.2 and key not in new]
    try:
        result = writing.frontmatter.edit(path=path, set=new, unset=gone)
    except InvalidFrontmatter:
        return None
    after = parse_bytes((writing.root / path).read_bytes())
    expected = {key: value for key, value in {**document.metadata.values, **new}.items() if key not in gone}
    assert dict(after.metadata.values) == expected
    return result.change_id


if __name__ == "__main__":
    sys.exit(main())
