"""Pictures as a PDF holds them: as they came where that is best, else with the pixels that the page needs."""

import io
import zlib

import PIL.Image
import pytest
from tests.support.pictures import bomb, picture, srgb_profile, upright_marker

from local_vector_search_mcp.book.pictures import (
    Coding,
    Picture,
    PictureError,
    Pixels,
    check_picture,
    open_picture,
    pixels_for,
    png_pixels,
)
from local_vector_search_mcp.book.profiles import PROFILES, ImageProfile

STANDARD = PROFILES[ImageProfile.STANDARD]


def made(data: bytes, ratio: float = 1.0, profile: ImageProfile = ImageProfile.STANDARD) -> tuple[Picture, Pixels]:
    opened = open_picture(data)
    check_picture(opened)
    return opened, pixels_for(opened, ratio, PROFILES[profile])


def shown(pixels: Pixels) -> PIL.Image.Image:
    """The picture that a PDF reader would draw."""
    if pixels.coding is Coding.JPEG:
        return PIL.Image.open(io.BytesIO(pixels.data))
    depth = pixels.bits * pixels.channels
    stride = (pixels.width * depth + 7) // 8 + 1
    assert len(zlib.decompress(pixels.data)) == stride * pixels.height
    # The same rows in a PNG again, so that Pillow undoes the predictors.
    from tests.support.pictures import png_of

    return PIL.Image.open(
        io.BytesIO(png_of(pixels.data, pixels.width, pixels.height, pixels.bits, pixels.channels, pixels.palette))
    )


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "P"])
def test_pixels__an_opaque_png_goes_in_as_it_is(mode: str) -> None:
    """Its compressed rows, palette and depth."""
    image = (
        PIL.Image.linear_gradient("L").resize((30, 20)).convert("RGB").quantize(16)
        if mode == "P"
        else PIL.Image.linear_gradient("L").resize((30, 20)).convert(mode)
    )
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    _, pixels = made(buffer.getvalue())
    assert pixels == png_pixels(buffer.getvalue())
    assert shown(pixels).convert("RGB").tobytes() == image.convert("RGB").tobytes()


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_pixels__transparency_becomes_a_mask(mode: str) -> None:
    """Colour and alpha are kept apart, as PDF wants them."""
    image = PIL.Image.new(mode, (20, 10), (10, 20, 30, 90) if mode == "RGBA" else (40, 90))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    _, pixels = made(buffer.getvalue())
    assert pixels.alpha is not None
    assert shown(pixels.alpha).convert("L").getpixel((3, 3)) == 90
    assert shown(pixels).convert("RGB").getpixel((3, 3)) == image.convert("RGB").getpixel((3, 3))


def test_pixels__a_transparent_palette_keeps_its_mask() -> None:
    """Also where one colour of a palette is transparent."""
    image = PIL.Image.new("P", (8, 8), 1)
    image.putpalette([255, 0, 0, 0, 255, 0])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=1)
    _, pixels = made(buffer.getvalue())
    assert pixels.alpha is not None
    assert shown(pixels.alpha).convert("L").getpixel((1, 1)) == 0


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
@pytest.mark.parametrize("ratio", [0.5, 0.1, 0.001])
def test_pixels__scaled_to_what_the_page_needs(kind: str, ratio: float) -> None:
    """Never less than one pixel; never more bytes than the original."""
    data = picture(kind, (200, 100), noisy=True)
    opened, pixels = made(data, ratio)
    kept = pixels_for(opened, 1.0, STANDARD)
    assert pixels.total_bytes <= kept.total_bytes
    if pixels.total_bytes < kept.total_bytes:
        assert (pixels.width, pixels.height) == (max(1, round(200 * ratio)), max(1, round(100 * ratio)))


def test_pixels__an_image_that_would_grow_is_kept() -> None:
    """A clever PNG scaled down would need more bytes than it has."""
    image = PIL.Image.frombytes("1", (800, 800), picture("PNG", (400, 400), mode="L", noisy=True)[:80_000])
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    opened, pixels = made(buffer.getvalue(), 0.6)
    assert pixels == pixels_for(opened, 1.0, STANDARD)
    assert (pixels.width, pixels.bits) == (800, 1)


def test_pixels__a_good_jpeg_is_kept_and_a_heavy_one_coded_again() -> None:
    """Coding again costs quality, so it has to be worth it."""
    light, heavy = (
        picture("JPEG", (300, 300), noisy=True, quality=50),
        picture("JPEG", (300, 300), noisy=True, quality=100),
    )
    assert made(light)[1].data == light
    assert made(heavy)[1].total_bytes < len(heavy) * 0.85
    assert (
        made(heavy, profile=ImageProfile.PRINT)[1].total_bytes > made(heavy, profile=ImageProfile.SCREEN)[1].total_bytes
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_open__orientation_is_a_matter_of_placing(orientation: int) -> None:
    """The pixels stay; the size that is seen is the upright one."""
    data = upright_marker(orientation)
    opened, pixels = made(data)
    assert (opened.orientation, opened.shown_size) == (orientation, (80, 40))
    assert pixels.data == data


@pytest.mark.parametrize(("kind", "ratio"), [("PNG", 1.0), ("PNG", 0.5), ("JPEG", 1.0), ("JPEG", 0.5), ("WEBP", 1.0)])
def test_pixels__colour_profiles_survive(kind: str, ratio: float) -> None:
    """Whether the data are kept or made anew."""
    profile = srgb_profile()
    _, pixels = made(picture(kind, (60, 60), noisy=True, icc_profile=profile), ratio)
    assert pixels.icc_profile == profile


def test_pixels__profiles_that_do_not_fit_are_dropped() -> None:
    """An RGB profile on grey would be an invalid PDF; so would one that is none."""
    assert made(picture("PNG", mode="L", icc_profile=srgb_profile()))[1].icc_profile == b""
    assert made(picture("JPEG", icc_profile=b"nonsense"))[1].icc_profile == b""


def test_pixels__cmyk_stays_cmyk() -> None:
    """With Adobe's inversion where its marker says so."""
    _, pixels = made(picture("JPEG", mode="CMYK"))
    assert (pixels.channels, pixels.inverted) == (4, True)


def test_pixels__sixteen_bits_of_grey_are_not_clipped() -> None:
    """Scaled from 16 to 8 bits, and kept where nothing is scaled."""
    buffer = io.BytesIO()
    PIL.Image.new("I;16", (64, 64), 128 * 256).save(buffer, "PNG")
    assert made(buffer.getvalue())[1].bits == 16
    opened = open_picture(buffer.getvalue())
    assert opened.kind == "PNG"


@pytest.mark.parametrize(
    "data", [b"", b"x", picture("PNG")[:20], bomb(30_000, 30_000), b"\x89PNG\r\n\x1a\n" + b"\0" * 26 * 1024 * 1024]
)
def test_open__what_is_no_picture_is_refused(data: bytes) -> None:
    """Damaged, too large, or a bomb."""
    with pytest.raises(PictureError):
        open_picture(data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
def test_check__a_cut_file_is_noticed(kind: str) -> None:
    """Its header is fine, its pixels are not there."""
    data = picture(kind, (300, 300), noisy=True)
    with pytest.raises(PictureError):
        check_picture(open_picture(data[: len(data) // 3]))
