"""Images of a workspace: type by content, limits that hold before decoding, scaling for a reader, free names.

Works on bytes; reads and writes no files. Pillow is imported when the first image is decoded.
"""

import io
import math
import re
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from local_vector_search_mcp.errors import TooLarge, UnsupportedFormat
from local_vector_search_mcp.relpath import RelPath

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

MAX_IMAGE_BYTES: Final = 25 * 1024 * 1024
MAX_IMAGE_PIXELS: Final = 100_000_000
# Larger image blocks are refused by model interfaces, and can end a conversation.
BLOCK_MAX_BYTES: Final = 3_750_000
BLOCK_MAX_SIDE: Final = 8_000

# What Pillow raises for files that are damaged or made to harm. It has no common base class.
PILLOW_ERRORS: Final = (
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
# A decoded image takes hundreds of megabytes at the limit: one at a time is in memory.
_DECODING = threading.Lock()


class ImageType(StrEnum):
    """The image formats that a workspace holds."""

    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"
    GIF = "gif"

    @property
    def mime_type(self) -> str:
        """The media type, such as ``image/png``."""
        return f"image/{self.value}"

    @property
    def extension(self) -> str:
        """The usual extension with its dot."""
        return ".jpg" if self is ImageType.JPEG else f".{self.value}"


EXTENSIONS: Final = {
    ".png": ImageType.PNG,
    ".jpg": ImageType.JPEG,
    ".jpeg": ImageType.JPEG,
    ".webp": ImageType.WEBP,
    ".gif": ImageType.GIF,
}
# From here on speed counts more than the last percent of size or sharpness.
_LARGE_PIXELS: Final = 12_000_000
# Enough of a file for its signature and, in all but odd JPEG files, its size.
HEADER_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInfo:
    """What an image declares about itself: its type and its size in pixels as stored."""

    type: ImageType
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBlock:
    """Image bytes that a model interface takes, and whether they were scaled down."""

    data: bytes
    type: ImageType
    width: int
    height: int
    scaled: bool


def is_image_path(path: RelPath) -> bool:
    """Whether the extension is that of an image."""
    return path.suffix in EXTENSIONS


def sniff(data: bytes) -> ImageType | None:
    """The image type by signature, or ``None``."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ImageType.PNG
    if data.startswith(b"\xff\xd8\xff"):
        return ImageType.JPEG
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageType.WEBP
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageType.GIF
    return None


def inspect_image(path: RelPath, data: bytes) -> ImageInfo:
    """Type and size of an image file, its limits and its extension checked. Decodes no pixels.

    Raises:
        UnsupportedFormat: It is no image of a known type, is damaged, or its extension names another type.
        TooLarge: It has too many bytes or declares too many pixels.
    """
    if len(data) > MAX_IMAGE_BYTES:
        raise TooLarge(f"The image {path} has {len(data)} bytes; at most {MAX_IMAGE_BYTES} are taken.")
    found = sniff(data)
    check_extension(path, found)
    assert found is not None
    return _declared(str(path), data, found)


def check_extension(path: RelPath, found: ImageType | None) -> None:
    """Refuse a path whose extension does not name the type that the content has.

    Raises:
        UnsupportedFormat: The content is no known image, or the extension is another type's or none.
    """
    if found is None:
        raise UnsupportedFormat(f"The content of {path} is no PNG, JPEG, WebP or GIF image.")
    expected = EXTENSIONS.get(path.suffix)
    if expected is None:
        raise UnsupportedFormat(f"{path} has no image extension; its content is {found.value}: use {found.extension}.")
    if expected is not found:
        raise UnsupportedFormat(
            f"The extension of {path} says {expected.value}, its content is {found.value}; "
            f"rename it to {found.extension}."
        )


def header_info(path: RelPath, head: bytes) -> ImageInfo | None:
    """Type and size by a file's first ``HEADER_BYTES``; ``None`` where they do not tell, or do not fit its name."""
    found = sniff(head)
    if found is None or EXTENSIONS.get(path.suffix) is not found:
        return None
    if found is ImageType.WEBP:
        return _webp_header(head)
    try:
        with _open(head) as image:
            return ImageInfo(type=found, width=image.width, height=image.height)
    except PILLOW_ERRORS:
        return None


def _webp_header(head: bytes) -> ImageInfo | None:
    """The size in a WebP's first chunk; Pillow opens whole files only.

    Source: RFC 9649, WebP Image Format.
    """
    kind, body = head[12:16], head[20:30]
    if len(body) < 10:
        return None
    if kind == b"VP8X":
        width = int.from_bytes(body[4:7], "little") + 1
        height = int.from_bytes(body[7:10], "little") + 1
    elif kind == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        width = int.from_bytes(body[6:8], "little") & 0x3FFF
        height = int.from_bytes(body[8:10], "little") & 0x3FFF
    else:
        return None
    return ImageInfo(type=ImageType.WEBP, width=width, height=height)


def check_decodes(path: RelPath, data: bytes) -> ImageInfo:
    """Inspect an image and decode it once, so that a damaged file is noticed before it is kept.

    Raises:
        UnsupportedFormat: As ``inspect_image``, or its pixels cannot be decoded.
        TooLarge: As ``inspect_image``.
    """
    info = inspect_image(path, data)
    _decoded(str(path), data, lambda image: image.load())
    return info


def fit_block(
    path: RelPath, data: bytes, *, max_side: int = BLOCK_MAX_SIDE, max_bytes: int = BLOCK_MAX_BYTES
) -> ImageBlock:
    """The image as a block that model interfaces take.

    PNG, JPEG and WebP within the limits come as they are. Larger ones are scaled down, upright by their EXIF
    orientation; a GIF comes as a PNG of its first frame.

    Raises:
        UnsupportedFormat: As ``inspect_image``, or its pixels cannot be decoded.
        TooLarge: As ``inspect_image``, or no size above one pixel fits ``max_bytes``.
    """
    info = inspect_image(path, data)
    fits = max(info.width, info.height) <= max_side
    if fits and len(data) <= max_bytes and info.type is not ImageType.GIF:
        return ImageBlock(data=data, type=info.type, width=info.width, height=info.height, scaled=False)
    return _decoded(str(path), data, lambda image: _scaled(str(path), image, info, max_side, max_bytes))


def free_name(stem: str, extension: str, taken: Callable[[str], bool]) -> str:
    """The first of ``stem.ext``, ``stem-2.ext``, ``stem-3.ext`` … that is not taken."""
    candidate = f"{stem}{extension}"
    number = 2
    while taken(candidate):
        candidate = f"{stem}-{number}{extension}"
        number += 1
    return candidate


def safe_stem(name: str) -> str:
    """A file name of unknown origin as a stem that every system can hold; ``image`` where nothing is left."""
    stem = name.replace("\\", "/").rsplit("/", 1)[-1]
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", stem)
    stem = re.sub(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\/%\ud800-\udfff]+', "-", stem).strip(" .-")
    while len(stem.encode("utf-8")) > 120:
        stem = stem[:-1]
    return stem.rstrip(" .-") or "image"


def _open(data: bytes) -> "Image":
    import PIL.Image

    # The limit below is checked by us, with an error of ours; Pillow's own is a warning that nobody reads.
    PIL.Image.MAX_IMAGE_PIXELS = None
    return PIL.Image.open(io.BytesIO(data), formats=_plugins())


@cache
def _plugins() -> tuple[str, ...]:
    """The formats that may be opened, their plugins loaded: Pillow loads some only for formats that it was not told."""
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    files = (PngImagePlugin.PngImageFile, JpegImagePlugin.JpegImageFile, GifImagePlugin.GifImageFile)
    return tuple(str(kind.format) for kind in (*files, WebPImagePlugin.WebPImageFile))


def _declared(name: str, data: bytes, found: ImageType) -> ImageInfo:
    try:
        with _open(data) as image:
            width, height = image.size
    except PILLOW_ERRORS as error:
        raise UnsupportedFormat(f"The image {name} is damaged: its header cannot be read.") from error
    if width * height > MAX_IMAGE_PIXELS:
        raise TooLarge(
            f"The image {name} declares {width} × {height} pixels; at most {MAX_IMAGE_PIXELS} in all are decoded."
        )
    return ImageInfo(type=found, width=width, height=height)


def _decoded(name: str, data: bytes, use: Callable[["Image"], T]) -> T:
    with _DECODING:
        try:
            with _open(data) as image:
                return use(image)
        except PILLOW_ERRORS as error:
            raise UnsupportedFormat(f"The image {name} is damaged: its pixels cannot be decoded.") from error


def _scaled(name: str, image: "Image", info: ImageInfo, max_side: int, max_bytes: int) -> ImageBlock:
    import PIL.Image
    import PIL.ImageOps

    if info.type is ImageType.JPEG and max(info.width, info.height) > max_side:
        # The decoder can give half, quarter or eighth size at a fraction of the memory.
        image.draft("RGB", (max_side, max_side))
    upright = PIL.ImageOps.exif_transpose(image)
    frame = _plain_mode(upright)
    longest = max(info.width, info.height)
    side = min(max_side, longest)
    encoded = b""
    while side >= 1:
        factor = side / max(frame.size)
        size = (max(1, round(frame.width * factor)), max(1, round(frame.height * factor)))
        # On a huge image the best filter takes seconds, and nobody sees the difference.
        large = size[0] * size[1] > _LARGE_PIXELS
        filter_ = PIL.Image.Resampling.BILINEAR if large else PIL.Image.Resampling.LANCZOS
        small = frame if size == frame.size else frame.resize(size, filter_, reducing_gap=2.0)
        for kind in _encodings(info.type, small):
            encoded = _encode(small, kind, image.info.get("icc_profile"))
            if len(encoded) <= max_bytes:
                return ImageBlock(
                    data=encoded,
                    type=kind,
                    width=small.width,
                    height=small.height,
                    scaled=side < longest or info.type is not ImageType.GIF,
                )
        side = min(side - 1, int(side * max(0.3, min(0.9, math.sqrt(max_bytes / len(encoded))))))
        if large:
            # Smaller still is made from this one.
            frame = small
    raise TooLarge(f"The image {name} cannot be brought under {max_bytes} bytes.")


def _plain_mode(image: "Image") -> "Image":
    """The first frame in 8-bit grey or RGB, with alpha where it has some."""
    if image.mode.startswith("I"):
        # 16-bit grey: Pillow would clip it to white instead of scaling it.
        return image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _encodings(kind: ImageType, image: "Image") -> tuple[ImageType, ...]:
    if kind in (ImageType.JPEG, ImageType.WEBP):
        return (kind,)
    # A photograph in a PNG keeps four times its resolution as a JPEG.
    return (ImageType.PNG,) if image.mode == "RGBA" else (ImageType.PNG, ImageType.JPEG)


def _encode(image: "Image", kind: ImageType, icc_profile: bytes | None) -> bytes:
    buffer = io.BytesIO()
    large = image.width * image.height > _LARGE_PIXELS
    match kind:
        case ImageType.JPEG:
            image.save(buffer, "JPEG", quality=88, optimize=not large, icc_profile=icc_profile)
        case ImageType.WEBP:
            image.save(buffer, "WEBP", quality=88, method=0 if large else 4, icc_profile=icc_profile or b"")
        case ImageType.PNG | ImageType.GIF:
            image.save(buffer, "PNG", compress_level=3 if large else 6, icc_profile=icc_profile)
    return buffer.getvalue()
