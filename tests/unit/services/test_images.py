"""The image tools: list, look at, save, move, delete; every change in the history."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.asset_project import AssetProject, asset_project
from tests.support.pictures import bomb, picture

from local_vector_search_mcp.digests import sha256_hex
from local_vector_search_mcp.errors import (
    AlreadyExists,
    Conflict,
    DownloadFailed,
    InvalidArgument,
    InvalidPath,
    KnowledgeBaseError,
    NotFound,
    PointerNotFound,
    TooLarge,
    UnsupportedFormat,
)
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.services.image_views import LoadedImage, LoadedImages
from local_vector_search_mcp.services.images import ImageService, SavedImage
from local_vector_search_mcp.services.saved_names import image_markdown
from local_vector_search_mcp.workspace.image_fetch import FetchedFile, FetchLimits, ImageFetcher

PNG, JPEG = picture("PNG", (60, 40)), picture("JPEG", (60, 40))
LIMIT = 7 * 1024 * 1024
URL = "https://files.example.org/f?sig=secret"


class Downloads(ImageFetcher):
    """Gives out files by URL."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(FetchLimits(max_bytes=1))
        self._files = files
        self.asked: list[str] = []

    def fetch(self, url: str) -> FetchedFile:
        self.asked.append(url)
        if url not in self._files:
            raise DownloadFailed("gone")
        return FetchedFile(data=self._files[url], content_type="")


@pytest.fixture
def project(tmp_path: Path) -> AssetProject:
    return asset_project(
        tmp_path,
        {
            "pictures/a.png": PNG,
            "pictures/B.jpg": JPEG,
            "c.gif": picture("GIF", (5, 6)),
            "d.webp": picture("WEBP", (7, 8)),
            "broken.png": b"no picture",
            "wrong.jpg": PNG,
            "note.md": (
                "# N\n\n![a](pictures/a.png) and ![x](https://e.example/x.png)\n\n## Sub\n\n![[d.webp]]\n\n![[c.gif]]\n"
            ),
            "sub/other.md": "see [it](../pictures/a.png) and ![](../pictures/a.png)\n",
            "text.txt": "x",
        },
    )


def service(project: AssetProject, data: bytes = PNG) -> ImageService:
    return ImageService(project.mutations, Downloads({URL: data}))


def file_of(**more: object) -> dict[str, object]:
    return {"download_url": URL, "file_id": "file-1", **more}


def save(project: AssetProject, data: bytes = PNG, **given: Any) -> SavedImage:
    given.setdefault("file", file_of())
    return service(project, data).save(**given)


def refuse(error: type[KnowledgeBaseError], call: Any, **given: Any) -> KnowledgeBaseError:
    with pytest.raises(error) as caught:
        call(**given)
    return caught.value


# -- listing


def test_list_images__sizes_by_content_and_pages_by_path(project: AssetProject) -> None:
    """Every image by extension, in order; one that is none has no size."""
    images = service(project)
    seen: list[tuple[str, str, int | None, int | None]] = []
    cursor: str | None = None
    while True:
        page = images.list_images(cursor=cursor, page_size=2)
        seen += [(image.path.value, image.mime_type, image.width, image.height) for image in page.images]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [
        ("broken.png", "image/png", None, None),
        ("c.gif", "image/gif", 5, 6),
        ("d.webp", "image/webp", 7, 8),
        ("pictures/a.png", "image/png", 60, 40),
        ("pictures/B.jpg", "image/jpeg", 60, 40),
        ("wrong.jpg", "image/jpeg", None, None),
    ]


def test_list_images__a_cursor_survives_the_deletion_of_its_image(project: AssetProject) -> None:
    """It holds the key of the last image, not a place."""
    images = service(project)
    page = images.list_images(page_size=2)
    (project.root / "c.gif").unlink()
    assert images.list_images(cursor=page.next_cursor, page_size=1).images[0].path.value == "d.webp"


@pytest.mark.parametrize(
    ("prefix", "count"), [(None, 6), ("pictures", 2), ("pictures/", 2), ("c.gif", 1), ("text.txt", 0), ("none", 0)]
)
def test_list_images__prefix(project: AssetProject, prefix: str | None, count: int) -> None:
    """A folder, a file, or everything."""
    assert len(service(project).list_images(path_prefix=prefix).images) == count


def test_list_images__refusals(project: AssetProject) -> None:
    """Bounds and foreign cursors."""
    images = service(project)
    for size in (0, 201):
        refuse(InvalidArgument, images.list_images, page_size=size)
    cursor = images.list_images(page_size=1).next_cursor
    refuse(InvalidArgument, images.list_images, cursor=cursor, path_prefix="pictures")
    refuse(InvalidArgument, images.list_images, cursor="nonsense")
    refuse(InvalidPath, images.list_images, path_prefix="../x")


# -- looking


def load(project: AssetProject, **given: Any) -> LoadedImage:
    given.setdefault("result_limit", LIMIT)
    loaded = service(project).load(**given)
    assert isinstance(loaded, LoadedImage)
    return loaded


def test_load__the_block_and_what_the_file_is(project: AssetProject) -> None:
    """Unchanged bytes, and metadata of the original."""
    loaded = load(project, path="pictures/a.png")
    assert (loaded.data, loaded.mime_type) == (PNG, "image/png")
    meta = loaded.metadata
    assert (meta.path, meta.bytes, meta.sha256) == (RelPath("pictures/a.png"), len(PNG), sha256_hex(PNG))
    assert (meta.width, meta.height, meta.scaled) == (60, 40, None)


def test_load__less_is_said_to_be_less(project: AssetProject) -> None:
    """The metadata stay those of the original."""
    loaded = load(project, path="pictures/B.jpg", max_pixels=30)
    assert (loaded.mime_type, loaded.metadata.scaled, loaded.metadata.width) == ("image/jpeg", True, 60)
    assert len(loaded.data) != len(JPEG)


def test_load__a_gif_is_shown_as_png_and_given_as_it_is(project: AssetProject) -> None:
    """The first frame to look at; the bytes on request."""
    assert load(project, path="c.gif").mime_type == "image/png"
    original = load(project, path="c.gif", original=True)
    assert (original.mime_type, original.data) == ("image/gif", project.read("c.gif"))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"path": "none.png"}, NotFound),
        ({"path": "text.txt"}, UnsupportedFormat),
        ({"path": "broken.png"}, UnsupportedFormat),
        ({"path": "wrong.jpg"}, UnsupportedFormat),
        ({"path": "note.md"}, UnsupportedFormat),
        ({"path": "../x.png"}, InvalidPath),
        ({"path": "pictures/a.png", "max_pixels": 0}, InvalidArgument),
        ({"path": "pictures/a.png", "max_pixels": 8001}, InvalidArgument),
        ({"path": "pictures/a.png", "max_pixels": 20, "original": True}, InvalidArgument),
        ({"path": "pictures/a.png", "original": True, "result_limit": 100}, TooLarge),
        ({"path": "pictures/a.png", "document_path": "note.md"}, InvalidArgument),
        ({"path": "pictures/a.png", "pointer": "1.p1"}, InvalidArgument),
        ({}, InvalidArgument),
        ({"pointer": "1.p1"}, InvalidArgument),
        ({"document_path": "note.md", "original": True}, InvalidArgument),
        ({"document_path": "note.md", "pointer": "9.p1"}, PointerNotFound),
        ({"document_path": "none.md"}, NotFound),
        ({"document_path": "note.md", "pointer": "sub/other.md::p1"}, InvalidArgument),
    ],
)
def test_load__refusals(project: AssetProject, given: dict[str, Any], error: type[KnowledgeBaseError]) -> None:
    """Wrong files and contradicting arguments."""
    refuse(error, service(project).load, **{"result_limit": LIMIT, **given})


def test_load__bombs_are_refused_before_decoding(project: AssetProject) -> None:
    """A file of a hundred bytes that declares 900 megapixels."""
    project.write("bomb.png", bomb(30_000, 30_000))
    refuse(TooLarge, service(project).load, path="bomb.png", result_limit=LIMIT)


def several(project: AssetProject, limit: int = LIMIT, **given: Any) -> LoadedImages:
    loaded = service(project).load(result_limit=limit, **given)
    assert isinstance(loaded, LoadedImages)
    return loaded


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"document_path": "note.md"}, ["pictures/a.png", "d.webp", "c.gif"]),
        ({"document_path": "note.md", "pointer": "document"}, ["pictures/a.png", "d.webp", "c.gif"]),
        ({"document_path": "note.md", "pointer": "1"}, ["pictures/a.png", "d.webp", "c.gif"]),
        ({"document_path": "note.md", "pointer": "1.p1"}, ["pictures/a.png"]),
        ({"document_path": "note.md", "pointer": "1.1"}, ["d.webp", "c.gif"]),
        ({"document_path": "note.md", "pointer": "1.1.p2"}, ["c.gif"]),
        ({"pointer": "note.md::1.1.p1"}, ["d.webp"]),
        ({"document_path": "sub/other.md", "pointer": "p1"}, ["pictures/a.png"]),
    ],
)
def test_load__the_images_of_a_part_of_a_document(
    project: AssetProject, given: dict[str, Any], paths: list[str]
) -> None:
    """An element, a section or all of it; none twice."""
    assert [image.metadata.path.value for image in several(project, **given).images] == paths


def test_load__images_that_cannot_be_loaded_are_named(project: AssetProject) -> None:
    """Remote, missing and broken ones, with the reason."""
    project.write(
        "bad.md", "![](https://e.example/a.png) ![](none.png) ![](broken.png) ![](../out.png) ![](pictures/a.png)"
    )
    loaded = several(project, document_path="bad.md")
    assert [image.metadata.path.value for image in loaded.images] == ["pictures/a.png"]
    assert [problem.target for problem in loaded.problems] == [
        "https://e.example/a.png",
        "none.png",
        "../out.png",
        "broken.png",
    ]


def test_load__five_at_most_and_together_within_the_limit(project: AssetProject) -> None:
    """Each gets its share of the result; the others are named."""
    names = [f"n{number}.png" for number in range(7)]
    for number, name in enumerate(names):
        project.write(name, picture("PNG", (300, 200 + number), noisy=True))
    project.write("many.md", "\n\n".join(f"![]({name})" for name in [*names, *names]))
    loaded = several(project, limit=300_000, document_path="many.md")
    assert [image.metadata.path.value for image in loaded.images] == names[:5]
    assert loaded.omitted == tuple(names[5:])
    assert sum(len(image.data) for image in loaded.images) <= 300_000
    assert all(image.metadata.scaled for image in loaded.images)


def test_load__pictures_in_tables_lists_references_and_html(project: AssetProject) -> None:
    """Wherever a document can show a picture."""
    project.write(
        "all.md",
        "| a |\n|---|\n| ![](pictures/a.png) |\n\n- one\n  - ![][ref]\n\n<img src='c.gif'>\n\n"
        "> [!note] t\n> ![](pictures/B.jpg)\n\n[ref]: d.webp\n",
    )
    assert [image.metadata.path.value for image in several(project, document_path="all.md").images] == [
        "pictures/a.png",
        "d.webp",
        "c.gif",
        "pictures/B.jpg",
    ]
    assert [
        image.metadata.path.value for image in several(project, document_path="all.md", pointer="li1.li1").images
    ] == ["d.webp"]


# -- saving


def test_save__free_names_in_the_image_folder(project: AssetProject) -> None:
    """cover.png, cover-2.png, whatever case the taken name has."""
    first = save(project, file_name="cover.png", alt_text="A cover")
    assert (first.path.value, first.mime_type, first.width, first.height) == ("images/cover.png", "image/png", 60, 40)
    assert (first.bytes, first.sha256, first.markdown) == (len(PNG), sha256_hex(PNG), "![A cover](images/cover.png)")
    project.write("images/Cover-2.png", PNG)
    assert save(project, file_name="cover.png").path.value == "images/cover-3.png"
    assert project.read("images/cover.png") == PNG
    assert project.told == []


@pytest.mark.parametrize(
    ("given", "data", "path"),
    [
        ({}, PNG, "images/image.png"),
        ({"file": {**file_of(), "file_name": "Screen Shot.PNG"}}, PNG, "images/Screen Shot.png"),
        ({"file": {**file_of(), "file_name": "../../x/evil.png"}}, JPEG, "images/evil.jpg"),
        ({"file": {**file_of(), "file_name": "photo.png", "mime_type": "image/png"}}, JPEG, "images/photo.jpg"),
        ({"file_name": "cover"}, JPEG, "images/cover.jpg"),
        ({"file_name": "cover.JPEG"}, JPEG, "images/cover.JPEG"),
        ({"file_name": "v1.2"}, PNG, "images/v1.2.png"),
        ({"target_path": "deep/new/x.png"}, PNG, "deep/new/x.png"),
        ({"target_path": "X.JPG"}, JPEG, "X.JPG"),
    ],
)
def test_save__where_it_goes(project: AssetProject, given: dict[str, Any], data: bytes, path: str) -> None:
    """By the caller's name, the client's, or an exact place."""
    saved = save(project, data, **given)
    assert saved.path.value == path
    assert project.read(path) == data


def test_save__an_image_folder_of_another_case_is_the_image_folder(project: AssetProject) -> None:
    """Two folders that differ in case only cannot be checked out everywhere."""
    project.write("Images/old.png", PNG)
    assert save(project, file_name="new.png").path.value == "Images/new.png"


def test_save__a_file_in_place_of_the_image_folder_is_named(project: AssetProject) -> None:
    """It ends, and says what is in the way."""
    project.write("images", "a file")
    assert "images" in refuse(AlreadyExists, save, project=project).message


@pytest.mark.parametrize(
    ("given", "data", "error"),
    [
        ({"file": "https://files.example.org/a.png"}, PNG, InvalidArgument),
        ({"file": "data:image/png;base64,AAAA"}, PNG, InvalidArgument),
        ({"file": {"download_url": "data:image/png;base64,AAAA", "file_id": "x"}}, PNG, InvalidArgument),
        ({"file": {"download_url": URL}}, PNG, InvalidArgument),
        ({"file": {"file_id": "x"}}, PNG, InvalidArgument),
        ({"file": None}, PNG, InvalidArgument),
        ({"file": ["x"]}, PNG, InvalidArgument),
        ({"file_name": "a.png", "target_path": "b.png"}, PNG, InvalidArgument),
        ({"file_name": "sub/a.png"}, PNG, InvalidArgument),
        ({"file_name": "  "}, PNG, InvalidArgument),
        ({"file_name": "CON.png"}, PNG, InvalidPath),
        ({"file_name": "a.jpg"}, PNG, UnsupportedFormat),
        ({"target_path": "a.jpg"}, PNG, UnsupportedFormat),
        ({"target_path": "a.txt"}, PNG, UnsupportedFormat),
        ({"target_path": "a.md"}, PNG, UnsupportedFormat),
        ({"target_path": "../a.png"}, PNG, InvalidPath),
        ({"target_path": "a?.png"}, PNG, InvalidPath),
        ({"target_path": "c.gif"}, picture("GIF"), AlreadyExists),
        ({"target_path": "C.GIF"}, picture("GIF"), AlreadyExists),
        ({"relative_to": "text.txt"}, PNG, UnsupportedFormat),
        ({}, b"<html>", UnsupportedFormat),
        ({}, PNG[:50], UnsupportedFormat),
        ({}, bomb(30_000, 30_000), TooLarge),
        ({"file": {"download_url": "https://gone.example/", "file_id": "x"}}, PNG, DownloadFailed),
    ],
)
def test_save__refusals_write_nothing(
    project: AssetProject, given: dict[str, Any], data: bytes, error: type[KnowledgeBaseError]
) -> None:
    """Whatever is wrong, no file and no folder appears, and no signature is told."""
    before = project.files()
    message = refuse(error, save, project=project, data=data, **given).message
    assert project.files() == before
    assert not (project.root / "images").exists()
    assert "secret" not in message


def test_save__what_is_refused_by_its_arguments_is_not_downloaded(project: AssetProject) -> None:
    """The download comes last."""
    downloads = Downloads({URL: PNG})
    refuse(AlreadyExists, ImageService(project.mutations, downloads).save, file=file_of(), target_path="c.gif")
    assert downloads.asked == []


def test_save__strings_are_told_how_to_pass_a_file(project: AssetProject) -> None:
    """The message is what a model learns from."""
    message = refuse(InvalidArgument, save, project=project, file="iVBORw0KGgo").message
    assert "download_url" in message and "base64" in message


@pytest.mark.parametrize(
    ("path", "alt", "relative_to", "markdown"),
    [
        ("images/a.png", "", None, "![](images/a.png)"),
        ("images/my plan.png", "My plan", None, "![My plan](images/my%20plan.png)"),
        ("images/a(1).png", "x", None, "![x](images/a%281%29.png)"),
        ("images/夜.png", "夜", None, "![夜](images/%E5%A4%9C.png)"),
        ("images/a%20b.png", "", None, "![](images/a%2520b.png)"),
        ("images/a#b.png", "", None, "![](images/a%23b.png)"),
        ("a.png", "a [b] *c* `d` <e> | \\ f\ng", None, "![a \\[b\\] \\*c\\* \\`d\\` \\<e\\> \\| \\\\ f g](a.png)"),
        ("images/a.png", "", "note.md", "![](images/a.png)"),
        ("images/a.png", "", "deep/er/note.md", "![](../../images/a.png)"),
        ("deep/img/a.png", "", "deep/note.md", "![](img/a.png)"),
    ],
)
def test_image_markdown__is_escaped_and_relative(path: str, alt: str, relative_to: str | None, markdown: str) -> None:
    """It shows the file from where it will stand, and reads as the text that was meant."""
    document = None if relative_to is None else RelPath(relative_to)
    assert image_markdown(RelPath(path), alt, document) == markdown


def test_save__the_markdown_for_a_document(project: AssetProject) -> None:
    """relativeTo gives the path from that document."""
    assert save(project, file_name="x.png", relative_to="sub/other.md").markdown == "![](../images/x.png)"


def test_save__is_recorded(project: AssetProject) -> None:
    """The change names the tool and the file, and nothing of the URL."""
    saved = save(project)
    assert saved.change_id is not None
    change = project.history.get(saved.change_id)
    assert (change.tool, change.files[0].path.value, change.files[0].previous_hash) == (
        "kb_save_image",
        "images/image.png",
        None,
    )
    assert "secret" not in change.summary


# -- moving and deleting


def test_move__links_follow_if_asked(project: AssetProject) -> None:
    """Only destinations change, in every document, and the answer lists them."""
    moved = service(project).move(source_path="pictures/a.png", target_path="art/my plan.png", update_links=True)
    assert (moved.applied, moved.path, moved.previous_path) == (True, "art/my plan.png", "pictures/a.png")
    assert moved.sha256 == sha256_hex(PNG)
    assert {link.path: link.count for link in moved.updated_links} == {"note.md": 1, "sub/other.md": 2}
    assert project.read("art/my plan.png") == PNG
    assert not (project.root / "pictures/a.png").exists()
    assert b"art/my%20plan.png" in project.read("note.md") or b"<art/my plan.png>" in project.read("note.md")
    assert moved.index_synchronized is not None
    assert project.told == ["note.md", "sub/other.md"]


def test_move__by_default_only_the_file_moves(project: AssetProject) -> None:
    """Documents keep their bytes, and the index has nothing to do with it."""
    note = project.read("note.md")
    moved = service(project).move(
        source_path="pictures/a.png", target_path="b.png", expected_sha256=sha256_hex(PNG).upper()
    )
    assert (moved.updated_links, moved.index_synchronized) == ((), None)
    assert project.read("note.md") == note
    assert project.told == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"source_path": "none.png", "target_path": "x.png"}, NotFound),
        ({"source_path": "note.md", "target_path": "x.png"}, UnsupportedFormat),
        ({"source_path": "pictures/a.png", "target_path": "x.jpg"}, UnsupportedFormat),
        ({"source_path": "pictures/a.png", "target_path": "x"}, UnsupportedFormat),
        ({"source_path": "pictures/a.png", "target_path": "x.md"}, UnsupportedFormat),
        ({"source_path": "pictures/a.png", "target_path": "d.webp"}, UnsupportedFormat),
        ({"source_path": "wrong.jpg", "target_path": "pictures/A.png"}, AlreadyExists),
        ({"source_path": "wrong.jpg", "target_path": "pictures/a.png"}, AlreadyExists),
        ({"source_path": "pictures/a.png", "target_path": "pictures/a.png"}, InvalidArgument),
        ({"source_path": "pictures/a.png", "target_path": "../x.png"}, InvalidPath),
        ({"source_path": "pictures/a.png", "target_path": "nul.png"}, InvalidPath),
        ({"source_path": "broken.png", "target_path": "x.png"}, UnsupportedFormat),
        ({"source_path": "pictures/a.png", "target_path": "x.png", "expected_sha256": "0" * 64}, Conflict),
    ],
)
def test_move__refusals(project: AssetProject, given: dict[str, Any], error: type[KnowledgeBaseError]) -> None:
    """Nothing is moved."""
    before = project.files()
    refuse(error, service(project).move, **given)
    assert project.files() == before


def test_move__a_name_can_be_mended(project: AssetProject) -> None:
    """A wrong extension becomes the right one, and a case-only rename works."""
    images = service(project)
    images.move(source_path="wrong.jpg", target_path="right.png")
    images.move(source_path="pictures/B.jpg", target_path="pictures/b.jpg")
    names = set(project.files())
    assert {"right.png", "pictures/b.jpg"} <= names and not names & {"wrong.jpg", "pictures/B.jpg"}


def test_move__a_dry_run_shows_and_its_plan_binds(project: AssetProject) -> None:
    """What was shown is done, or nothing."""
    images = service(project)
    before = project.files()
    given: dict[str, Any] = {"source_path": "pictures/a.png", "target_path": "z.png", "update_links": True}
    shown = images.move(dry_run=True, **given)
    assert (shown.applied, shown.change_id) == (False, None)
    assert {diff.path for diff in shown.diffs} == {"z.png", "note.md", "sub/other.md"}
    assert project.files() == before
    project.write("sub/third.md", "![](../pictures/a.png)")
    refuse(Conflict, images.move, plan_hash=shown.plan_hash, **given)
    again = images.move(dry_run=True, **given)
    assert images.move(plan_hash=again.plan_hash, **given).applied


def test_delete__broken_links_are_reported_and_bytes_kept(project: AssetProject) -> None:
    """The history holds what is gone."""
    deleted = service(project).delete(path="pictures/a.png", expected_sha256=sha256_hex(PNG))
    assert (deleted.applied, deleted.deleted, deleted.path) == (True, True, "pictures/a.png")
    assert [(link.path, link.target) for link in deleted.broken_links] == [
        ("note.md", "pictures/a.png"),
        ("sub/other.md", "../pictures/a.png"),
        ("sub/other.md", "../pictures/a.png"),
    ]
    assert deleted.change_id is not None
    (images,) = project.history.images(deleted.change_id)
    assert images.before == PNG
    assert not (project.root / "pictures/a.png").exists()


def test_delete__a_broken_image_can_go(project: AssetProject) -> None:
    """Its content does not matter."""
    assert service(project).delete(path="broken.png").deleted


def test_delete__a_dry_run_deletes_nothing(project: AssetProject) -> None:
    """It says what would break."""
    shown = service(project).delete(path="pictures/a.png", dry_run=True)
    assert (shown.applied, shown.deleted, len(shown.broken_links)) == (False, False, 3)
    assert project.read("pictures/a.png") == PNG


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"path": "none.png"}, NotFound),
        ({"path": "note.md"}, UnsupportedFormat),
        ({"path": "text.txt"}, UnsupportedFormat),
        ({"path": "/etc/x.png"}, InvalidPath),
        ({"path": "pictures/a.png", "expected_sha256": "f" * 64}, Conflict),
    ],
)
def test_delete__refusals(project: AssetProject, given: dict[str, Any], error: type[KnowledgeBaseError]) -> None:
    """Nothing goes."""
    before = project.files()
    refuse(error, service(project).delete, **given)
    assert project.files() == before


def test_results__are_plain_values(project: AssetProject) -> None:
    """Everything but the blocks can be told as JSON."""
    import dataclasses

    saved = save(project)
    assert json.dumps({key: str(value) for key, value in dataclasses.asdict(saved).items()})
