"""What a client is told at the start: what this workspace holds, what may be done, and how to work with it."""

import re
from collections.abc import Sequence

from local_vector_search_mcp.scopes import Scope
from local_vector_search_mcp.services.overview import Overview

MAX_CHARS = 1500
_MOST_FOLDERS = 12
_MOST_TAGS = 12
_MOST_NAME_CHARS = 40

_SCOPES = {
    Scope.READ: (
        "Scope read: nothing can be changed. To allow edits, restart the server with --scope edit "
        "(no deleting of files) or --scope full."
    ),
    Scope.EDIT: "Scope edit: files can be changed, not deleted; --scope full allows that.",
    Scope.FULL: "Scope full: files can be changed and deleted; kb_undo takes a change back.",
}
_FINDING = (
    'Find: kb_search (words, questions, "exact phrases") or kb_outline. Hits name elements by pointers and show how to '
    "read on (readHint). kb_context gives one cited text for a question."
)
_READING = (
    "Read: kb_read from a pointer on, always the file as it is now. A pointer (1.2.p3~hash~hash) names one element and "
    "still fits after edits elsewhere."
)
_EDITING = (
    "Edit: kb_patch by pointers from kb_read (kb_edit_table, kb_edit_frontmatter for those); all operations of a call "
    "apply or none, and the answer has the new pointers. CONFLICT shows what stands there now. dryRun shows the diff."
)


def write_instructions(overview: Overview, scope: Scope, *, preface: str = "") -> str:
    """The instructions, below ``MAX_CHARS`` unless the preface alone is longer; details go first.

    Args:
        overview: What the workspace holds.
        scope: What this server may do.
        preface: The configured text that stands before.
    """
    head = [preface.strip()] if preface.strip() else []
    loop = [_SCOPES[scope], _FINDING, _READING, *([] if scope is Scope.READ else [_EDITING])]
    facts = _facts(overview)
    while True:
        text = "\n".join([*head, *facts, *loop])
        if len(text) < MAX_CHARS or not facts:
            return text
        facts.pop()


def _facts(overview: Overview) -> list[str]:
    """Lines about the workspace, the most telling first."""
    if overview.documents is None:
        what = "A Markdown knowledge base."
    elif overview.documents == 0:
        what = "A Markdown knowledge base; nothing is indexed yet (kb_status tells how far it is)."
    else:
        what = f"A Markdown knowledge base of {overview.documents} documents."
    facts = [what]
    if overview.folders:
        shown = [f"{_plain(name)}/ ({count})" for name, count in overview.folders[:_MOST_FOLDERS]]
        facts.append(_listed("Folders", shown, len(overview.folders)))
    if overview.collections:
        facts.append(_listed("Further collections", [_plain(name) for name in overview.collections], 0))
    if overview.tags:
        facts.append(_listed("Tags", ["#" + _plain(tag) for tag in overview.tags[:_MOST_TAGS]], 0))
    return facts


def _listed(what: str, shown: Sequence[str], of: int) -> str:
    return f"{what}: {', '.join(shown)}{', …' if of > len(shown) else ''}."


def _plain(name: str) -> str:
    """A name out of the workspace on one line; it is data of unknown origin among instructions."""
    flat = re.sub(r"[^\w ./+&()@#'-]+", " ", name).strip()
    return flat if len(flat) <= _MOST_NAME_CHARS else flat[: _MOST_NAME_CHARS - 1] + "…"
