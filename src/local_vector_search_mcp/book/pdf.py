"""HTML to PDF: the only module that imports WeasyPrint.

Every picture is put into WeasyPrint's image cache beforehand, and its URL fetcher hands out prepared data and nothing
else: no file, no network address and no data URI is ever read on behalf of a document.
"""

import importlib
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local_vector_search_mcp.book.pictures import Coding, Picture, Pixels, pixels_for
from local_vector_search_mcp.book.profiles import ProfileValues
from local_vector_search_mcp.errors import DependencyMissing

# How the unit square of a picture is turned for each EXIF orientation.
_TURNS: Final = {
    2: (-1, 0, 0, 1, 1, 0),
    3: (-1, 0, 0, -1, 1, 1),
    4: (1, 0, 0, -1, 0, 1),
    5: (0, -1, -1, 0, 1, 1),
    6: (0, -1, 1, 0, 0, 1),
    7: (0, 1, 1, 0, 0, 0),
    8: (0, 1, -1, 0, 1, 0),
}
_DEVICE: Final = {1: "/DeviceGray", 3: "/DeviceRGB", 4: "/DeviceCMYK"}
_INCHES_PER_UNIT: Final = 1 / 72


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintJob:
    """All that a PDF is made from.

    ``pictures`` and ``drawings`` (SVG) are keyed by the URL under which the HTML names them.
    """

    html: str
    css: str
    pictures: Mapping[str, Picture]
    drawings: Mapping[str, bytes]
    profile: ProfileValues


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedBook:
    """A finished PDF, and what WeasyPrint had to say about it."""

    data: bytes
    pages: int
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfSupport:
    """What setting type on this machine rests on."""

    weasyprint: str
    pango: str


def pdf_support() -> PdfSupport:
    """The versions of WeasyPrint and Pango.

    Raises:
        DependencyMissing: One of the libraries cannot be loaded; the message names the package.
    """
    weasyprint = _weasyprint()
    libraries: Any = importlib.import_module("weasyprint.text.ffi")
    version = int(libraries.pango.pango_version())
    return PdfSupport(
        weasyprint=str(weasyprint.__version__),
        pango=f"{version // 10000}.{version // 100 % 100}.{version % 100}",
    )


def print_book(job: PrintJob, on_page: Callable[[int], None]) -> PrintedBook:
    """Lay out the HTML and write the PDF.

    Args:
        job: The prepared book.
        on_page: Called with the number of the page being laid out; numbers may start over.

    Raises:
        DependencyMissing: Pango or another library cannot be loaded.
    """
    weasyprint = _weasyprint()
    images = {url: _PreparedImage(picture, job.profile) for url, picture in job.pictures.items()}
    fetcher = _prepared_fetcher(job.drawings)
    with _Listening(on_page) as listening:
        html = weasyprint.HTML(string=job.html, base_url="book:/", url_fetcher=fetcher)
        sheet = weasyprint.CSS(string=job.css, base_url="book:/", url_fetcher=fetcher)
        document = html.render(stylesheets=[sheet], cache=dict(images))

        def finish(_: object, pdf: object) -> None:
            _add_profiles(pdf, list(images.values()))

        data = document.write_pdf(finisher=finish, cache={})
    return PrintedBook(data=data, pages=len(document.pages), messages=tuple(listening.messages))


def _weasyprint() -> Any:
    import PIL.ImageFile

    tolerant = PIL.ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        import weasyprint
    except (ImportError, OSError) as error:
        raise DependencyMissing(
            f"PDF books need Pango, which could not be loaded ({_first_line(error)}). {_how_to_install()}"
        ) from error
    finally:
        # It makes Pillow take cut images in the whole process, where we want to hear of them.
        PIL.ImageFile.LOAD_TRUNCATED_IMAGES = tolerant
    return weasyprint


def _how_to_install() -> str:
    if sys.platform == "darwin":
        return "Install it with: brew install pango"
    if sys.platform == "win32":
        return (
            "Install MSYS2, then in its shell: pacman -S mingw-w64-ucrt-x86_64-pango; "
            "set WEASYPRINT_DLL_DIRECTORIES if MSYS2 is not in C:\\msys64."
        )
    return (
        "Install it with: apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 "
        "(Debian, Ubuntu), dnf install pango (Fedora), or apk add pango (Alpine)."
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]


def _prepared_fetcher(drawings: Mapping[str, bytes]) -> Any:
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    class PreparedFetcher(URLFetcher):  # type: ignore[misc]
        """Hands out the drawings of the book; everything else does not exist."""

        def fetch(self, url: str, headers: object = None) -> Any:
            data = drawings.get(url)
            if data is None:
                raise ValueError("not part of the book")
            return URLFetcherResponse(url, data, {"Content-Type": "image/svg+xml"})

    return PreparedFetcher(allowed_protocols=(), allow_redirects=False)


class _PreparedImage:
    """A picture as WeasyPrint's layout and drawing see it."""

    def __init__(self, picture: Picture, profile: ProfileValues) -> None:
        self.id = picture.key
        self.pixels: Pixels | None = None
        self.x_object: Any = None
        self._picture = picture
        self._profile = profile

    def get_intrinsic_size(self, resolution: float, font_size: float) -> tuple[float, float, float]:
        """Width, height and their ratio, in CSS pixels."""
        width, height = self._picture.shown_size
        return width / resolution, height / resolution, width / height

    def draw(self, stream: Any, concrete_width: float, concrete_height: float, style: Mapping[str, Any]) -> None:
        """Place the picture; how many pixels it needs is known from the size on the page."""
        width_in = abs(concrete_width * stream.ctm[0][0]) * _INCHES_PER_UNIT
        height_in = abs(concrete_height * stream.ctm[1][1]) * _INCHES_PER_UNIT
        if width_in <= 0 or height_in <= 0:
            return
        width, height = self._picture.shown_size
        dpi = max(width / width_in, height / height_in)
        ratio = min(1.0, self._profile.dpi / dpi)
        name = stream.add_image(self, style["image_rendering"] == "auto", ratio)
        stream.transform(concrete_width, 0, 0, -concrete_height, 0, concrete_height)
        turn = _TURNS.get(self._picture.orientation)
        if turn is not None:
            stream.transform(*turn)
        stream.draw_x_object(name)

    def get_x_object(self, interpolate: bool, dpi_ratio: float) -> Any:
        """The picture as a PDF object, with as many pixels as its largest place on the pages needs."""
        self.pixels = pixels_for(self._picture, dpi_ratio, self._profile)
        self.x_object = _x_object(self.pixels, interpolate)
        return self.x_object


def _x_object(pixels: Pixels, interpolate: bool) -> Any:
    import pydyf  # type: ignore[import-untyped]

    extra = pydyf.Dictionary(
        {
            "Type": "/XObject",
            "Subtype": "/Image",
            "Width": pixels.width,
            "Height": pixels.height,
            "ColorSpace": _colour_space(pixels, _DEVICE[pixels.channels].encode()),
            "BitsPerComponent": pixels.bits,
            "Interpolate": "true" if interpolate else "false",
            "Filter": f"/{pixels.coding.value}",
        }
    )
    if pixels.inverted:
        extra["Decode"] = pydyf.Array((1, 0) * 4)
    if pixels.coding is Coding.FLATE:
        # Predictor 15: every row says by itself which PNG predictor it uses.
        extra["DecodeParms"] = pydyf.Dictionary(
            {
                "Predictor": 15,
                "Colors": pixels.channels,
                "BitsPerComponent": pixels.bits,
                "Columns": pixels.width,
            }
        )
    if pixels.alpha is not None:
        extra["SMask"] = _x_object(pixels.alpha, interpolate)
    return pydyf.Stream([pixels.data], extra)


def _colour_space(pixels: Pixels, base: bytes) -> bytes:
    if not pixels.palette:
        return base
    entries = len(pixels.palette) // 3
    device = base if base.startswith(b"[") else b"/DeviceRGB"
    return b"[/Indexed %s %d <%s>]" % (device, entries - 1, pixels.palette[: entries * 3].hex().encode())


def _add_profiles(pdf: Any, images: list[_PreparedImage]) -> None:
    """Give pictures their ICC profiles, each profile stored once."""
    import pydyf

    stored: dict[bytes, bytes] = {}
    for image in images:
        pixels = image.pixels
        if pixels is None or not pixels.icc_profile:
            continue
        profile = stored.get(pixels.icc_profile)
        if profile is None:
            channels = 3 if pixels.palette else pixels.channels
            stream = pydyf.Stream(
                [pixels.icc_profile],
                pydyf.Dictionary({"N": channels, "Alternate": _DEVICE[channels]}),
                compress=True,
            )
            pdf.add_object(stream)
            profile = stored[pixels.icc_profile] = stream.reference
        image.x_object.extra["ColorSpace"] = _colour_space(pixels, b"[/ICCBased %s]" % profile)


class _Listening:
    """Hears WeasyPrint's loggers: pages for progress, and what it could not do."""

    def __init__(self, on_page: Callable[[int], None]) -> None:
        self.messages: list[str] = []
        self._on_page = on_page
        self._handlers: list[tuple[logging.Logger, logging.Handler, int]] = []

    def __enter__(self) -> "_Listening":
        self._add("weasyprint.progress", logging.INFO, self._progress)
        self._add("weasyprint", logging.WARNING, lambda record: self.messages.append(record.getMessage()))
        return self

    def __exit__(self, *_: object) -> None:
        for logger, handler, level in self._handlers:
            logger.removeHandler(handler)
            logger.setLevel(level)

    def _add(self, name: str, level: int, heard: Callable[[logging.LogRecord], None]) -> None:
        class Ear(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if record.levelno >= level and record.name == name:
                    heard(record)

        logger = logging.getLogger(name)
        ear = Ear()
        self._handlers.append((logger, ear, logger.level))
        logger.setLevel(level)
        logger.addHandler(ear)

    def _progress(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "Page " in message:
            number = message.rpartition("Page ")[2].strip()
            if number.isdigit():
                self._on_page(int(number))
