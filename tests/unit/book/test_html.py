"""Blocks and inline content of the dialect as HTML for print."""

import re
from pathlib import Path

import pytest
from tests.support.books import body, inner, make
from tests.support.pictures import picture
from tests.support.shared_data import shared_root

from local_vector_search_mcp.book.chapters import inline_tokens, parse_chapter
from local_vector_search_mcp.book.inlines import inline_text


def text_of(html: str) -> str:
    from html import unescape

    return unescape(re.sub(r"<[^>]*>", "", html))


def check(markdown: str, *expected: str) -> str:
    html = inner(markdown).replace("<span> </span>", " ")
    for piece in expected:
        assert piece in html, html
    return html


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        (
            "plain *em* **strong** ~~gone~~ ==mark==",
            "<p>plain <em>em</em> <strong>strong</strong> <s>gone</s> <mark>mark</mark></p>",
        ),
        ("`a < b & c`", "<p><code>a &lt; b &amp; c</code></p>"),
        ("a&amp;b \\*c\\* &copy;", "<p>a&amp;b *c* ©</p>"),
        ("one  \ntwo", "<p>one<br>two</p>"),
        ("one\ntwo", "<p>one\ntwo</p>"),
        ("你好\n世界", "<p>你好世界</p>"),
        ("한국어\n문장", "<p>한국어\n문장</p>"),
        ("%%hidden%%shown", "<p>shown</p>"),
        ("text ^block-1", '<p id="c1-b-block-1">text</p>'),
        ("***", "<hr>"),
        ("> quote\n>\n> more", "<blockquote><p>quote</p><p>more</p></blockquote>"),
        ("- a\n- b", '<ul class="tight"><li>a</li><li>b</li></ul>'),
        ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
        ("3. a\n4. b", '<ol class="tight" start="3"><li>a</li><li>b</li></ol>'),
        ("- a\n  - b", '<ul class="tight"><li>a<ul class="tight"><li>b</li></ul></li></ul>'),
        ("costs $5 and $10", "<p>costs $5 and $10</p>"),
        ("in $HOME or `$PATH`", "<p>in $HOME or <code>$PATH</code></p>"),
        ("<https://a.example/x?y=1&z=2>", 'href="https://a.example/x?y=1&amp;z=2">https://a.example/x?y=1&amp;z=2</a>'),
        ("see https://a.example/b_(c).", 'href="https://a.example/b_(c)">https://a.example/b_(c)</a>.'),
        ("[t](javascript:alert(1))", "<p>[t](javascript:alert(1))</p>"),
        ("[t](file:///etc/passwd)", "<p>[t](file:///etc/passwd)</p>"),
        ("[t](ftp://a.example/x)", "<p>t</p>"),
        ("[m](mailto:a@b.example)", 'href="mailto:a@b.example">m</a>'),
        ("[gone](missing.md)", "<p>gone</p>"),
        ("[^none] stays", "<p>[^none] stays</p>"),
        ("#tag stays", "<p>#tag stays</p>"),
    ],
)
def test_html__each_construct(markdown: str, expected: str) -> None:
    """One construct of the dialect, and what becomes of it."""
    check(markdown, expected)


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("our `String` needs", "our<span> </span><code>String</code> needs"),
        ("our\n*one* here", "our<span>\n</span><em>one</em> here"),
        ("**bold `code`**", "<strong>bold<span> </span><code>code</code></strong>"),
        ("*one* `two`", "<em>one</em> <code>two</code>"),
        ("one  \ntwo", "one<br>two"),
        ("one &lt;two", "one &lt;two"),
    ],
)
def test_html__a_space_before_an_element_stands_alone(markdown: str, expected: str) -> None:
    """Where a text ends with a space that does not fit any more, WeasyPrint would break the line too early."""
    assert expected in inner(markdown)


@pytest.mark.parametrize(
    ("markdown", "family", "title"),
    [
        ("> [!note] Own *title*\n> body", "note", "Own <em>title</em>"),
        ("> [!WARNING]\n> body", "warning", "Warning"),
        ("> [!tip]- Folded\n> body", "tip", "Folded"),
        ("> [!faq]+\n> body", "question", "Faq"),
        ("> [!something-else]\n> body", "note", "Something-else"),
        ("> [!quote|right] Said\n> body", "quote", "Said"),
    ],
)
def test_html__callouts(markdown: str, family: str, title: str) -> None:
    """The type gives the colour, the title is the one given or the type's name, folded ones are open."""
    html = check(markdown, f'<div class="callout {family}">', f"{title}</p>", "<p>body</p>")
    assert "[!" not in html


def test_html__a_callout_holds_any_block() -> None:
    """Lists, code and further callouts stand in its body."""
    html = check(
        "> [!info] T\n> - a\n>\n> ```\n> code\n> ```\n> > [!bug] inner\n> > deep",
        "<li>a</li>",
        "<pre>code</pre>",
        "deep",
    )
    assert html.count('class="callout ') == 2


@pytest.mark.parametrize("markdown", ["> [! note]\n> x", "> [note]\n> x", "> text [!note]", "[!note] x"])
def test_html__what_is_no_callout_stays_a_quote(markdown: str) -> None:
    """Only ``[!type]`` at the very start of a quote opens one."""
    assert "callout" not in inner(markdown)


def test_html__task_lists_have_boxes() -> None:
    """Open and done items; the mark leaves the text, and other brackets stay."""
    html = check("- [ ] open\n- [x] done\n- [X] Done\n- [?] other\n- [] none")
    assert html.count('class="task"') == 3
    assert html.count('<svg class="box"') == 3
    assert html.count("<path") == 2
    assert "[?] other" in html and "[] none" in html and "[x]" not in html.lower().replace("[?]", "")


def test_html__a_loose_task_has_its_box_in_the_first_paragraph() -> None:
    """The box never stands alone on a line."""
    check("- [ ] one\n\n- [x] two", '<li class="task"><p><svg')


def test_html__code_keeps_every_character_and_colours() -> None:
    """Colour comes as spans; text, blank lines and indentation stay."""
    code = "def f(x):\n\n    return \"a\" if x < 1 else 'b'  # & so\n"
    html = check(f"```python\n{code}```", '<span class="k">def</span>', 'data-language="python"')
    assert text_of(html) == code.rstrip("\n")


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("rust,ignore", "rust"),
        ("{.python}", "python"),
        ("js{1,3}", "js"),
        ("mermaid", "mermaid"),
        ("no-such-lang", "no-such-lang"),
        ("", ""),
    ],
)
def test_html__languages_of_fences(info: str, language: str) -> None:
    """The first word names the language; an unknown one is shown as it is."""
    html = inner(f"```{info}\nlet a = 1\n```")
    assert (f'data-language="{language}"' in html) == bool(language)
    assert "let a = 1" in text_of(html)


def test_html__long_lines_are_marked_for_wrapping() -> None:
    """Only lines that do not fit hang their continuation."""
    html = inner("```\nshort\n" + "x = " + "name + " * 40 + "1\nalso short\n```")
    assert html.count('<span class="wrap">') == 1
    assert "short" in html.split('<span class="wrap">')[0]


def test_html__indented_code_and_tabs() -> None:
    """Tabs become spaces."""
    assert "a    b" in inner("    a\tb") or "a   b" in inner("    a\tb")


def test_html__tables_have_head_body_and_alignment() -> None:
    """Header cells are repeated by the page; missing cells are there, empty."""
    check(
        "| a | b |\n|:--|--:|\n| 1 | `x\\|y` |\n| 2 |",
        '<th align="left">a</th><th align="right">b</th>',
        '<td align="right"><code>x|y</code></td>',
        '<tr><td align="left">2</td><td align="right"></td></tr>',
        "<thead>",
    )


def test_html__math_is_set_or_boxed() -> None:
    """Formulas are drawings with their source as text alternative; unknown ones are shown as source, with a warning."""
    book = make("$$\nx^2\n$$\n\nin $a_1$ line\n\n$$\n\\nosuch{x}\n$$\n\nand $\\frac{1$ too")
    html = body(book)
    assert html.count('<img class="tex"') == 2
    assert '<pre class="tex-source">\\nosuch{x}</pre>' in html
    assert '<code class="tex-source">$\\frac{1$</code>' in html
    assert len(book.warnings) == 2 and "\\nosuch" in book.warnings[0]


def test_html__footnotes_stand_on_the_page() -> None:
    """Numbers follow the order of the calls; a second call points to the same note."""
    html = check("b[^b] a[^a] again[^b] ^[inline *one*]\n\n[^a]: *A* note\n[^b]: B note")
    notes = re.findall(r'<span class="footnote" data-note="(\d)" id="([^"]+)">(.*?)</span>', html)
    assert [(number, text) for number, _, text in notes] == [
        ("1", "B note"),
        ("2", "<em>A</em> note"),
        ("3", "inline <em>one</em>"),
    ]
    assert f'<sup><a class="note-call" href="#{notes[0][1]}">1</a></sup>' in html


def test_html__footnotes_with_blocks_are_no_paragraph_inside_a_paragraph() -> None:
    """HTML closes a paragraph at the first block in it."""
    html = check("a[^x]\n\n[^x]: one\n\n    - two\n\n    ```\n    three\n    ```")
    assert '<div class="para">a<div class="footnote"' in html
    assert "three" in html


def test_html__long_and_uncalled_footnotes_stand_at_the_end() -> None:
    """A footnote is never split over pages, so what would fill one becomes a note of the chapter."""
    html = check("a[^x] b[^y]\n\n[^x]: " + "long text " * 300 + "\n[^y]: short\n[^z]: never called")
    assert html.count('class="footnote"') == 1
    ends = re.findall(r'class="endnote-number">(\d)', html)
    assert ends == ["1", "3"]
    assert "never called" in html


def test_html__footnotes_calling_each_other_end() -> None:
    """A note in a note goes to the end; a circle is broken by its first call."""
    html = check("a[^x]\n\n[^x]: see[^y]\n[^y]: see[^x]")
    assert html.count('class="footnote"') == 1
    assert html.count('class="endnote"') == 1


def test_html__raw_html_is_reduced_to_a_safe_subset() -> None:
    """Tags that show text stay; what runs, loads or hides does not."""
    book = make(
        '<div onclick="x()" style="position:fixed" class="callout">a <b>b</b></div>\n\n<script>alert(1)</script>\n\n'
        '<iframe src="https://evil.example"></iframe>\n\n<style>p{display:none}</style>\n\n'
        '<link rel="attachment" href="file:///etc/passwd">\n\n<a href="javascript:x" rel="attachment">j</a> '
        '<a href="https://ok.example">k</a> <input value="q"> <object data="file:///x">o</object> '
        '<svg><image href="file:///y"/></svg> end'
    )
    html = body(book)
    for forbidden in (
        "onclick",
        "position",
        "<script",
        "alert",
        "iframe",
        "display",
        "<link",
        "passwd",
        "javascript",
        "rel=",
        "<input",
        "file:",
        "<object",
    ):
        assert forbidden not in html, forbidden
    assert "<div>a <b>b</b></div>" in html
    assert '<a href="https://ok.example">k</a>' in html
    assert "end" in html
    assert any("<iframe>" in warning for warning in book.warnings)


def test_html__raw_html_may_span_markdown() -> None:
    """A tag may open in one block and close in another; what is left open is closed."""
    check(
        "<details><summary>More</summary>\n\nIn **side**\n\n</details>\n\nout",
        "<details><summary>More</summary>",
        "<strong>side</strong>",
    )
    assert inner("</div></section></body>\n\nafter\n\n<div>\n\nopen").endswith("</div>")


def test_html__raw_html_cannot_write_what_is_ours() -> None:
    """Classes, styles and slots of the book's own are known by a secret."""
    html = check('<span class="footnote" data-note="1" style="float:footnote">x</span> \u27ea0123456789abcdef:0\u27eb')
    assert "footnote" not in html
    assert "\u27ea0123456789abcdef:0\u27eb" in html


def test_html__raw_tables_cannot_span_the_moon() -> None:
    """A cell that claims a million columns would be laid out for hours."""
    html = check('<table><tr><td colspan="1000000" rowspan="x">a</td></tr></table>', '<td colspan="60">a</td>')
    assert "rowspan" not in html


def test_html__raw_ids_are_anchors_of_their_chapter() -> None:
    """Links lead to them, and chapters do not collide."""
    check(
        '<a id="here"></a>text\n\n[go](#here) <a href="#here">raw</a>',
        'id="c1-x-here"',
        'href="#c1-x-here">go</a>',
        'href="#c1-x-here">raw</a>',
    )


def test_links__with_brackets_in_their_text() -> None:
    """What an address follows is a link with brackets in its text, and no wikilink."""
    check('<a id="here"></a>text <sup>[[1]](#here)</sup>', 'href="#c1-x-here">[1]</a>')


PNG = picture("PNG", (192, 96))


@pytest.mark.parametrize(
    ("markdown", "width_mm"),
    [
        ("![a](i/p.png)", 50.8),
        ("![a|96](i/p.png)", 25.4),
        ("![[p.png|96]]", 25.4),
        ("![[p.png|96x48]]", 25.4),
        ('<img src="i/p.png" width="48">', 12.7),
        ('<p><img alt="x" src=i/p.png height="48px"></p>', 25.4),
        ("![a](<i/p.png>)", 50.8),
        ("![a](i/%70.png)", 50.8),
        ("![a][r]\n\n[r]: i/p.png", 50.8),
        ("![a|9999](i/p.png)", 121.36),
    ],
)
def test_html__pictures_have_their_size(markdown: str, width_mm: float) -> None:
    """96 pixels are an inch unless a size is given, and never more than the column."""
    book = make(markdown, files={"i/p.png": PNG})
    match = re.search(r'<img src="(book:picture/[0-9a-f]+)"[^>]*style="width:([\d.]+)mm"', body(book))
    assert match is not None, body(book)
    assert match.group(1) in book.job.pictures
    assert abs(float(match.group(2)) - width_mm) < 0.1
    assert book.warnings == ()


def test_html__a_picture_alone_is_a_figure_with_its_title_below() -> None:
    """The title is the caption; the same picture is stored once."""
    book = make('![a](p.png "The caption")\n\n![b](p.png)\n\n![[p.png]]', files={"p.png": PNG, "copy.png": PNG})
    assert body(book).count("<figure") == 3
    assert "<figcaption>The caption</figcaption>" in body(book)
    assert len(book.job.pictures) == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("https://a.example/x.png?sig=hidden", "remote"),
        ("http://a.example/x.png", "remote"),
        ("//a.example/x.png", "absolute"),
        ("/i/p.png", "absolute"),
        ("file:///etc/passwd", "file:"),
        ("data:image/png;base64,AAAA", "data:"),
        ("none.png", "no such file"),
        ("broken.png", "damaged"),
        ("cut.png", "decoded"),
        ("not.svg", "SVG"),
        ("text.txt", "damaged"),
    ],
)
def test_html__pictures_that_cannot_be_shown_leave_a_box(target: str, reason: str) -> None:
    """Nothing is fetched; the box and the warning say why, and no secret of a URL is in either."""
    files: dict[str, bytes | str] = {
        "broken.png": PNG[:40],
        "cut.png": picture("PNG", (300, 300), noisy=True)[:-9000],
        "not.svg": "<html/>",
        "text.txt": "x",
        "i/p.png": PNG,
    }
    book = make(f'<img src="{target}" alt="The alt">\n\nafter', files=files)
    html = body(book)
    assert '<span class="placeholder"><b>The alt</b>' in html
    assert book.job.pictures == {} and "after" in html
    assert reason in book.warnings[0] and "hidden" not in book.warnings[0] + html


def test_html__svg_pictures_are_drawn() -> None:
    """They go in as drawings, which may load nothing."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="5" height="5"/></svg>'
    book = make("![a](d.svg)", files={"d.svg": svg})
    assert svg.encode() in book.job.drawings.values()


EMBEDDED = """---
title: T
---
# One

first[^n]

## Two

second ^b1

### Three

third

- item ^b2
- other

## Four

fourth

[^n]: noted
"""


@pytest.mark.parametrize(
    ("target", "shown", "hidden"),
    [
        ("note", ["first", "second", "fourth", "noted"], ["title: T"]),
        ("note#Two", ["second", "third"], ["first", "fourth"]),
        ("note#two", ["second"], ["fourth"]),
        ("note#One#Four", ["fourth"], ["second"]),
        ("note#^b1", ["second"], ["Two", "third"]),
        ("note#^b2", ["item"], ["other", "third"]),
        ("sub/note", ["deep"], []),
    ],
)
def test_html__embeds_stand_in_place(target: str, shown: list[str], hidden: list[str]) -> None:
    """A whole note, a section or a block; its headings are no headings of the book."""
    book = make(
        f"before\n\n![[{target}]]\n\nafter", files={"note.md": EMBEDDED, "sub/note.md": "deep"}, chapters=["doc.md"]
    )
    html = body(book)
    assert '<div class="embed">' in html and "before" in html and "after" in html
    for text in shown:
        assert text in html
    for text in hidden:
        assert text not in html
    assert 'class="heading"' not in html
    assert book.warnings == ()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "no such file"),
        ({"x.md": "a\n\n![[doc]]"}, "hold itself"),
        ({"x.md": "a\n\n![[x]]"}, "hold itself"),
        ({"x.md": b"\xff\xfe"}, "not UTF-8"),
    ],
)
def test_html__embeds_that_cannot_be_shown(files: dict[str, bytes | str], reason: str) -> None:
    """Missing notes and circles leave a line that names them."""
    book = make("![[x]]", files=files, chapters=["doc.md"])
    assert 'class="placeholder-line"' in body(book)
    assert any(reason in warning for warning in book.warnings)


def test_html__embeds_that_multiply_end() -> None:
    """Ten notes that each embed the next ten times would be ten thousand millions."""
    files: dict[str, bytes | str] = {f"n{number}.md": f"![[n{number + 1}]]\n\n" * 10 for number in range(10)}
    book = make("![[n0]]", files=files, chapters=["doc.md"])
    assert len(body(book)) < 3_000_000


@pytest.mark.parametrize(
    "markdown",
    [
        ">" * 300 + " deep",
        "".join(f"{'  ' * level}- item {level}\n" for level in range(60)) + "\nend deep",
        "> " * 40 + "deep\n\nend",
    ],
)
def test_html__deep_nesting_loses_nothing(markdown: str) -> None:
    """Text nested deeper than a page has room for is still there."""
    assert "deep" in text_of(inner(markdown))


def test_html__nesting_beyond_the_parser_is_shown_as_source() -> None:
    """The parser would drop it without a word."""
    book = make(">" * 1000 + " deep\n\nafter")
    assert "deep" in text_of(body(book)) and "after" in body(book)


def words_of(path: str, data: bytes) -> list[str]:
    chapter = parse_chapter(path, data, "")
    words: list[str] = []
    for token in chapter.tokens:
        if token.type == "inline":
            words += inline_text(inline_tokens(chapter, token.content)).split()
        elif token.type in ("fence", "code_block"):
            words += token.content.split()
    return words


@pytest.mark.parametrize("tree", ["rust-book", "vue-zh", "digital-garden"])
def test_html__no_word_of_real_documents_is_lost(tree: str, tmp_path: Path) -> None:
    """Every word of text and code of real trees is in the HTML, in order."""
    import tarfile

    archive = shared_root() / "data" / "corpora" / f"{tree}.tar.gz"
    with tarfile.open(archive) as packed:
        members = [member for member in packed.getmembers() if member.name.endswith(".md")]
        for member in members[:: max(1, len(members) // 25)]:
            reader = packed.extractfile(member)
            assert reader is not None
            data = reader.read()
            shown = "".join(text_of(body(make(data.decode("utf-8")))).split())
            position = 0
            for word in words_of(member.name, data):
                # The own id of a heading is no text.
                word = re.sub(r"\{#\S+\}$", "", word)
                found = shown.find(word, position)
                assert found >= 0, f"{member.name}: {word!r}"
                position = found + len(word)
