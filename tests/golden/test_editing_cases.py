"""Editing cases from ``fixtures/cases/editing``: title, input, operations, and the text or refusal expected."""

import json
import re
from pathlib import Path

import pytest
from tests.support.patching import Operation, check, patched

from local_vector_search_mcp.errors import KnowledgeBaseError

_FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "editing"
_REFUSED = re.compile(r"refused (?P<code>[A-Z_]+) (?P<reason>[a-z_]+): (?P<words>.+)")


def _cases() -> list[object]:
    found: list[object] = []
    for path in sorted(_FOLDER.glob("*.case")):
        for block in re.split(r"^=== ", path.read_bytes().decode(), flags=re.MULTILINE)[1:]:
            title, _, rest = block.partition("\n")
            parts = re.split(r"^--- (.+)\n?", rest, flags=re.MULTILINE)[1:]
            found.append(pytest.param(dict(zip(parts[::2], parts[1::2], strict=True)), id=f"{path.stem}: {title}"))
    return found


@pytest.mark.parametrize("case", _cases())
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_editing_case(case: dict[str, str], ending: str) -> None:
    """Every case holds whatever the line endings are, and the operations' own are always line feeds."""
    before = case["input"].replace("\n", ending)
    operations: list[Operation] = [json.loads(line) for line in case["operations"].splitlines()]
    if "expected" in case:
        check(before, operations, case["expected"].replace("\n", ending))
        return
    refusal = next(match for name in case if (match := _REFUSED.fullmatch(name)))
    with pytest.raises(KnowledgeBaseError) as caught:
        patched(before, *operations)
    assert (caught.value.code, caught.value.details["reason"]) == (refusal["code"], refusal["reason"])
    assert refusal["words"] in caught.value.message
