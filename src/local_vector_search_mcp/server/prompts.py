"""Prompts: ready-made requests that a person starts with an argument or two."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from mcp_types import GetPromptRequestParams, PaginatedRequestParams

from local_vector_search_mcp.errors import InvalidArgument, NotFound
from local_vector_search_mcp.server.protocol_errors import RequestContext
from local_vector_search_mcp.server.wire import Json, complete, listing, text_content


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """A prompt: what clients list, and the text it becomes."""

    name: str
    title: str
    description: str
    arguments: tuple[_Argument, ...]
    write: Callable[[Mapping[str, str]], str]


def _find_decisions(given: Mapping[str, str]) -> str:
    where = f" Look only below {given['path']} (pathPrefix)." if given.get("path") else ""
    return (
        f"Find what has been decided about: {given['topic']}.{where}\n\n"
        "1. Search with kb_search, in several wordings; add words such as decision, ADR, agreed, rejected.\n"
        "2. Read every promising hit with its readHint, and the elements around it.\n"
        "3. Answer with a list, newest first: the decision in one sentence, its date and status where the text gives "
        "them, the reason, and the full pointer of the element that says so.\n\n"
        "Quote decisions that contradict each other or were replaced side by side. Say plainly what you searched for "
        "if nothing was decided; do not guess."
    )


def _summarise_section(given: Mapping[str, str]) -> str:
    section = given.get("section")
    which = f"the section “{section}” of {given['path']}" if section else given["path"]
    find = (
        "Find the heading with kb_outline, then read its section with kb_read (section: true)"
        if section
        else "Look at its structure with kb_outline, then read it with kb_read"
    )
    return (
        f"Summarise {which}.\n\n"
        f"{find}; go on at nextPointer until you have read all of it.\n\n"
        "Write at most ten sentences: first the point, then what supports it, then what is left open. "
        "Give the full pointer behind every claim that someone may want to check. Do not change the document."
    )


def _edit_safely(given: Mapping[str, str]) -> str:
    return (
        f"Make this change in {given['path']}: {given['change']}\n\n"
        "1. Find the place with kb_outline or kb_search and read it with kb_read; take pointers from there.\n"
        "2. Change as little as possible with kb_patch (kb_edit_table for tables, kb_edit_frontmatter for front "
        "matter). Send all operations of one thought in one call.\n"
        "3. If the change is large, send dryRun: true first, look at the diff, then send the same call with its "
        "planHash.\n"
        "4. CONFLICT means that the text has changed: read details.currentText and decide anew. STRUCTURE_CHANGED "
        "names what your Markdown would have swallowed or split: mend the text and do not force it.\n"
        "5. Use the pointers of the answer for further edits, and say at the end what you changed, with the changeId "
        "that kb_undo takes back."
    )


_PATH = "Document, relative to the root"
_PROMPTS: Mapping[str, _Prompt] = {
    prompt.name: prompt
    for prompt in (
        _Prompt(
            name="find_decisions",
            title="Find decisions",
            description="Collect what was decided about a topic, with sources.",
            arguments=(
                _Argument("topic", "What the decisions are about", True),
                _Argument("path", "Folder or document to look in", False),
            ),
            write=_find_decisions,
        ),
        _Prompt(
            name="summarise_section",
            title="Summarise a section",
            description="Summarise a document or one section of it, with pointers behind the claims.",
            arguments=(
                _Argument("path", _PATH, True),
                _Argument("section", "Heading of the section; all of the document without it", False),
            ),
            write=_summarise_section,
        ),
        _Prompt(
            name="edit_safely",
            title="Edit safely",
            description="Change a document in small, checked steps that can be undone.",
            arguments=(
                _Argument("path", _PATH, True),
                _Argument("change", "What to change", True),
            ),
            write=_edit_safely,
        ),
    )
}


async def list_prompts(ctx: RequestContext, params: PaginatedRequestParams) -> Json:
    """All prompts."""
    return listing(
        prompts=[
            {
                "name": prompt.name,
                "title": prompt.title,
                "description": prompt.description,
                "arguments": [asdict(argument) for argument in prompt.arguments],
            }
            for prompt in _PROMPTS.values()
        ]
    )


async def get_prompt(ctx: RequestContext, params: GetPromptRequestParams) -> Json:
    """A prompt with its arguments put in."""
    prompt = _PROMPTS.get(params.name)
    if prompt is None:
        raise NotFound(f"There is no such prompt; the prompts are {', '.join(_PROMPTS)}.")
    given = {name: value for name, value in (params.arguments or {}).items() if value.strip()}
    _check(prompt, given)
    message = {"role": "user", "content": text_content(prompt.write(given))}
    return complete(description=prompt.description, messages=[message])


def takes_path(prompt: str, argument: str) -> bool:
    """Whether an argument of a prompt is a path."""
    found = _PROMPTS.get(prompt)
    return argument == "path" and found is not None and any(known.name == argument for known in found.arguments)


def _check(prompt: _Prompt, given: Mapping[str, str]) -> None:
    known = [argument.name for argument in prompt.arguments]
    for name in given:
        if name not in known:
            raise InvalidArgument(f"{prompt.name} has no argument of that name; it takes {', '.join(known)}.")
    for argument in prompt.arguments:
        if argument.required and argument.name not in given:
            raise InvalidArgument(f"{prompt.name} needs {argument.name}.")
