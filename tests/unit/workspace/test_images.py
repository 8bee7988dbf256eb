"""Images by content: types, limits before decoding, scaling for a reader, free names."""

import io

import PIL.Image
import pytest
from tests.support.pictures import bomb, picture, srgb_profile, upright_marker

from local_vector_search_mcp.errors import KnowledgeBaseError, TooLarge, UnsupportedFormat
from local_vector_search_mcp.relpath import RelPath
from local_vector_search_mcp.workspace.images import (
    EXTENSIONS,
    HEADER_BYTES,
    ImageType,
    check_decodes,
    fit_block,
    free_name,
    header_info,
    inspect_image,
    is_image_path,
    safe_stem,
    sniff,
)

KINDS = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp", "GIF": ".gif"}


def opened(data: bytes) -> PIL.Image.Image:
    return PIL.Image.open(io.BytesIO(data))


def refuse(name: str, data: bytes, error: type[KnowledgeBaseError]) -> str:
    with pytest.raises(error) as caught:
        check_decodes(RelPath(name), data)
    return caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_inspect__type_and_size_come_from_the_content(kind: str) -> None:
    """Each kind is known by its signature, whatever its bytes hold otherwise."""
    info = inspect_image(RelPath("a" + KINDS[kind]), picture(kind, (41, 17)))
    assert (info.type.mime_type, info.width, info.height) == (f"image/{kind.lower()}", 41, 17)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_inspect__extension_and_content_must_agree(kind: str, extension: str) -> None:
    """A wrong extension would give the wrong media type, which ends conversations in some clients."""
    name, data = RelPath("x" + extension), picture(kind)
    if EXTENSIONS[extension].value == kind.lower():
        assert inspect_image(name, data).type is EXTENSIONS[extension]
    else:
        assert kind.lower() in refuse(name.value, data, UnsupportedFormat)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.png", b""),
        ("a.png", b"\x89PNG\r\n\x1a\n"),
        ("a.png", picture("PNG")[:60]),
        ("a.png", picture("PNG", (200, 200), noisy=True)[:-5000]),
        ("a.jpg", picture("JPEG")[:100]),
        ("a.jpg", b"\xff\xd8\xff\xe0" + b"\0" * 40),
        ("a.gif", b"GIF89a"),
        ("a.webp", b"RIFF\x10\0\0\0WEBPVP8 "),
        ("a.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("a.txt", picture("PNG")),
        ("a", picture("PNG")),
    ],
)
def test_check_decodes__damaged_and_foreign_files_are_refused(name: str, data: bytes) -> None:
    """What cannot be decoded is noticed before it is kept."""
    refuse(name, data, UnsupportedFormat)


@pytest.mark.parametrize(("width", "height"), [(30_000, 30_000), (100_000_001, 1), (10_001, 10_000)])
def test_check_decodes__bombs_are_refused_by_declared_size(width: int, height: int) -> None:
    """Nothing is decoded, so a file of a hundred bytes cannot take gigabytes."""
    assert "100000000" in refuse("a.png", bomb(width, height), TooLarge)


def test_inspect__a_file_above_the_byte_limit_is_refused() -> None:
    """25 MiB is the most."""
    data = picture("PNG") + b"\0" * (25 * 1024 * 1024)
    refuse("a.png", data, TooLarge)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_fit_block__within_the_limits_the_bytes_stay(kind: str) -> None:
    """What a model can take comes unchanged."""
    data = picture(kind)
    block = fit_block(RelPath("a" + KINDS[kind]), data)
    assert (block.data, block.scaled) == (data, False)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize(("size", "side"), [((300, 100), 100), ((100, 300), 64), ((301, 299), 16), ((5, 900), 30)])
def test_fit_block__longer_sides_are_scaled_down(kind: str, size: tuple[int, int], side: int) -> None:
    """The longer side is exactly what was asked for, the shape stays, and so does the kind."""
    block = fit_block(RelPath("a" + KINDS[kind]), picture(kind, size), max_side=side)
    assert block.scaled
    assert block.type.value == kind.lower()
    assert opened(block.data).size == (block.width, block.height)
    assert max(block.width, block.height) == side
    shown = max(1, round(min(size) * side / max(size)))
    assert abs(min(block.width, block.height) - shown) <= 1


@pytest.mark.parametrize(("kind", "mode"), [("PNG", "RGB"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("WEBP", "RGB")])
def test_fit_block__too_many_bytes_are_scaled_until_they_fit(kind: str, mode: str) -> None:
    """Noise does not compress, so only fewer pixels help; transparency survives."""
    data = picture(kind, (400, 300), mode=mode, noisy=True)
    block = fit_block(RelPath("a" + KINDS[kind]), data, max_bytes=20_000)
    assert len(block.data) <= 20_000 < len(data)
    assert block.scaled
    assert opened(block.data).has_transparency_data == (mode == "RGBA")


def test_fit_block__nothing_fits_one_byte() -> None:
    """A limit that no image fits ends in a refusal, not in a loop."""
    with pytest.raises(TooLarge):
        fit_block(RelPath("a.png"), picture("PNG", (64, 64), noisy=True), max_bytes=10)


def test_fit_block__a_gif_comes_as_the_png_of_its_first_frame() -> None:
    """Moving images are shown by where they begin."""
    frames = [PIL.Image.new("RGB", (20, 10), colour) for colour in ("red", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=50)
    block = fit_block(RelPath("a.gif"), buffer.getvalue())
    assert (block.type, block.scaled) == (ImageType.PNG, False)
    assert opened(block.data).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_fit_block__a_scaled_photograph_is_upright(orientation: int) -> None:
    """EXIF orientation is applied where the pixels change anyway."""
    block = fit_block(RelPath("a.jpg"), upright_marker(orientation), max_side=40)
    image = opened(block.data).convert("RGB")
    assert image.size == (40, 20)
    corner, opposite = image.getpixel((8, 4)), image.getpixel((32, 16))
    assert isinstance(corner, tuple)
    assert isinstance(opposite, tuple)
    assert corner[0] > 200 > 100 > corner[1]
    assert min(opposite) > 200


def test_fit_block__sixteen_bits_of_grey_are_not_clipped() -> None:
    """A 16-bit grey comes out as that grey."""
    buffer = io.BytesIO()
    PIL.Image.new("I;16", (64, 64), 128 * 256).save(buffer, "PNG")
    block = fit_block(RelPath("a.png"), buffer.getvalue(), max_side=32)
    grey = opened(block.data).convert("L").getpixel((4, 4))
    assert isinstance(grey, int | float)
    assert abs(grey - 128) <= 1


def test_fit_block__a_colour_profile_survives_scaling() -> None:
    """The profile of the original goes into the smaller image."""
    profile = srgb_profile()
    block = fit_block(RelPath("a.png"), picture("PNG", (90, 60), icc_profile=profile), max_side=30)
    assert opened(block.data).info["icc_profile"] == profile


@pytest.mark.parametrize("kind", KINDS)
def test_header_info__the_first_bytes_tell(kind: str) -> None:
    """A list of images reads no whole files."""
    data = picture(kind, (800, 600), noisy=True)
    info = header_info(RelPath("a" + KINDS[kind]), data[:HEADER_BYTES])
    assert info is not None
    assert (info.width, info.height) == (800, 600)


@pytest.mark.parametrize(
    ("name", "data"), [("a.png", b"nothing"), ("a.png", picture("GIF")), ("a.jpg", b"\xff\xd8\xff")]
)
def test_header_info__what_does_not_fit_has_no_size(name: str, data: bytes) -> None:
    """A file that is no image is listed without a size."""
    assert header_info(RelPath(name), data) is None


def test_free_name__numbers_begin_at_two() -> None:
    """cover.png, cover-2.png, cover-3.png."""
    taken: set[str] = set()
    for expected in ("cover.png", "cover-2.png", "cover-3.png"):
        assert free_name("cover", ".png", taken.__contains__) == expected
        taken.add(expected)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("cover.png", "cover"),
        ("my plan.final.jpeg", "my plan.final"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\x\\shot.png", "shot"),
        ("a<b>:c?.png", "a-b-c"),
        ("", "image"),
        ("...", "image"),
        (".png", "image"),
        ("夜间模式.webp", "夜间模式"),
        ("x" * 500 + ".png", "x" * 120),
        ("a%2fb.png", "a-2fb"),
    ],
)
def test_safe_stem__names_of_unknown_origin_become_plain(name: str, stem: str) -> None:
    """Whatever a client calls a file, every system can hold the name."""
    assert safe_stem(name) == stem
    RelPath.parse_new(stem + ".png")


def test_sniff__only_known_signatures() -> None:
    """Other formats are none."""
    assert [sniff(data) for data in (b"", b"BM", b"%PDF-", b"RIFF\0\0\0\0WAVE")] == [None] * 4
    assert is_image_path(RelPath("a.JPEG")) and not is_image_path(RelPath("a.svg"))
