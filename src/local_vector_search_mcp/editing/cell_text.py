"""Cell text: a value as the Markdown of one table cell, which reads back as exactly that value."""

import re
from enum import StrEnum

from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.inline import cell_text
from local_vector_search_mcp.markdown.table_rows import WHITESPACE

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_PIPE = re.compile(r"\|")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_ESCAPABLE = re.compile(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]""")
# What Markdown may read as more than itself: escaped wherever it stands. A single tilde, an ampersand and a backslash
# only where something follows that makes a mark of them; an underscore not within a word.
_SPECIAL = re.compile(
    r"[`*\[\]<|]"
    r"|\\(?=[!-/:-@\[-`{-~]|$)"
    r"|~"
    r"|&(?=\#|[A-Za-z])"
    r"|(?<![^\W_])_|_(?![^\W_])"
)


class ValueFormat(StrEnum):
    """How a supplied cell value is meant."""

    LITERAL = "literal"
    MARKDOWN = "markdown"


def shown_text(content: str) -> str:
    """The plain text of a cell's content, as a reader of the table sees it."""
    return cell_text(content.replace("\\|", "|"))


def cell_content(value: str, value_format: ValueFormat) -> str:
    """A value as the content of a cell, without padding.

    Raises:
        InvalidArgument: Markdown with a line break, or a literal value that no cell can hold.
    """
    if value_format is ValueFormat.MARKDOWN:
        if _LINE_BREAK.search(value):
            raise InvalidArgument("A cell's Markdown cannot hold a line break; write <br> where one is wanted.")
        return _UNESCAPED_PIPE.sub(r"\\|", value).strip(WHITESPACE)
    return literal_content(value)


def literal_content(value: str) -> str:
    """The content that reads back as exactly ``value``; a line break in it becomes ``<br>``.

    Raises:
        InvalidArgument: No content does, as with a vertical tab at an end.
    """
    wanted = _LINE_BREAK.sub("\n", value)
    # As little as possible is escaped; what a rarer rule of Markdown would still read is escaped all over. In a cell
    # that is too long to be read as Markdown, pipes are all that counts.
    for special in (_SPECIAL, _ESCAPABLE, _PIPE):
        content = _escaped(wanted, special)
        if shown_text(content) == wanted:
            return content
    raise InvalidArgument(
        "The value holds what no table cell can hold as text: a vertical tab at an end, or "
        "line breaks in a text of many thousand characters. Leave that out, or give the cell as Markdown."
    )


def _escaped(wanted: str, special: re.Pattern[str]) -> str:
    lines = [special.sub(lambda match: "\\" + match.group(), line) for line in wanted.split("\n")]
    return "<br>".join(_edges(line) for line in lines)


def _edges(line: str) -> str:
    """White space at the ends of a line, which Markdown would drop, as character references."""
    core = line.strip(WHITESPACE)
    if core == line:
        return line
    start = line.find(core) if core else len(line)
    end = start + len(core)
    return _references(line[:start]) + core + _references(line[end:])


def _references(blanks: str) -> str:
    return "".join(f"&#{ord(character)};" for character in blanks)
