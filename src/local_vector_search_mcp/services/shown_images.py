"""Which local images an element, a section or a whole document shows."""

from local_vector_search_mcp.book.mentions import PictureMention, pictures_shown
from local_vector_search_mcp.errors import InvalidArgument, KnowledgeBaseError
from local_vector_search_mcp.index.link_names import LinkNames
from local_vector_search_mcp.markdown.parser import parse_bytes
from local_vector_search_mcp.markdown.pointers import parse_pointer, split_full_pointer
from local_vector_search_mcp.markdown.resolve import resolve
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.book_chapters import link_names
from local_vector_search_mcp.services.corpus import Corpus

_REMOTE = ("http:", "https:", "//")


def full_pointer(document_path: str | None, pointer: str | None) -> tuple[str | None, str | None]:
    """Document and pointer of a call; a full pointer in ``pointer`` brings its document along.

    Raises:
        InvalidArgument: The two name different documents.
        InvalidPointer: It is malformed.
    """
    if pointer is None:
        return document_path, None
    named, bare = split_full_pointer(pointer)
    if named is not None and document_path is not None and RelPath.parse(named) != RelPath.parse(document_path):
        raise InvalidArgument(f"pointer names {named}, documentPath {document_path}; give one of them.")
    return document_path if document_path is not None else named, bare


def shown_images(corpus: Corpus, path: RelPath, pointer: str | None) -> list[tuple[str, RelPath | str]]:
    """The images that a part of a document shows, in order: what it says, and the file or why there is none.

    Args:
        corpus: The tree of the document.
        path: The document.
        pointer: An element, a heading for its section, a list item with what is nested in it; None for everything.

    Raises:
        KnowledgeBaseError: The document or the pointer cannot be resolved.
    """
    snapshot = corpus.workspace.read_document(path)
    mentions = pictures_shown(path.value, snapshot.data)
    if pointer is not None:
        first, last = _lines(snapshot.data, pointer)
        mentions = [each for each in mentions if first <= each.first_line and each.last_line <= last]
    names = link_names(corpus) if mentions else None
    return [(each.target, _file(names, path, each)) for each in mentions if names is not None]


def _lines(data: bytes, pointer: str) -> tuple[int, int]:
    """First and last line of what a pointer stands for."""
    document = parse_bytes(data)
    parsed = parse_pointer(pointer)
    if parsed.is_document:
        return 1, max(1, document.source.line_count)
    place = resolve(document, parsed).element.subtree_range
    return document.source.line_of(place.start), document.source.line_of(max(place.start, place.end - 1))


def _file(names: LinkNames, document: RelPath, mention: PictureMention) -> RelPath | str:
    if mention.target.lower().startswith(_REMOTE):
        return "It is a remote image; only local ones are loaded."
    meant = names.resolve(document.value, "embed" if mention.wiki else "image", mention.target)
    if meant.candidates:
        return f"It could be {', '.join(meant.candidates[:3])}."
    if meant.path is None:
        return "It leads outside the root." if meant.outside else "There is no such file."
    try:
        return RelPath.parse(meant.path)
    except KnowledgeBaseError as error:
        return error.message
