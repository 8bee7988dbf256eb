"""DocumentRules: which paths are documents, which files are visible, and the rule in words that keeps one out."""

from local_vector_search_mcp.errors import KnowledgeBaseError, NotFound, UnsupportedFormat
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.atomic_write import read_fully
from local_vector_search_mcp.workspace.entries import FileState
from local_vector_search_mcp.workspace.guard import WorkspaceGuard
from local_vector_search_mcp.workspace.ignore import IgnoreCache, IgnoreFile
from local_vector_search_mcp.workspace.listing import Selection, ignored_by
from local_vector_search_mcp.workspace.reading import FileReader


class DocumentRules:
    """The selection rules together with the ``.gitignore`` files on disk, asked about one path at a time."""

    def __init__(self, guard: WorkspaceGuard, selection: Selection, reader: FileReader) -> None:
        self._guard = guard
        self._selection = selection
        self._reader = reader
        self.ignores = IgnoreCache(self._read_ignore_file)

    def why_excluded(self, path: RelPath) -> str | None:
        """The rule that keeps a path from being a document, in words; None where it is one or could be."""
        refused = self._guard.refusal(path)
        if refused is not None:
            return refused
        selection = self._selection
        return selection.exclusion(path) or self.ignored(path) or selection.non_inclusion(path)

    def is_document(self, path: RelPath) -> bool:
        """Whether the rules make a path a document; says nothing about whether there is such a file."""
        return self._selection.is_document_name(path.name) and self.why_excluded(path) is None

    def check_document(self, path: RelPath) -> None:
        """Refuse a path that no Markdown tool takes.

        Raises:
            InvalidPath: No tool may touch it.
            UnsupportedFormat: Its name is not that of a Markdown file.
            NotFound: The rules keep it out; the message names the rule.
        """
        self._guard.check(path)
        if not self._selection.is_document_name(path.name):
            raise UnsupportedFormat(f"{path} is no Markdown file; this tool takes Markdown documents only.")
        rule = self.why_excluded(path)
        if rule is not None:
            raise NotFound(f"{path} is no document of this workspace: {rule}.", details={"rule": rule})

    def check_visible(self, path: RelPath) -> None:
        """Refuse a path that may be neither listed nor downloaded.

        Raises:
            InvalidPath: No tool may touch it.
            NotFound: A Markdown file that the rules keep out, or a name with a dot that no include pattern selects.
        """
        self._guard.check(path)
        if self._selection.is_document_name(path.name):
            self.check_document(path)
        elif self._selection.is_hidden(path.value, path.name):
            raise NotFound(f"{path} is hidden: its name begins with a dot and no include pattern selects it.")

    def ignored(self, path: RelPath) -> str | None:
        """The ``.gitignore`` line that keeps a file, or a folder above it, out; in words."""
        if not self._selection.rules.respect_gitignore:
            return None
        ignores: tuple[tuple[str, IgnoreFile], ...] = ()
        parts = path.parts
        for depth in range(len(parts)):
            here = "/".join(parts[:depth])
            rules = self.ignores.get(here, self._state_of_ignore_file(here))
            if rules is not None:
                ignores = (*ignores, (here, rules))
            if ignores:
                rule = ignored_by(ignores, "/".join(parts[: depth + 1]), folder=depth < len(parts) - 1)
                if rule is not None:
                    return rule
        return None

    def _state_of_ignore_file(self, folder: str) -> FileState | None:
        try:
            identity = self._reader.identity(RelPath(f"{folder}/.gitignore" if folder else ".gitignore"))
        except KnowledgeBaseError:
            # A link in its place, or a folder that cannot be read, holds no rules; reading the file itself will tell.
            return None
        return None if identity is None else identity.state

    def _read_ignore_file(self, place: str) -> bytes | None:
        try:
            with self._reader.open(RelPath(place)) as (fd, _):
                return read_fully(fd)
        except (KnowledgeBaseError, OSError):
            # Rules that cannot be read cannot be obeyed; git does the same.
            return None
