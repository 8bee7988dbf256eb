"""What a book is made from, and the door through which it asks for more."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterSource:
    """One document of a book: its root-relative path and its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A workspace file that a document refers to."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """Why a file that a document refers to is not in the book, as the end of a sentence."""

    reason: str


class BookSources(Protocol):
    """Finds files that documents of a book refer to; the only way in which anything reaches the book.

    ``target`` is a path as a document gives it, percent-decoded and without anchor; ``wiki`` says that it stood in
    double brackets, where a bare name is enough.
    """

    def resolve(self, target: str, from_path: str, *, wiki: bool) -> str | None:
        """The root-relative path that a link leads to, or ``None``."""
        ...

    def note(self, target: str, from_path: str) -> FoundFile | Unavailable:
        """The document that an embed names."""
        ...

    def image(self, target: str, from_path: str, *, wiki: bool) -> FoundFile | Unavailable:
        """The bytes of a local image."""
        ...


@dataclass(slots=True)
class Warnings:
    """What the reader of the result should know, each once, in the order found."""

    messages: dict[str, None]

    def add(self, message: str) -> None:
        """Note one warning."""
        self.messages.setdefault(message)

    def all(self) -> tuple[str, ...]:
        """The warnings so far."""
        return tuple(self.messages)
