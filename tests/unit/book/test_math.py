"""Formulas: set by the library, or the reason why not."""

import pytest

from local_vector_search_mcp.book.math import Formula, Unset, set_formula


@pytest.mark.parametrize(
    "tex",
    [
        "x",
        "E=mc^2",
        r"\frac{a}{b}",
        r"\sum_{i=1}^n i",
        r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
        r"\begin{align} a&=b\\ c&=d\end{align}",
        r"\begin{equation}a\end{equation}",
        r"\begin{gather}a\\b\end{gather}",
        r"\begin{cases}1&x>0\\0&x\le0\end{cases}",
        r"\text{if } x < y",
        r"\mathbb{R}",
        "a < b",
    ],
)
@pytest.mark.parametrize("inline", [True, False])
def test_set_formula__common_tex(tex: str, inline: bool) -> None:
    """It has a size, stands on the baseline, and is a drawing."""
    formula = set_formula(tex, inline=inline)
    assert isinstance(formula, Formula), formula
    assert formula.svg.startswith("<svg")
    assert 0 < formula.width_em < 60 and 0 < formula.height_em < 20
    assert -1 < formula.depth_em < formula.height_em


@pytest.mark.parametrize(
    "tex",
    [
        "",
        "   ",
        r"\foo{x}",
        r"\frac{a",
        "x_1_2",
        "a & b",
        r"\begin{nosuch}x\end{nosuch}",
        "{",
        "}",
        r"\left( x",
        "x" * 30_000,
        "夜间",
    ],
)
def test_set_formula__what_is_not_understood_says_why(tex: str) -> None:
    """Never an error, never a wrong picture."""
    assert isinstance(set_formula(tex, inline=False), Unset)


def test_set_formula__display_is_larger_than_inline() -> None:
    """Limits stand above and below in a display."""
    inline, display = set_formula(r"\sum_{i=1}^n i", inline=True), set_formula(r"\sum_{i=1}^n i", inline=False)
    assert isinstance(inline, Formula) and isinstance(display, Formula)
    assert display.height_em > inline.height_em
