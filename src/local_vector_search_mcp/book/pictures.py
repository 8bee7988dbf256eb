"""Pictures of a book: what they declare, and the pixels that the page needs of them.

A picture keeps its bytes where nothing is gained by touching them: JPEG data and the compressed rows of a PNG go into
a PDF as they are. Orientation is a matter of placing, so it never costs a decode.
"""

import hashlib
import io
import struct
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from local_vector_search_mcp.book.profiles import ProfileValues

if TYPE_CHECKING:
    import PIL.Image

MAX_PIXELS: Final = 100_000_000
MAX_BYTES: Final = 25 * 1024 * 1024
_ORIENTATION_TAG: Final = 0x0112
_TURNED: Final = frozenset({5, 6, 7, 8})
# Coding a JPEG again costs quality, so it has to save at least this share.
_WORTH_CODING_AGAIN: Final = 0.85
_NOT_WORTH_BYTES: Final = 16 * 1024
_PILLOW_ERRORS: Final = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
)
_ICC_CHANNELS: Final = {b"GRAY": 1, b"RGB ": 3, b"CMYK": 4}


class PictureError(ValueError):
    """A picture cannot be shown; the message is the end of a sentence."""


class Coding(StrEnum):
    """How picture data is compressed, by its name in a PDF."""

    JPEG = "DCTDecode"
    FLATE = "FlateDecode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as it came: its bytes, its size in pixels as stored, and how it is turned (EXIF, 1 to 8)."""

    data: bytes
    key: str
    kind: str
    width: int
    height: int
    orientation: int

    @property
    def shown_size(self) -> tuple[int, int]:
        """Width and height as they are seen."""
        return (self.height, self.width) if self.orientation in _TURNED else (self.width, self.height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixels:
    """Picture data as a PDF holds it.

    ``channels`` is 1, 3 or 4; ``palette`` holds RGB triples where the data are indexes into it. PNG rows keep their
    predictors.
    """

    coding: Coding
    data: bytes
    width: int
    height: int
    channels: int
    bits: int = 8
    palette: bytes = b""
    inverted: bool = False
    icc_profile: bytes = b""
    alpha: "Pixels | None" = None

    @property
    def total_bytes(self) -> int:
        """What it takes in the PDF."""
        return len(self.data) + len(self.palette) + (self.alpha.total_bytes if self.alpha else 0)


def open_picture(data: bytes) -> Picture:
    """What a picture declares; decodes no pixels.

    Raises:
        PictureError: It is too large, of no known kind, or damaged.
    """
    if len(data) > MAX_BYTES:
        raise PictureError("it is larger than 25 MiB")
    try:
        with _open(data) as image:
            width, height = image.size
            kind = image.format or ""
            orientation = _orientation(image)
    except _PILLOW_ERRORS as error:
        raise PictureError("it is damaged or no PNG, JPEG, WebP or GIF") from error
    if width * height > MAX_PIXELS:
        raise PictureError("it declares more than 100 megapixels")
    if width < 1 or height < 1:
        raise PictureError("it has no pixels")
    return Picture(
        data=data,
        key=hashlib.sha256(data).hexdigest(),
        kind="JPEG" if kind == "MPO" else kind,
        width=width,
        height=height,
        orientation=orientation if 1 <= orientation <= 8 else 1,
    )


def _orientation(image: "PIL.Image.Image") -> int:
    """The EXIF orientation; read from the header, where ``getexif`` would decode a whole PNG."""
    import PIL.Image

    data = image.info.get("exif")
    if not isinstance(data, bytes):
        return 1
    exif = PIL.Image.Exif()
    exif.load(data)
    value = exif.get(_ORIENTATION_TAG, 1)
    return value if isinstance(value, int) else 1


def check_picture(picture: Picture) -> None:
    """Decode a picture once.

    Raises:
        PictureError: Its pixels cannot be decoded.
    """
    try:
        with _open(picture.data) as image:
            image.draft("L", (max(1, picture.width // 8), max(1, picture.height // 8)))
            image.load()
    except _PILLOW_ERRORS as error:
        raise PictureError("its pixels cannot be decoded") from error


def pixels_for(picture: Picture, ratio: float, profile: ProfileValues) -> Pixels:
    """The pixels that go into the PDF.

    Args:
        picture: The picture.
        ratio: How many of its pixels the page needs, per side; 1 or less.
        profile: The image profile.

    Returns:
        The smallest of: as it is, scaled down, and for photographs coded again.
    """
    kept = _as_it_is(picture)
    if kept is not None and kept.coding is Coding.JPEG and ratio >= 1 and len(picture.data) > _NOT_WORTH_BYTES:
        coded = _coded(picture, 1.0, profile)
        return coded if coded.total_bytes < kept.total_bytes * _WORTH_CODING_AGAIN else kept
    if kept is not None and ratio >= 1:
        return kept
    coded = _coded(picture, ratio, profile)
    return kept if kept is not None and kept.total_bytes <= coded.total_bytes else coded


def _open(data: bytes) -> "PIL.Image.Image":
    import PIL.Image

    # The limit is checked here, by declared size.
    PIL.Image.MAX_IMAGE_PIXELS = None
    return PIL.Image.open(io.BytesIO(data), formats=_plugins())


@cache
def _plugins() -> tuple[str, ...]:
    """The formats that may be opened, their plugins loaded: Pillow loads some only for formats that it was not told."""
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    files = (PngImagePlugin.PngImageFile, JpegImagePlugin.JpegImageFile, GifImagePlugin.GifImageFile)
    return tuple(str(kind.format) for kind in (*files, WebPImagePlugin.WebPImageFile))


def _as_it_is(picture: Picture) -> Pixels | None:
    """The original data, where a PDF can hold them."""
    if picture.kind == "PNG":
        return png_pixels(picture.data)
    if picture.kind != "JPEG":
        return None
    with _open(picture.data) as image:
        channels = len(image.getbands())
        if image.mode not in ("L", "RGB", "CMYK"):
            return None
        return Pixels(
            coding=Coding.JPEG,
            data=picture.data,
            width=picture.width,
            height=picture.height,
            channels=channels,
            # Adobe writes CMYK inverted, and says so by its marker.
            inverted=image.mode == "CMYK" and b"Adobe\x00" in picture.data[:65536],
            icc_profile=_profile(image.info.get("icc_profile"), channels),
        )


def png_pixels(data: bytes) -> Pixels | None:
    """The compressed rows of a PNG as they are; ``None`` where it is interlaced or has transparency."""
    position, palette, profile = 8, b"", b""
    rows: list[bytes] = []
    width = height = bits = colour = interlace = 0
    while position + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        if kind == b"IHDR" and len(body) == 13:
            width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = body
        elif kind == b"tRNS" or kind == b"acTL":
            return None
        elif kind == b"iCCP":
            profile = _inflated(body.partition(b"\0")[2][1:])
        elif kind == b"IDAT":
            rows.append(body)
        elif kind == b"IEND":
            break
        position += 12 + length
    channels = {0: 1, 2: 3, 3: 1}.get(colour)
    if channels is None or interlace or not rows or (colour == 3 and not palette):
        return None
    return Pixels(
        coding=Coding.FLATE,
        data=b"".join(rows),
        width=width,
        height=height,
        channels=channels,
        bits=bits,
        palette=palette if colour == 3 else b"",
        icc_profile=_profile(profile, 3 if colour == 3 else channels),
    )


def _coded(picture: Picture, ratio: float, profile: ProfileValues) -> Pixels:
    """The picture decoded, scaled and coded anew; photographs as JPEG, everything else without loss."""
    try:
        with _open(picture.data) as image:
            size = (max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio)))
            if picture.kind == "JPEG" and ratio < 1:
                image.draft(image.mode, size)
            icc = image.info.get("icc_profile")
            frame = _scaled(_plain(image), size)
    except _PILLOW_ERRORS as error:
        raise PictureError("its pixels cannot be decoded") from error
    lossy = picture.kind == "JPEG" or (picture.kind == "WEBP" and b"VP8 " in picture.data[:4096])
    alpha = frame.getchannel("A") if frame.mode in ("LA", "RGBA") else None
    opaque = frame.convert(frame.mode[:-1]) if alpha is not None else frame
    coded = _jpeg(opaque, profile.jpeg_quality) if lossy else _lossless(opaque)
    return replace(
        coded,
        alpha=_lossless(alpha) if alpha is not None else None,
        icc_profile=_profile(icc, coded.channels if not coded.palette else 3),
    )


def _plain(image: "PIL.Image.Image") -> "PIL.Image.Image":
    """The first frame in 8-bit grey, RGB or CMYK, with alpha where it has some."""
    if image.mode.startswith("I"):
        # Pillow would clip 16-bit grey to white instead of scaling it.
        return image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        return image.convert("LA" if image.mode in ("L", "LA") else "RGBA")
    return image if image.mode in ("L", "RGB", "CMYK") else image.convert("L" if image.mode == "1" else "RGB")


def _scaled(image: "PIL.Image.Image", size: tuple[int, int]) -> "PIL.Image.Image":
    import PIL.Image

    if image.size == size:
        image.load()
        return image
    # Premultiplied, so that the colour of what cannot be seen does not bleed into edges.
    if image.mode == "RGBA":
        return image.convert("RGBa").resize(size, PIL.Image.Resampling.LANCZOS).convert("RGBA")
    return image.resize(size, PIL.Image.Resampling.LANCZOS)


def _jpeg(image: "PIL.Image.Image", quality: int) -> Pixels:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, optimize=True, progressive=True)
    return Pixels(
        coding=Coding.JPEG,
        data=buffer.getvalue(),
        width=image.width,
        height=image.height,
        channels=len(image.getbands()),
        # Pillow follows Adobe and writes CMYK inverted.
        inverted=image.mode == "CMYK",
    )


def _lossless(image: "PIL.Image.Image") -> Pixels:
    import PIL.Image

    if image.mode == "CMYK":
        image = image.convert("RGB")
    candidates = [_as_png(image)]
    if image.mode == "RGB" and (colours := image.getcolors(256)) is not None and len(colours) <= 256:
        candidates.append(_as_png(image.quantize(256, dither=PIL.Image.Dither.NONE)))
    return min(candidates, key=lambda pixels: pixels.total_bytes)


def _as_png(image: "PIL.Image.Image") -> Pixels:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    pixels = png_pixels(buffer.getvalue())
    assert pixels is not None
    return replace(pixels, icc_profile=b"")


def _profile(profile: bytes | None, channels: int) -> bytes:
    """An ICC profile that fits the number of channels; empty otherwise."""
    if not profile or len(profile) < 128 or profile[36:40] != b"acsp":
        return b""
    return profile if _ICC_CHANNELS.get(profile[16:20]) == channels else b""


def _inflated(data: bytes) -> bytes:
    """An ICC profile out of its PNG chunk, of a sane size."""
    try:
        return zlib.decompressobj().decompress(data, 8 * 1024 * 1024)
    except zlib.error:
        return b""
