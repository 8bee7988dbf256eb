"""Arguments and result parts that several tools share, said once."""

from local_vector_search_mcp.server.schemas import (
    Schema,
    anything,
    array,
    boolean,
    either,
    free,
    integer,
    result,
    text,
    texts,
)

KINDS = (
    "heading",
    "paragraph",
    "code",
    "list_item",
    "block_quote",
    "table",
    "html",
    "math",
    "footnote",
    "definition",
    "rule",
    "frontmatter",
)
MODES = ("auto", "lexical", "semantic", "hybrid")


def path(description: str = "Document, relative to the root") -> Schema:
    """A document's path."""
    return text(description)


def pointer(description: str) -> Schema:
    """A pointer, or a full pointer that brings its path along."""
    return text(description)


def cursor() -> Schema:
    """Where a list goes on."""
    return text("nextCursor of the page before")


def page_size(default: int, maximum: int) -> Schema:
    """How many entries a page has."""
    return integer("Entries per page", minimum=1, maximum=maximum, default=default)


def path_prefix() -> Schema:
    """A folder or file that a list or search is limited to."""
    return text("Only this folder or file")


def glob(description: str) -> Schema:
    """One glob or several."""
    return either(text(), array(text()), description=description)


def collection() -> Schema:
    """A further tree to read from."""
    return text("Collection to read", default="project")


def dry_run(*, default: bool = False) -> Schema:
    """Check and show, write nothing."""
    return boolean("Show the diff, write nothing", default=default)


def plan_hash() -> Schema:
    """The plan of a dry run that is to be carried out."""
    return text("From a dry run: do exactly that plan")


def expected_source_hash(description: str = "sourceHash as read") -> Schema:
    """The state of a file that the caller has seen."""
    return text(description)


def search_filters() -> dict[str, Schema]:
    """What limits a search."""
    return {
        "pathPrefix": path_prefix(),
        "includeGlob": glob("Only paths that match"),
        "excludeGlob": glob("Not paths that match"),
        "tags": array(text(), "Documents with all these tags"),
        "where": free('Front matter: {"status":"draft","date":{"$gte":"2026-01-01"}}'),
        "kinds": array(text(enum=KINDS), "Holding one of these element kinds"),
        "modifiedAfter": text("Modified after this ISO date or time"),
        "collections": array(text(), "Collections; default all"),
    }


def mutation(extra: dict[str, Schema] | None = None, *, without: tuple[str, ...] = ()) -> Schema:
    """The result of a change, dry or real."""
    properties: dict[str, Schema] = {
        "applied": boolean(),
        "changeId": text(),
        "path": text(),
        "sourceHash": text(),
        "previousSourceHash": text(),
        "indexSynchronized": boolean(),
        "warnings": texts(),
        "diffs": array(anything()),
        "planHash": text(),
        **(extra or {}),
    }
    kept = {name: schema for name, schema in properties.items() if name not in without}
    return result(kept, required=("applied",))


def updated_links() -> Schema:
    """Documents whose links were rewritten."""
    return array(anything())


def broken_links() -> Schema:
    """Links that lose their target."""
    return array(anything())
