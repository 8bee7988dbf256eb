"""Links and anchors of a document come back as they were packed."""

from hypothesis import given
from hypothesis import strategies as st

from local_vector_search_mcp.index.link_rows import (
    Anchors,
    StoredLink,
    link_name_hashes,
    name_hash,
    pack_anchors,
    pack_links,
    unpack_anchors,
    unpack_links,
)

TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=30)
LINKS = st.builds(
    StoredLink,
    kind=st.sampled_from(["link", "image", "wikilink", "embed"]),
    target=TEXTS,
    path=TEXTS,
    anchor=st.none() | TEXTS,
    logical=st.sampled_from(["1.p1", "li1.li2", "frontmatter"]),
)


@given(st.lists(LINKS))
def test_pack_links__keeps_any_links(links: list[StoredLink]) -> None:
    """Any links come back in order, the one without path and the one with an empty anchor too."""
    again = unpack_links(pack_links(links))
    # A path that is empty beside a target that is not would be taken for the target; no link has such a one but
    # one within its document, whose target begins with '#'.
    assert [one for one, link in zip(again, links, strict=True) if link.path] == [one for one in links if one.path]
    assert [(one.kind, one.target, one.anchor) for one in again] == [(o.kind, o.target, o.anchor) for o in links]


def test_pack_links__within_the_document() -> None:
    """A link to a heading of its own document keeps its empty path."""
    link = StoredLink(kind="link", target="#part", path="", anchor="part", logical="p1")
    assert unpack_links(pack_links([link])) == [link]


def test_pack_links__nothing() -> None:
    """Documents without links or anchors take no room."""
    assert pack_links([]) is None
    assert unpack_links(None) == []
    assert pack_anchors([], []) is None
    assert unpack_anchors(None) == Anchors(frozenset(), frozenset())


def test_pack_anchors__keeps_both_kinds() -> None:
    """Heading slugs and block ids stay apart; block ids ignore case."""
    packed = pack_anchors(["intro", "intro-1", "übersicht"], ["Abc", "x-1"])
    assert unpack_anchors(packed) == Anchors(frozenset({"intro", "intro-1", "übersicht"}), frozenset({"abc", "x-1"}))


def test_link_name_hashes__once_each() -> None:
    """Each name counts once; links within the document have none."""
    links = [
        StoredLink(kind="link", target=target, path=target, anchor=None, logical="p1")
        for target in ("x/Plan.md", "plan.md", "", "other.png")
    ]
    assert set(link_name_hashes(links)) == {name_hash("plan"), name_hash("other.png")}
