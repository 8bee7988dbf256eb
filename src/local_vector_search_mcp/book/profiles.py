"""Image profiles: how many pixels an inch of paper gets, and how hard a photograph is compressed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ImageProfile(StrEnum):
    """What the pages are for."""

    SCREEN = "screen"
    STANDARD = "standard"
    PRINT = "print"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileValues:
    """The highest resolution on the page in pixels an inch, and the JPEG quality."""

    dpi: int
    jpeg_quality: int


PROFILES: Final = {
    ImageProfile.SCREEN: ProfileValues(dpi=96, jpeg_quality=65),
    ImageProfile.STANDARD: ProfileValues(dpi=150, jpeg_quality=82),
    ImageProfile.PRINT: ProfileValues(dpi=300, jpeg_quality=95),
}
