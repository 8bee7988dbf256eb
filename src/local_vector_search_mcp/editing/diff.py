"""Unified diffs for people, and the plan hash that pins a dry run to the call that follows it."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from local_vector_search_mcp.digests import sha256_hex

_NO_ENDING = "\\ No newline at end of file\n"
_MAX_LINES_FOR_MATCHING = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One path that a plan touches. A hash is None where the file is absent before or after."""

    path: str
    previous_hash: str | None
    new_hash: str | None


def plan_hash(files: Iterable[PlannedFile]) -> str:
    """The hash of a plan: every touched path with its old and new hash, in whatever order they are given."""
    rows = sorted(f"{file.path}\0{file.previous_hash or '-'}\0{file.new_hash or '-'}" for file in files)
    return sha256_hex("\n".join(rows).encode("utf-8"))


def unified_diff(path: str, before: bytes | None, after: bytes | None, *, previous_path: str | None = None) -> str:
    """The change of one document as a unified diff; empty where nothing changed.

    Args:
        path: The path after the change, or before a deletion.
        before: None where the document is new.
        after: None where it is deleted.
        previous_path: The path before a move.
    """
    old_name = "/dev/null" if before is None else f"a/{previous_path or path}"
    new_name = "/dev/null" if after is None else f"b/{path}"
    if before == after:
        if previous_path is None or previous_path == path:
            return ""
        return f"--- {old_name}\n+++ {new_name}\n"
    old_lines, new_lines = _lines(before or b""), _lines(after or b"")
    body = _diff_body(old_lines, new_lines)
    return "".join([f"--- {old_name}\n+++ {new_name}\n", *body])


def _lines(data: bytes) -> list[str]:
    # bytes.splitlines knows the three line endings of Markdown and no others.
    return [line.decode("utf-8", "replace") for line in data.splitlines(keepends=True)]


def _diff_body(old: list[str], new: list[str]) -> list[str]:
    # Equal lines at both ends are set aside first, so that the matcher, which is quadratic at
    # worst, sees the changed region alone however long the document is.
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    context_head = max(0, head - 3)
    context_tail = max(0, tail - 3)
    old_part = old[context_head : len(old) - context_tail]
    new_part = new[context_head : len(new) - context_tail]
    if len(old_part) + len(new_part) > _MAX_LINES_FOR_MATCHING:
        return _replaced_body(old_part, new_part, context_head)
    body: list[str] = []
    for line in list(difflib.unified_diff(old_part, new_part, n=3))[2:]:
        body.extend(_shown(_moved_header(line, context_head) if line.startswith("@@") else line))
    return body


def _replaced_body(old: list[str], new: list[str], offset: int) -> list[str]:
    header = f"@@ -{_span(offset, len(old))} +{_span(offset, len(new))} @@\n"
    body = [header]
    for line in old:
        body.extend(_shown("-" + line))
    for line in new:
        body.extend(_shown("+" + line))
    return body


def _moved_header(header: str, offset: int) -> str:
    parts = header.split(" ")
    return " ".join(part[0] + _moved_span(part[1:], offset) if part[:1] in ("-", "+") else part for part in parts)


def _moved_span(span: str, offset: int) -> str:
    start, comma, count = span.partition(",")
    return f"{int(start) + offset}{comma}{count}"


def _span(offset: int, count: int) -> str:
    return f"{offset + 1 if count else offset},{count}"


def _shown(line: str) -> list[str]:
    # A carriage return stays in its line; only the "\n" that ends a diff line is ours.
    if line.endswith("\n"):
        return [line]
    if line.endswith("\r"):
        return [line + "\n"]
    return [line + "\n", _NO_ENDING]


def _common_prefix(old: list[str], new: list[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count
