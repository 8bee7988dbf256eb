"""Small pictures of every kind, made when a test needs them."""

import io
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import PIL.Image
import PIL.ImageCms


def picture(
    kind: str, size: tuple[int, int] = (40, 30), *, mode: str = "RGB", noisy: bool = False, **save: object
) -> bytes:
    """An image file: ``kind`` is PNG, JPEG, WEBP or GIF; a noisy one does not compress."""
    if noisy:
        image = PIL.Image.frombytes(mode, size, _noise(size[0] * size[1] * len(PIL.Image.new(mode, (1, 1)).getbands())))
    else:
        image = PIL.Image.linear_gradient("L").resize(size).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind, **save)
    return buffer.getvalue()


@cache
def srgb_profile() -> bytes:
    """An ICC profile."""
    create: Callable[..., Any] = PIL.ImageCms.createProfile  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return PIL.ImageCms.ImageCmsProfile(create("sRGB")).tobytes()


def upright_marker(orientation: int) -> bytes:
    """A JPEG that is stored turned so that its red quarter is seen at the upper left."""
    shown = PIL.Image.new("RGB", (80, 40), "white")
    shown.paste("red", (0, 0, 40, 20))
    undo = {
        2: PIL.Image.Transpose.FLIP_LEFT_RIGHT,
        3: PIL.Image.Transpose.ROTATE_180,
        4: PIL.Image.Transpose.FLIP_TOP_BOTTOM,
        5: PIL.Image.Transpose.TRANSPOSE,
        6: PIL.Image.Transpose.ROTATE_90,
        7: PIL.Image.Transpose.TRANSVERSE,
        8: PIL.Image.Transpose.ROTATE_270,
    }
    stored = shown.transpose(undo[orientation]) if orientation in undo else shown
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    stored.save(buffer, "JPEG", quality=95, exif=exif)
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A tiny PNG that declares a size and holds next to no data."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 64)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _noise(count: int) -> bytes:
    out = bytearray()
    state = 12345
    block = bytearray()
    for _ in range(min(count, 1 << 16)):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        block.append(state >> 16 & 0xFF)
    while len(out) < count:
        # Shifted copies, so that no compressor finds the block again in its window.
        out += block
        block = block[7:] + block[:7]
    return bytes(out[:count])


def png_of(rows: bytes, width: int, height: int, bits: int, channels: int, palette: bytes) -> bytes:
    """A PNG file around compressed rows."""
    colour = 3 if palette else {1: 0, 3: 2}[channels]
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    plte = _chunk(b"PLTE", palette) if palette else b""
    body = _chunk(b"IHDR", header) + plte + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
