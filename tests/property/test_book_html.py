"""Any text at all is some book: composing never fails, and what it writes is sound HTML."""

import re
from html.parser import HTMLParser

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.books import make

_PIECES = st.sampled_from(
    [
        "# h",
        "## h ^id",
        "para",
        "> [!note] t\n> b",
        "> q",
        "- [ ] t",
        "- a\n  - b",
        "1. x",
        "```py\ncode\n```",
        "    pre",
        "***",
        "| a | b |\n|---|---|\n| c |",
        "$$\nx^2\n$$",
        "$y$",
        "[^1]",
        "[^1]: note",
        "^[inline]",
        "![[doc]]",
        "![[x.png|20]]",
        "![a](b.png)",
        "[l](doc.md#h)",
        "[[doc#h|a]]",
        "<div>",
        "</div>",
        "<b>x",
        "<table><tr><td>",
        "</p>",
        "<!-- c -->",
        "<script>x</script>",
        "<img src=x onerror=y>",
        "%%c%%",
        "==m==",
        "**b*",
        "`c",
        "\\",
        "&amp;",
        "{#own}",
        "\u27ea0:1\u27eb",
        "\x00",
        "夜",
    ]
)
_TEXTS = st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=14).flatmap(
    lambda parts: st.sampled_from(["\n\n", "\n", " ", ""]).map(lambda joint: joint.join(parts))
)
_VOID = frozenset({"br", "hr", "img", "meta", "wbr", "col", "rect", "path"})


class _Balance(HTMLParser):
    """Follows opening and closing tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TEXTS)
def test_compose__any_text_is_a_book(text: str) -> None:
    """Tags are balanced, ids are unique, nothing runs, and every internal link leads somewhere."""
    html = make(text.encode("utf-8", "replace").decode("utf-8")).job.html
    balance = _Balance()
    balance.feed(html)
    assert (balance.open, balance.wrong) == ([], [])
    ids = re.findall(r'<[^>]* id="([^"]+)"', html)
    own = [each for each in ids if not re.match(r"(?:c1|front)-x-", each)]
    assert len(own) == len(set(own))
    assert "<script" not in html.lower() and "onerror" not in html.lower().replace("&lt;img src=x onerror", "")
    for anchor in re.findall(r'href="#([^"]+)"', html):
        assert anchor in ids
