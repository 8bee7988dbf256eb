"""Front matter: where it stands, and its metadata.

Metadata is what every surface shows and filters by, so it is made of JSON values only and a block
that does not parse is a warning, never a failure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from local_vector_search_mcp.markdown.source import SourceText
from local_vector_search_mcp.markdown.yaml_values import JsonValue, MetadataError, load_toml, load_yaml

if TYPE_CHECKING:
    from local_vector_search_mcp.markdown.elements import MarkdownDocument

_FENCE = re.compile(rb"(---|\+\+\+) *")
_COMMA = re.compile(r",")
_COMMA_OR_SPACE = re.compile(r"[,\s]+")


class FrontmatterFormat(StrEnum):
    """The language between the fences."""

    YAML = "yaml"
    TOML = "toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontmatterLines:
    """A front matter block's place; it starts on the first line."""

    last: int  # The closing fence's line, from 0.
    format: FrontmatterFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A document's front matter as values.

    Attributes:
        title: The title as text; None where there is none or it is empty.
        aliases, tags: In order, without duplicates and empty ones; tags without ``#``.
        values: Every key as it is, ``title``, ``aliases`` and ``tags`` included; empty where nothing parsed.
        format: None without front matter.
        warning: Why the front matter does not parse; None where it does.
    """

    title: str | None = None
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    values: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    format: FrontmatterFormat | None = None
    warning: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """The metadata as one JSON object: title, aliases and tags in their normal form, other keys as they are."""
        result: dict[str, JsonValue] = dict(self.values)
        if self.title is not None:
            result["title"] = self.title
        if "aliases" in result:
            result["aliases"] = list(self.aliases)
        if "tags" in result:
            result["tags"] = list(self.tags)
        return result


NO_METADATA = Metadata()


def find_frontmatter(source: SourceText) -> FrontmatterLines | None:
    """The front matter of a source: between two equal fences at column 0, the first of them on the first line.

    Only spaces may follow a fence, so an indented ``---`` inside a block scalar does not close it.
    """
    lines = source.lines
    if not lines or not lines[0].startswith((b"---", b"+++")):
        return None
    opening = _FENCE.fullmatch(lines[0])
    if opening is None:
        return None
    mark: bytes = opening.group(1)
    for number in range(1, len(lines)):
        if lines[number].startswith(mark) and _FENCE.fullmatch(lines[number]):
            language = FrontmatterFormat.YAML if mark == b"---" else FrontmatterFormat.TOML
            return FrontmatterLines(last=number, format=language)
    return None


def read_metadata(document: "MarkdownDocument") -> Metadata:
    """The metadata of a document; computed once."""
    return document.metadata


def parse_metadata(block: bytes) -> Metadata:
    """The metadata of a front matter block given with both fences."""
    lines = block.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    language = FrontmatterFormat.TOML if lines[0].startswith("+") else FrontmatterFormat.YAML
    inner = "\n".join(lines[1:-1]) + "\n"
    try:
        values = load_yaml(inner) if language is FrontmatterFormat.YAML else load_toml(inner)
    except MetadataError as error:
        return Metadata(format=language, warning=f"The front matter does not parse: {error}")
    return Metadata(
        title=_scalar_text(values.get("title")),
        aliases=_texts(values.get("aliases"), _COMMA),
        tags=tuple(
            dict.fromkeys(filter(None, (tag.lstrip("#") for tag in _texts(values.get("tags"), _COMMA_OR_SPACE))))
        ),
        values=values,
        format=language,
    )


def _texts(value: JsonValue, separator: re.Pattern[str]) -> tuple[str, ...]:
    if isinstance(value, list):
        found = [_scalar_text(item) for item in value]
    else:
        found = [part.strip() for part in separator.split(_scalar_text(value) or "")]
    return tuple(dict.fromkeys(text for text in found if text))


def _scalar_text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, (list, dict)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip() or None
