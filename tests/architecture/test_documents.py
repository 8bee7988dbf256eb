"""The documents say what the code does: every code, key, option, tool and argument, with its default."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import click
import pytest
from pydantic.alias_generators import to_camel
from tests.support.source_tree import ROOT

from local_vector_search_mcp import errors
from local_vector_search_mcp.cli.exits import exit_code_for
from local_vector_search_mcp.cli.main import program
from local_vector_search_mcp.config.example import default_text
from local_vector_search_mcp.config.layers import scalar_keys, section_model
from local_vector_search_mcp.config.models import CollectionSection
from local_vector_search_mcp.errors import ConflictReason, KnowledgeBaseError, StructureReason
from local_vector_search_mcp.server.tools.catalogue import all_tools
from local_vector_search_mcp.server.toolspec import ToolSpec

DOCS = ROOT / "docs"
TOOLS = {tool.name: tool for tool in all_tools(default_mode="auto", max_results=10)}


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def row(text: str, first_cell: str) -> str:
    """The one table row that begins with a cell."""
    found = [line for line in text.splitlines() if line.startswith(f"| {first_cell} |")]
    assert len(found) == 1, f"{len(found)} rows begin with {first_cell}"
    return found[0]


def error_classes() -> list[type[KnowledgeBaseError]]:
    values = vars(errors).values()
    return [value for value in values if isinstance(value, type) and issubclass(value, KnowledgeBaseError)]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.code)
def test_errors__code_and_exit_are_documented(error: type[KnowledgeBaseError]) -> None:
    """Every code has a row, which names the exit code it ends with."""
    made = error.__new__(error)
    assert f"| {int(exit_code_for(made))} |" in row(read("errors.md"), f"`{error.code}`")


def test_errors__no_code_is_made_up() -> None:
    """The table holds no code that the program does not have."""
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", read("errors.md"), re.MULTILINE))
    assert documented == {error.code for error in error_classes()}


@pytest.mark.parametrize("reason", [*ConflictReason, *StructureReason])
def test_errors__reason_is_documented(reason: str) -> None:
    """Every value of ``details.reason`` is explained."""
    assert f"`{reason}`" in read("errors.md")


def test_errors__tree_is_complete() -> None:
    """The tree at the top of errors.py draws every class with its code."""
    tree = errors.__doc__ or ""
    for error in error_classes():
        assert re.search(rf"\b{error.__name__}\b", tree)


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title}"
    return found[1]


def shown_default(default: object) -> list[str]:
    """What stands in the table; a longer list item by item."""
    items = cast("tuple[str, ...]", default) if isinstance(default, tuple) else ()
    return list(items) if len(items) > 1 else [default_text(default)]


@pytest.mark.parametrize(("name", "key"), list(scalar_keys()), ids=lambda part: part)
def test_configuration__key_default_and_line(name: str, key: str) -> None:
    """Every key stands in its section's table with its default and what it does."""
    info = section_model(name).model_fields[key]
    line = row(section(read("configuration.md"), to_camel(name)), f"`{to_camel(key)}`")
    assert all(f"`{text}`" in line for text in shown_default(info.default))
    assert info.description is not None
    assert info.description in line


def test_configuration__collections() -> None:
    """The keys of a collection stand in their table."""
    text = section(read("configuration.md"), "collections")
    for key in CollectionSection.model_fields:
        assert row(text, f"`{to_camel(key)}`")


def command_options() -> Iterator[tuple[str, str]]:
    for parameter in program.params:
        if isinstance(parameter, click.Option):
            yield from (("", name) for name in [*parameter.opts, *parameter.secondary_opts] if name.startswith("--"))


@pytest.mark.parametrize(("command", "option"), list(command_options()), ids=lambda part: part)
def test_configuration__option_is_documented(command: str, option: str) -> None:
    """Every option of the program stands in the document."""
    assert re.search(rf"`{option}\b|`--reindex {option}`", read("configuration.md"))


@pytest.mark.parametrize("name", program.list_commands(click.Context(program)))
def test_configuration__command_is_documented(name: str) -> None:
    """Every command has a row, and a line of help."""
    assert re.search(rf"^\| `{name}\b", read("configuration.md"), re.MULTILINE)
    command = program.get_command(click.Context(program), name)
    assert command is not None
    assert command.name == name
    assert command.short_help
    assert command.help


def arguments(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from schema["properties"].items()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tools__arguments_and_defaults(tool: ToolSpec) -> None:
    """Every tool has a heading and a scope, every argument a row with its default and its bounds."""
    text = section(read("tools.md"), f"`{tool.name}`")
    assert f"Scope `{tool.scope.value}`" in text
    for name, schema in arguments(dict(tool.parameters)):
        line = row(text, f"`{name}`")
        if "default" in schema:
            assert f"`{json.dumps(schema['default']).strip(chr(34))}`" in line
        for bound in ("minimum", "maximum", "minItems", "maxItems"):
            if bound in schema:
                assert re.search(rf"\b{schema[bound]:,}\b", line), f"{tool.name}.{name}: {bound}"
        for value in schema.get("enum", ()):
            assert f"`{value}`" in line


def test_tools__no_tool_is_made_up() -> None:
    """The document has no heading for a tool that there is not."""
    assert set(re.findall(r"^#+ `(kb_\w+)`$", read("tools.md"), re.MULTILINE)) == set(TOOLS)


def documents() -> list[str]:
    found = [ROOT / "README.md", *DOCS.rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@pytest.mark.parametrize("name", documents())
def test_document__links_lead_somewhere(name: str) -> None:
    """No relative link of a document is broken."""
    path = ROOT / name
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / Path(target)).exists(), target


def test_decisions__all_are_listed() -> None:
    """The list of decisions names every page, with its title."""
    listed = read("decisions/README.md")
    for path in (DOCS / "decisions").glob("*.md"):
        if path.name != "README.md":
            title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
            assert f"| [{path.name}]({path.name}) | {title} |" in listed, path.name
