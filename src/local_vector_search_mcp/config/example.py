"""The configuration file as text: every key with its default and a line that says what it does.

The models are the one source, so the example in the repository and what ``init`` writes cannot fall behind them.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from pydantic.alias_generators import to_camel

from local_vector_search_mcp.config.layers import section_model
from local_vector_search_mcp.config.models import CollectionSection, ConfigFile

_HEAD = """\
# Settings of local-vector-search-mcp. Give this file with --config; no file is ever loaded by itself.
# Keys are camelCase (snake_case is accepted). LVS_MCP_ environment variables and options win over it.
"""

_COLLECTION_HEAD = """\
# Further trees that are searched and never written. Each takes:
"""


def example_text(*, commented_out: bool = False) -> str:
    """The whole file.

    Args:
        commented_out: Write the keys as comments, so that a file that is kept for years holds only what its owner
            changed, and everything else follows the defaults of the version in use.
    """
    parts = [_HEAD]
    for section in ConfigFile.model_fields:
        parts.append("\n")
        if section == "collections":
            parts.extend(_collection_lines())
            continue
        parts.append(f"{to_camel(section)}:\n")
        parts.extend(_section_lines(section, commented_out=commented_out))
    return "".join(parts)


def default_text(value: Any) -> str:
    """A default as one line of YAML."""
    if isinstance(value, str) and value != "." and value and all(char.isalnum() or char in "-_./" for char in value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _section_lines(section: str, *, commented_out: bool) -> Iterator[str]:
    mark = "# " if commented_out else ""
    for key, info in section_model(section).model_fields.items():
        yield f"  # {info.description}\n"
        default: object = info.default
        items = cast("tuple[object, ...]", default) if isinstance(default, tuple) else ()
        if len(items) > 1:
            yield f"  {mark}{to_camel(key)}:\n"
            for item in items:
                yield f"  {mark}  - {json.dumps(item, ensure_ascii=False)}\n"
        else:
            yield f"  {mark}{to_camel(key)}: {default_text(default)}\n"


def _collection_lines() -> Iterator[str]:
    yield _COLLECTION_HEAD
    for key, info in CollectionSection.model_fields.items():
        default = "" if info.is_required() else " Default as in knowledgeBase."
        yield f"#   {to_camel(key)}: {info.description}{default}\n"
    yield "collections: []\n"
