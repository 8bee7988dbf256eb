"""ImageService: images listed, looked at, saved from a client's file, moved and deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from local_vector_search_mcp.digests import sha256_hex, xxh64_hex
from local_vector_search_mcp.errors import (
    AlreadyExists,
    Conflict,
    ConflictReason,
    InvalidArgument,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.documents import UpdatedLinks
from local_vector_search_mcp.services.image_views import ImageList, ImageViews, LoadedImage, LoadedImages
from local_vector_search_mcp.services.link_updates import (
    IncomingLink,
    LinkPlanner,
    LinkUpdates,
)
from local_vector_search_mcp.services.mutations import Committed, FileDiff, FileStep, Mutations, Proposal
from local_vector_search_mcp.services.saved_names import (
    IMAGE_FOLDER,
    check_target,
    image_markdown,
    stem_and_extension,
)
from local_vector_search_mcp.services.shown_images import full_pointer, shown_images
from local_vector_search_mcp.workspace.entries import FileSnapshot
from local_vector_search_mcp.workspace.image_fetch import FetchLimits, ImageFetcher
from local_vector_search_mcp.workspace.images import (
    EXTENSIONS,
    MAX_IMAGE_BYTES,
    ImageInfo,
    check_decodes,
    check_extension,
    free_name,
    sniff,
)

_FETCH_SECONDS: Final = 30.0
_MOST_BROKEN_LINKS: Final = 50
_HOW_TO_PASS: Final = (
    "Pass the file parameter of the client: an object with download_url (https) and file_id. Text, data URIs and "
    "base64 are not taken; a file that is on this machine already can be copied into the workspace instead."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedImage:
    """An image that was saved, and the Markdown that shows it."""

    path: RelPath
    mime_type: str
    bytes: int
    sha256: str
    width: int
    height: int
    markdown: str
    change_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChange:
    """What changes of images answer alike; ``index_synchronized`` only where documents were touched."""

    applied: bool
    change_id: str | None = None
    index_synchronized: bool | None = None
    warnings: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    plan_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedImage(ImageChange):
    """What ``kb_move_image`` answers."""

    path: str
    previous_path: str
    sha256: str
    updated_links: tuple[UpdatedLinks, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedImage(ImageChange):
    """What ``kb_delete_image`` answers."""

    path: str
    deleted: bool
    broken_links: tuple[IncomingLink, ...] = ()


class ImageService:
    """The image tools of the project."""

    def __init__(self, mutations: Mutations, fetcher: ImageFetcher | None = None) -> None:
        self._mutations = mutations
        self._workspace = mutations.workspace
        self._views = ImageViews(mutations.workspace)
        self._fetcher = fetcher or ImageFetcher(FetchLimits(max_bytes=MAX_IMAGE_BYTES, total_seconds=_FETCH_SECONDS))

    def list_images(
        self, *, path_prefix: str | None = None, cursor: str | None = None, page_size: int = 50
    ) -> ImageList:
        """One page of images by path.

        Raises:
            InvalidArgument, InvalidPath, IoFailure: As ``ImageViews.page``.
        """
        return self._views.page(path_prefix=path_prefix, cursor=cursor, page_size=page_size)

    def save(
        self,
        *,
        file: object,
        file_name: str | None = None,
        alt_text: str | None = None,
        target_path: str | None = None,
        relative_to: str | None = None,
    ) -> SavedImage:
        """Save an image from the URL of a client's file parameter.

        Args:
            file: An object with ``download_url`` and ``file_id``, and perhaps ``mime_type`` and ``file_name``.
            file_name: A name in ``images/``; made free by a number.
            alt_text: What the image shows, for the Markdown.
            target_path: The exact place instead.
            relative_to: The document that the Markdown is for; without it the path is from the root.

        Raises:
            InvalidArgument: ``file`` is no such object, or both a name and a place are given.
            DownloadRefused, DownloadFailed: See ``ImageFetcher.fetch``.
            UnsupportedFormat, TooLarge: It is no image that a workspace takes.
            AlreadyExists, InvalidPath: The place is taken, or no place at all.
        """
        url, offered = _file_parameter(file)
        if file_name is not None and target_path is not None:
            raise InvalidArgument(
                "Give fileName for a free name in images/, or targetPath for an exact place, not both."
            )
        document = None if relative_to is None else self._workspace.parse(relative_to)
        if document is not None:
            self._workspace.check_document(document)
        place = None if target_path is None else self._workspace.parse_new(target_path)
        if place is not None:
            check_target(place)
            self._workspace.check_new(place)
        data = self._fetcher.fetch(url).data
        found = sniff(data)
        if found is None:
            raise UnsupportedFormat("What the URL gave is no PNG, JPEG, WebP or GIF image.")
        stem, extension = stem_and_extension(file_name, offered, found)
        named = place or RelPath(f"{IMAGE_FOLDER}/{stem}{extension}")
        info = check_decodes(named, data)

        def plan() -> Proposal[RelPath]:
            path = named if place is not None else self._free_place(stem, extension)
            self._workspace.check_new(path)
            return Proposal(
                summary=f"Image {path} saved", steps=(FileStep(path=path, before=None, after=data),), value=path
            )

        committed = self._mutations.run("kb_save_image", plan)
        return _saved(committed.value, data, info, alt_text or "", document, committed.change_id)

    def load(
        self,
        *,
        path: str | None = None,
        max_pixels: int | None = None,
        original: bool = False,
        document_path: str | None = None,
        pointer: str | None = None,
        result_limit: int,
    ) -> LoadedImage | LoadedImages:
        """An image to look at, or the local images of an element or section of a document.

        Args:
            path: The image.
            max_pixels: The longest side that is wanted.
            original: Whether the bytes come as they are.
            document_path: A document instead of an image.
            pointer: An element or heading of it; without it the whole document.
            result_limit: Most bytes that the transport carries.

        Raises:
            InvalidArgument: Not exactly one of an image and a document, or ``original`` for a document.
            KnowledgeBaseError: As ``ImageViews.load``, or the document or pointer cannot be resolved.
        """
        if path is not None and pointer is not None:
            raise InvalidArgument("pointer belongs to documentPath; an image has none.")
        place, wanted = full_pointer(document_path, pointer)
        if (path is None) == (place is None):
            raise InvalidArgument(
                "Give path for one image, or documentPath (and pointer) for the images of a document."
            )
        if path is not None:
            image = self._workspace.parse(path)
            return self._views.load(image, max_pixels=max_pixels, original=original, result_limit=result_limit)
        if original:
            raise InvalidArgument("original is for one image; the images of a document are made to fit one result.")
        document = self._workspace.parse(place or "")
        targets = shown_images(self._mutations.corpus, document, wanted)
        return self._views.load_several(targets, max_pixels=max_pixels, result_limit=result_limit)

    def move(
        self,
        *,
        source_path: str,
        target_path: str,
        expected_sha256: str | None = None,
        update_links: bool = False,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> MovedImage:
        """Move or rename an image; if asked, links to it are rewritten.

        Args:
            source_path: The image.
            target_path: Where to; its extension has to fit the content.
            expected_sha256: What the caller has seen.
            update_links: Whether links to it are rewritten.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            AlreadyExists: The target is taken.
            Conflict: The image has another hash.
            InvalidPath, NotFound, UnsupportedFormat, TooLarge: One of the two can be no image.
        """
        old = self._workspace.parse(source_path)
        new = self._workspace.parse_new(target_path)
        check_target(new)
        if old == new:
            raise InvalidArgument(f"{old} stands there already; give another targetPath.")
        links = LinkPlanner(self._workspace, now_ns=self._mutations.now_ns)

        def plan() -> Proposal[tuple[FileSnapshot, LinkUpdates]]:
            snapshot = self._image(old, expected_sha256)
            check_extension(new, sniff(snapshot.data))
            self._workspace.check_new(new, replacing=old)
            updates = links.updates({old: new}) if update_links else LinkUpdates()
            moved = FileStep(path=new, before=snapshot, after=snapshot.data, previous_path=old)
            rewritten = (
                FileStep(path=update.snapshot.path, before=update.snapshot, after=update.data)
                for _, update in sorted(updates.documents.items())
            )
            return Proposal(
                summary=f"moved {old} to {new}",
                steps=(moved, *rewritten),
                value=(snapshot, updates),
                warnings=tuple(updates.warnings),
            )

        committed = self._mutations.run(
            "kb_move_image", plan, dry_run=dry_run, plan_hash=plan_hash, looks_ahead=update_links
        )
        snapshot, updates = committed.value
        updated = tuple(
            UpdatedLinks(path=path, count=update.count, source_hash=xxh64_hex(update.data))
            for path, update in sorted(updates.documents.items())
        )
        return MovedImage(
            **image_fields(committed, touched_documents=bool(updated)),
            path=new.value,
            previous_path=old.value,
            sha256=sha256_hex(snapshot.data),
            updated_links=updated,
        )

    def delete(
        self,
        *,
        path: str,
        expected_sha256: str | None = None,
        dry_run: bool = False,
        plan_hash: str | None = None,
    ) -> DeletedImage:
        """Delete an image; its bytes stay in the history.

        Args:
            path: The image.
            expected_sha256: What the caller has seen.
            dry_run: Whether to check and show only.
            plan_hash: Of a dry run.

        Raises:
            Conflict: It has another hash.
            InvalidPath, NotFound, UnsupportedFormat, TooLarge: There is no such image.
        """
        place = self._workspace.parse(path)
        links = LinkPlanner(self._workspace, now_ns=self._mutations.now_ns)

        def plan() -> Proposal[tuple[IncomingLink, ...]]:
            snapshot = self._image(place, expected_sha256)
            broken = links.incoming([place], most=_MOST_BROKEN_LINKS)
            step = FileStep(path=place, before=snapshot, after=None)
            return Proposal(summary=f"deleted {place}", steps=(step,), value=broken)

        committed = self._mutations.run("kb_delete_image", plan, dry_run=dry_run, plan_hash=plan_hash, looks_ahead=True)
        return DeletedImage(
            **image_fields(committed, touched_documents=False),
            path=place.value,
            deleted=committed.applied,
            broken_links=committed.value,
        )

    def _free_place(self, stem: str, extension: str) -> RelPath:
        """The first free name in the image folder, spelled as that folder is."""
        folder = self._image_folder()

        def taken(name: str) -> bool:
            try:
                self._workspace.check_new(RelPath(f"{folder}/{name}"))
            except AlreadyExists:
                return True
            return False

        return RelPath(f"{folder}/{free_name(stem, extension, taken)}")

    def _image_folder(self) -> str:
        """The folder's name as it stands on disk, whatever its case; refused by name where it is no folder.

        Raises:
            AlreadyExists: A file stands in its place.
        """
        with self._workspace.guard.folder(None) as root:
            names = root.names()
        for name in sorted(names, key=lambda name: (name != IMAGE_FOLDER, name)):
            if name.casefold() == IMAGE_FOLDER and self._workspace.is_folder(RelPath(name)):
                return name
        # Refused here, because otherwise every name in it would seem to be taken.
        self._workspace.check_new(RelPath(IMAGE_FOLDER))
        return IMAGE_FOLDER

    def _image(self, path: RelPath, expected_sha256: str | None) -> FileSnapshot:
        """An image file that is to be changed.

        Raises:
            UnsupportedFormat: Its name is not that of an image.
            Conflict: It has another hash than the caller saw.
            InvalidPath, NotFound, TooLarge, IoFailure: As ``Workspace.read``.
        """
        if path.suffix not in EXTENSIONS:
            raise UnsupportedFormat(f"{path} is no image path; this tool takes PNG, JPEG, WebP and GIF files.")
        self._workspace.check_visible(path)
        snapshot = self._workspace.read(path, max_bytes=MAX_IMAGE_BYTES)
        digest = sha256_hex(snapshot.data)
        if expected_sha256 is not None and digest != expected_sha256.strip().lower():
            raise Conflict(
                f"{path} has changed since it was seen: its SHA-256 is {digest}. Load it again.",
                reason=ConflictReason.SOURCE_CHANGED,
                details={"sha256": digest},
            )
        return snapshot


def image_fields(committed: Committed[Any], *, touched_documents: bool) -> dict[str, Any]:
    """The fields of ``ImageChange``."""
    return {
        "applied": committed.applied,
        "change_id": committed.change_id,
        "index_synchronized": committed.index_synchronized if touched_documents else None,
        "warnings": committed.warnings,
        "diffs": committed.diffs,
        "plan_hash": committed.plan_hash,
    }


def _file_parameter(file: object) -> tuple[str, str | None]:
    """The URL and the name in a client's file parameter."""
    if not isinstance(file, Mapping):
        raise InvalidArgument(f"file is no file object. {_HOW_TO_PASS}")
    values = cast("Mapping[str, object]", file)
    url = values.get("download_url")
    if not isinstance(url, str) or not url or not isinstance(values.get("file_id"), str):
        raise InvalidArgument(f"file lacks download_url or file_id. {_HOW_TO_PASS}")
    if url.lower().startswith("data:"):
        raise InvalidArgument(f"download_url is a data URI. {_HOW_TO_PASS}")
    name = values.get("file_name")
    return url, name if isinstance(name, str) and name.strip() else None


def _saved(
    path: RelPath, data: bytes, info: ImageInfo, alt_text: str, document: RelPath | None, change_id: str | None
) -> SavedImage:
    return SavedImage(
        path=path,
        mime_type=info.type.mime_type,
        bytes=len(data),
        sha256=sha256_hex(data),
        width=info.width,
        height=info.height,
        markdown=image_markdown(path, alt_text, document),
        change_id=change_id,
    )
