"""The case files of the Markdown model: what elements a document has, with kind, range, pointer and text."""

from pathlib import Path

import pytest
from tests.support.case_files import Case, read_cases, with_expected, write_cases

from local_vector_search_mcp.markdown.elements import Element, ElementKind
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.tables import project_table

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "markdown"
FILES = sorted(FOLDER.glob("*.txt"))


def dump(data: bytes) -> str:
    """A document's elements, one a line, with what depends on their kind below."""
    document = parse_bytes(data)
    lines: list[str] = []
    for element in document.elements:
        lines.append(_line(element))
        if element.kind is ElementKind.TABLE:
            table = project_table(document, element)
            lines.append("    " + " | ".join(f"{column.name!r} {column.alignment}" for column in table.columns))
            lines.extend(f"    {row.index}: {list(row.cells)}{_extra(row.extra_cells)}" for row in table.rows)
        elif element.kind is ElementKind.FRONTMATTER:
            lines.append(f"    {document.metadata.warning or document.metadata.as_json()}")
        elif element.kind is ElementKind.HEADING:
            lines.append(f"    level {element.level}, {' > '.join(element.heading_path)}")
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_case_file__elements_are_as_expected(file: Path, update_golden: bool) -> None:
    """Every case of the file has the elements that it says; one without an expectation fails."""
    cases = read_cases(file)
    found = [with_expected(case, dump(case.data)) for case in cases]
    if update_golden:
        write_cases(file, found)
    assert [_comparable(case) for case in cases] == [_comparable(case) for case in found]


def test_case_files__are_there() -> None:
    """The folder is not empty, so that the test above tests something."""
    assert sum(len(read_cases(file)) for file in FILES) >= 60


def _line(element: Element) -> str:
    first, last = element.lines
    ranges = " ".join(f"[{segment.start}, {segment.end})" for segment in element.segments)
    whole = (
        ""
        if element.section_end == element.end == element.segments[-1].end
        else f" of [{element.start}, {element.section_end})"
    )
    return f"{element.pointer} {element.kind} lines {first}-{last} {ranges}{whole} {element.text!r}"


def _extra(cells: tuple[str, ...]) -> str:
    return f" beyond the columns {list(cells)}" if cells else ""


def _comparable(case: Case) -> tuple[str, str | None]:
    return case.title, case.expected
