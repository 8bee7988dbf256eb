"""Case files: blocks of a title, an input and what is expected of it, so that a new case needs no Python.

::

    === The title, one sentence
    --- input
    # Markdown
    --- expected
    1 heading ...

``--- input escaped`` stands before an input with backslash escapes as in a Python string (``\\r``, ``\\0``,
``\\ufeff``), on one or more lines whose own line endings do not count.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_TITLE = re.compile(r"^=== (.+)\n", re.MULTILINE)
_PART = re.compile(r"^--- (input(?: escaped)?|expected)\n", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:r|n|t|0|\\|x[0-9a-f]{2}|u[0-9a-f]{4})")
_PLAIN_ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "\\": "\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        title: What is right about it, in a sentence.
        written: The input as the file has it.
        escaped: Whether it is written with escapes.
        expected: The expected dump; None where it is still missing.
    """

    title: str
    written: str
    escaped: bool
    expected: str | None

    @property
    def data(self) -> bytes:
        """The input."""
        if not self.escaped:
            return self.written.encode()
        return _ESCAPE.sub(_character, self.written.replace("\n", "")).encode()


def read_cases(path: Path) -> list[Case]:
    """The cases of a file."""
    text = path.read_bytes().decode()
    pieces = _TITLE.split(text)
    assert not pieces[0].strip(), f"{path.name} does not begin with a title"
    return [_case(title, body) for title, body in zip(pieces[1::2], pieces[2::2], strict=True)]


def write_cases(path: Path, cases: Sequence[Case]) -> None:
    """Write a file anew."""
    blocks = [_block(case) for case in cases]
    path.write_bytes("\n".join(blocks).encode())


def with_expected(case: Case, expected: str) -> Case:
    """The case with another expectation."""
    return replace(case, expected=expected)


def _block(case: Case) -> str:
    form = "input escaped" if case.escaped else "input"
    return f"=== {case.title}\n--- {form}\n{case.written}--- expected\n{case.expected or ''}"


def _case(title: str, body: str) -> Case:
    pieces = _PART.split(body)
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    escaped = "input escaped" in parts
    expected = parts.get("expected")
    return Case(
        title=title,
        written=parts["input escaped" if escaped else "input"],
        escaped=escaped,
        expected=None if expected is None else expected.rstrip("\n") + "\n" if expected.strip() else "",
    )


def _character(match: re.Match[str]) -> str:
    text = match.group()[1:]
    return _PLAIN_ESCAPES[text] if text in _PLAIN_ESCAPES else chr(int(text[1:], 16))
