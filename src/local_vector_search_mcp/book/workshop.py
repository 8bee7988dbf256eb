"""The workshop: what all parts of a book's HTML are made with."""

from dataclasses import dataclass
from html import escape

from local_vector_search_mcp.book.language import Labels
from local_vector_search_mcp.book.links import LinkTargets
from local_vector_search_mcp.book.math import Unset, set_formula
from local_vector_search_mcp.book.raw_html import Sanitizer
from local_vector_search_mcp.book.settings import BookSettings, PageGeometry
from local_vector_search_mcp.book.shelf import PictureShelf
from local_vector_search_mcp.book.sources import BookSources, Warnings


@dataclass(slots=True, kw_only=True)
class Workshop:
    """Shared tools and settings of one book.

    ``embeds_left`` bounds how many notes are embedded in all, so that notes which embed each other cannot explode.
    """

    settings: BookSettings
    page: PageGeometry
    labels: Labels
    sources: BookSources
    warnings: Warnings
    sanitizer: Sanitizer
    shelf: PictureShelf
    targets: LinkTargets
    embeds_left: int = 1000
    bytes_left: int = 32 * 1024 * 1024

    def own_class(self, names: str) -> str:
        """A ``class`` attribute of our own, with a leading space."""
        return self.sanitizer.attribute("class", names)

    def own_id(self, anchor: str) -> str:
        """An ``id`` attribute of our own, with a leading space."""
        return self.sanitizer.attribute("id", anchor)

    def formula(self, tex: str, *, inline: bool, path: str, number: str = "") -> str:
        """A formula as a slot: set, or its source in a box with a warning."""
        formula = set_formula(tex, inline=inline)
        if isinstance(formula, Unset):
            shown = " ".join(tex.split())
            short = shown if len(shown) <= 60 else shown[:57] + "…"
            self.warnings.add(f"{path}: the formula {short!r} is shown as its source: {formula.reason}.")
            if inline:
                # With its dollars, because it may be no formula at all.
                return self.sanitizer.slot(f'<code class="tex-source">${escape(tex)}$</code>')
            return self.sanitizer.slot(f'<pre class="tex-source">{escape(tex.strip())}</pre>')
        size = (
            f"width:{formula.width_em:.3f}em;height:{formula.height_em:.3f}em;vertical-align:{-formula.depth_em:.3f}em"
        )
        url = self.shelf.formula(formula.svg)
        picture = f'<img class="tex" src="{url}" alt="{escape(tex.strip())}" style="{size}">'
        if inline:
            return self.sanitizer.slot(picture)
        shrink = min(1.0, self.page.column_mm / (self.page.body_pt * 0.3528) * 0.94 / formula.width_em)
        scale = f' style="font-size:{shrink:.3f}em"' if shrink < 1 else ""
        label = f'<span class="equation-number">({escape(number)})</span>' if number else ""
        return self.sanitizer.slot(f'<div class="equation"{scale}>{picture}{label}</div>')
