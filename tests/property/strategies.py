"""Documents for property tests: made of the pieces that Markdown's rules turn on, and mutated ones."""

from hypothesis import strategies as st

_MARKERS = ["- ", "* ", "+ ", "1. ", "2) ", "10. ", "> ", ">", "-", "1.", "- - ", "> - ", "[^1]: ", "-\t", ">\t"]
_INDENTS = ["", " ", "  ", "   ", "    ", "     ", "\t", " \t", "      "]
_LINES = [
    "text", "two words", "# heading", "## b #", "#", "####### seven", "===", "---", "- - -", "***", "_ _ _",
    "```", "````", "~~~", "``` info", "``` a`b", "$$", "$$ x $$", "x $$", "$$ (label)", "$$ open",
    "| a | b |", "|---|:-:|", "--|--", "a | b", "|", "| \\| | `x|y` |", "|-|",
    "<div>", "</div>", "<!-- open", "-->", "<a href='x'>", "<a href=\"open",
    "shut\">", "<pre>", "</pre>", "<?x", "?>", "<!X", "<![CDATA[", "]]>",
    "[label]: /url", "[label]: <u v> 't'", "[open", "]: /url", "'title", "title'", "[a]:", "[^n]: note", "[^n]:",
    "[[Note#Head|alias]]", "![[image.png]]", "#tag", "^block-id", "%% comment %%", "[!note] callout",
    "a\\", "\\# no heading", "&amp; &#0;", "*em* **b** `code`", "[x](y.md \"t\")", "![i](<a b.png>)", "<https://a.b>",
    "é ü 中文", "\u2028", "\x0c", "\x85", "\0", "\ufeff", "😀", "title: x", "+++", "---  ", "--- #",
]  # fmt: skip
_ENDINGS = ["\n", "\n", "\n", "\r\n", "\r"]


def _join(indent: str, markers: list[str], text: str, tail: str) -> str:
    return indent + "".join(markers) + text + tail


_LINE = st.builds(
    _join,
    st.sampled_from(_INDENTS),
    st.lists(st.sampled_from(_MARKERS), max_size=3),
    st.one_of(st.sampled_from(_LINES), st.just(""), st.text(max_size=12)),
    st.sampled_from(["", "", "", " ", "  ", "\t"]),
)


@st.composite
def markdown_texts(draw: st.DrawFn) -> str:
    """A document as text: short lines with markers, any line endings, perhaps front matter, no final one."""
    lines = draw(st.lists(_LINE, max_size=14))
    endings = draw(st.lists(st.sampled_from(_ENDINGS), min_size=len(lines), max_size=len(lines)))
    text = "".join(line + ending for line, ending in zip(lines, endings, strict=True))
    head = draw(st.sampled_from(["", "", "", "", "\ufeff", "---\ntitle: T\n---\n", "+++\na = 1\n+++\r\n", "---\n"]))
    text = head + text
    return text.rstrip("\r\n") if draw(st.booleans()) else text


def markdown_documents() -> st.SearchStrategy[bytes]:
    """A document as bytes."""
    return markdown_texts().map(lambda text: text.encode("utf-8", "ignore"))


@st.composite
def mutations(draw: st.DrawFn, texts: list[str]) -> bytes:
    """One or two of some texts with a few random changes: cuts, insertions, moved pieces, prefixed lines."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 8)))
        match draw(st.integers(0, 4)):
            case 0:
                text = text[:start] + draw(st.one_of(st.sampled_from(_LINES), st.sampled_from(_MARKERS))) + text[start:]
            case 1:
                text = text[:start] + text[end:]
            case 2:
                text = text + draw(st.sampled_from(["", "\n", "\n\n"])) + draw(st.sampled_from(texts))
            case 3:
                prefix = draw(st.sampled_from([*_MARKERS, *_INDENTS]))
                lines = text.split("\n")
                first = draw(st.integers(0, len(lines)))
                last = draw(st.integers(first, len(lines)))
                text = "\n".join(prefix + line if first <= n < last else line for n, line in enumerate(lines))
            case _:
                text = text[:start] + draw(st.sampled_from(["\r", "\r\n", "\n\n", "\t", "\0"])) + text[start:]
    return text.encode("utf-8", "ignore")
