"""TeX formulas as SVG, or as their source where they cannot be set."""

import re
import warnings
from dataclasses import dataclass
from functools import cache
from html import unescape
from typing import Final
from xml.etree import ElementTree

# A formula of this size is no formula, and would take minutes.
_LONGEST: Final = 20_000
_SETTING_PT: Final = 24.0
# The letters of the formula font are a little smaller than those of text fonts of the same size.
_LOOKS_EQUAL: Final = 1.07
# A command that the library does not know comes out as its own text.
_UNKNOWN: Final = re.compile(r"\\[A-Za-z]+")
_TAG: Final = re.compile(r"<[^>]*>")
_ENVIRONMENT: Final = re.compile(r"\\begin\s*\{([^{}]*)\}")
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_DISPLAY: Final = re.compile(r"\\(begin|end)\{(equation|align|gather|displaymath|multline|eqnarray|flalign)(\*?)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A formula as SVG; sizes and the depth below the baseline in em of the text around it."""

    svg: str
    width_em: float
    height_em: float
    depth_em: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unset:
    """Why a formula is shown as its source."""

    reason: str


def set_formula(tex: str, *, inline: bool) -> Formula | Unset:
    """Set one formula.

    Returns:
        The formula, or why the library cannot set it.
    """
    if len(tex) > _LONGEST:
        return Unset(reason="it is too long")
    return _set(tex.strip(), inline)


@cache
def _library_errors() -> tuple[type[Exception], ...]:
    """What the libraries raise for TeX that they do not know; theirs have no common base."""
    from latex2mathml import exceptions

    named = [value for value in vars(exceptions).values() if isinstance(value, type) and issubclass(value, Exception)]
    plain = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError)
    return (*named, *plain, ValueError, ElementTree.ParseError)


@cache
def _set(tex: str, inline: bool) -> Formula | Unset:
    source = _DISPLAY.sub(_known_environment, tex)
    refused = _refusal(source)
    if refused:
        return Unset(reason=refused)
    try:
        with warnings.catch_warnings():
            # The library reads its font by a function that Python is about to rename.
            warnings.simplefilter("ignore", DeprecationWarning)
            from ziamath.zmath import Latex

            formula = Latex(source, size=_SETTING_PT, inline=inline)
            text = unescape(_TAG.sub(" ", formula.mathmlstr()))
            unknown = _UNKNOWN.search(text)
            if unknown:
                return Unset(reason=f"{unknown.group(0)} is not known")
            missing = next((one for one in text if not one.isspace() and not formula.font.glyphindex(one)), None)
            if missing:
                return Unset(reason=f"the font for formulas has no {missing!r}")
            svg = formula.svg()
        width, height = formula.getsize()
        below = formula.getyofst()
    except _library_errors() as error:
        return Unset(reason=f"it is not understood ({type(error).__name__})")
    if not (0 < width < 1e5 and 0 < height < 1e5):
        return Unset(reason="it has no size")
    return Formula(
        svg=svg,
        width_em=width * _LOOKS_EQUAL / _SETTING_PT,
        height_em=height * _LOOKS_EQUAL / _SETTING_PT,
        depth_em=-below * _LOOKS_EQUAL / _SETTING_PT,
    )


def _refusal(source: str) -> str:
    """What the library would pass over in silence; empty where there is nothing of the kind."""
    from latex2mathml.commands import MATRICES

    if not source:
        return "it is empty"
    known = {name.lstrip("\\") for name in MATRICES} | {"aligned"}
    strange = next((name for name in _ENVIRONMENT.findall(source) if name not in known), None)
    if strange is not None:
        return f"the environment {strange} is not known"
    braces = _ESCAPED.sub("", source)
    return "" if braces.count("{") == braces.count("}") else "its braces do not match"


def _known_environment(match: re.Match[str]) -> str:
    """Environments that only number or place a display, as ones that the library has."""
    verb, name, _ = match.groups()
    if name in ("equation", "displaymath"):
        return ""
    return f"\\{verb}{{align*}}" if name != "gather" else f"\\{verb}{{matrix}}"
