"""kb_context as a service: whole elements, cited, within a budget."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.indexed_project import Project

from local_vector_search_mcp.embeddings.provider import DisabledProvider
from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.search.search import SearchSettings
from local_vector_search_mcp.services.context import ContextResult, ContextService
from local_vector_search_mcp.services.searching import SearchingService, SearchingSettings

_LONG = "".join(f"Line {number} of the endless saga of the walrus.\n" for number in range(400))
NOTES = {
    "moon.md": (
        "# Moon\n\nFirst words.\n\nThe rocket flies to the moon.\n\nThen it lands.\n\n"
        "## Crew\n\n- Ada steers\n  - Bob helps her steer the rocket\n- Cleo cooks\n\nThe end.\n"
    ),
    "table.md": "# Prices\n\n| part | price |\n| --- | ---: |\n| rocket | 3 |\n\nAll in euro.\n",
    "long.md": f"# Saga\n\n{_LONG}",
    "empty.md": "",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("context")
    made = _project(folder)
    yield made
    made.indexer.stop()


def _project(folder: Path) -> Project:
    made = Project(folder / "notes", folder / "store")
    for path, text in NOTES.items():
        made.put(path, text)
    return made.start()


def context(project: Project, query: str, **arguments: Any) -> ContextResult:
    """A pack, checked for what holds of every pack."""
    searching = SearchingService(project.corpora(), DisabledProvider(), SearchingSettings(ranking=SearchSettings()))
    result = ContextService(searching).context(query=query, **arguments)
    assert result.tokens == math.ceil(len(result.text.encode()) / 4)
    assert result.tokens <= arguments.get("token_budget", 2_000)
    pointers = [citation.full_pointer for citation in result.citations]
    assert len(set(pointers)) == len(pointers)
    assert re.findall(r"(?m)^\[(\S+::\S+)\]", result.text) == pointers
    return result


def texts(result: ContextResult) -> list[str]:
    """The elements of a pack, without their citation lines."""
    pieces = re.split(r"(?m)^\[\S+::\S+\].*\n\n", result.text)
    return [piece.strip("\n") for piece in pieces[1:]]


def test_context__whole_elements_in_order(project: Project) -> None:
    """The hit stands between its neighbours, each element whole and cited."""
    result = context(project, "rocket flies", path_prefix="moon.md")
    assert texts(result)[:3] == ["First words.", "The rocket flies to the moon.", "Then it lands."]
    assert result.mode.value == "lexical"
    first = result.citations[0]
    assert (first.path, first.heading_path, first.lines) == ("moon.md", ("Moon",), (3, 3))
    assert result.omitted == ()


def test_context__elements_are_source(project: Project) -> None:
    """Every element of a pack is its exact source."""
    result = context(project, "rocket price crew", around=2)
    sources = {
        f"{path}::{element.pointer}": element.subtree_range.slice(document.source.data).decode()
        if element.kind == "list_item"
        else element.text
        for path in NOTES
        for document in [parse_bytes((project.root / path).read_bytes())]
        for element in document.elements
    }
    assert [sources[citation.full_pointer] for citation in result.citations] == texts(result)


@pytest.mark.parametrize(("around", "count"), [(0, 1), (1, 3), (2, 5), (10, 8)])
def test_context__around(project: Project, around: int, count: int) -> None:
    """Neighbours come on each side, as far as there are any."""
    assert len(context(project, '"rocket flies"', around=around).citations) == count


def test_context__nested_item_brings_its_item(project: Project) -> None:
    """A hit in a nested item is given with the item around it, and nothing twice."""
    result = context(project, '"Bob helps"', around=0)
    assert texts(result) == ["- Ada steers\n  - Bob helps her steer the rocket"]


def test_context__heading_brings_its_text(project: Project) -> None:
    """A heading is never alone."""
    result = context(project, "crew", around=0)
    assert texts(result)[0] == "## Crew"
    assert len(result.citations) == 2


def test_context__budget(project: Project) -> None:
    """However small the budget, it is kept, and what did not fit is named."""
    for budget in (100, 110, 130, 200, 400):
        context(project, "rocket moon", token_budget=budget, around=3)
    small = context(project, "rocket moon", token_budget=100, around=10)
    assert small.omitted
    assert all(one.bytes > 0 for one in small.omitted)
    cited = {citation.full_pointer for citation in small.citations}
    assert not cited & {one.full_pointer for one in small.omitted}


def test_context__best_hit_cut(project: Project) -> None:
    """A best hit that does not fit is cut at a line end, marked, with how to read on."""
    result = context(project, "walrus saga", token_budget=300)
    (citation,) = [one for one in result.citations if one.read_hint]
    hint = citation.read_hint
    assert hint is not None
    (body,) = [text for text in texts(result) if "cut" in text]
    shown, mark = body.rsplit("\n", 1)
    source = _LONG.rstrip("\n")
    assert source.startswith(shown + "\n")
    assert hint.offset == len(shown)
    assert str(hint.offset) in mark
    assert (hint.path, hint.pointer) == ("long.md", citation.pointer)
    assert result.tokens > 200


def test_context__nothing_found(project: Project) -> None:
    """Nothing found is an empty text, and the answer says what is missing."""
    result = context(project, "unicorn")
    assert (result.text, result.tokens, result.citations) == ("", 0, ())
    assert any("unicorn" in warning for warning in result.warnings)


def test_context__empty_document(project: Project) -> None:
    """A document without any element gives nothing to cite."""
    assert context(project, "empty").citations == ()


@pytest.mark.parametrize(
    "arguments",
    [{"token_budget": 99}, {"token_budget": 50_001}, {"around": -1}, {"around": 11}, {"query": " "}, {"mode": "x"}],
)
def test_context__refused(project: Project, arguments: dict[str, Any]) -> None:
    """Arguments out of bounds are refused."""
    with pytest.raises(InvalidArgument):
        context(project, **{"query": "moon", **arguments})


def test_context__changed_document(tmp_path: Path) -> None:
    """A passage that changed since it was indexed is left out with a warning; one that only moved is cited anew."""
    made = _project(tmp_path)
    made.put("table.md", "# Prices\n\nNow free.\n")
    made.put("moon.md", NOTES["moon.md"].replace("# Moon\n", "# Moon\n\nA new beginning.\n"))
    result = context(made, "rocket price flies", around=0)
    assert "table.md" not in {citation.path for citation in result.citations}
    assert any("table.md" in warning for warning in result.warnings)
    moved = next(one for one in result.citations if one.path == "moon.md")
    assert moved.pointer.startswith("1.p3~")
    made.indexer.stop()
