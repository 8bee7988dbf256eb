"""A second look at the best lexical candidates, with the text at hand: how the words stand in it counts too.

FTS5 knows how often a word occurs, not whether the words of the query stand together. The best candidates are scored
anew by BM25 with a milder length norm, and get a bonus for words that are neighbours in the query and in the text,
for the share of the query that one short stretch of text holds, for words in title and headings, and for holding all
words. The bonuses are small beside the score: they settle the order among equals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from local_vector_search_mcp.index.chunks import StoredChunk
from local_vector_search_mcp.search.lexical import LexicalHit
from local_vector_search_mcp.search.matches import ReadText, Wanted

# Measured on question sets in English and Chinese; every value near these does as well.
_K1: Final = 1.4
_B: Final = 0.5
_TITLE_COUNTS: Final = 3.0
_HEADING_COUNTS: Final = 1.0
_NEIGHBOURS_BONUS: Final = 0.1
_STRETCH_BONUS: Final = 0.2
_STRETCH_TOKENS: Final = 15
_TITLE_BONUS: Final = 0.1
_ALL_BONUS: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Tokens:
    title: list[str]
    headings: list[str]
    body: ReadText


def rescore(
    hits: Sequence[LexicalHit],
    chunks: Mapping[int, StoredChunk],
    wanted: Wanted,
    *,
    look_at: int,
    read: Callable[[StoredChunk], ReadText],
) -> list[LexicalHit]:
    """Order the first ``look_at`` hits anew; the others follow in their order.

    Args:
        hits: Best first.
        chunks: The stored chunks of the hits looked at.
        wanted: What the query looks for.
        look_at: How many hits are looked at.
        read: Gives a chunk's text taken apart.

    Returns:
        All hits, best first, with scores that fall; equal scores are ordered by path and position.
    """
    seen = [(hit, chunks[hit.chunk_id]) for hit in hits[:look_at] if hit.chunk_id in chunks]
    if not seen or not wanted.units:
        return list(hits)
    texts = [
        _Tokens(
            title=wanted.tokens(chunk.title),
            headings=wanted.tokens("\n".join(chunk.heading_path)),
            body=read(chunk),
        )
        for _, chunk in seen
    ]
    average = sum(text.body.size for text in texts) / len(texts) or 1.0
    scored = [
        (-_score(text, wanted, average), chunk.path, chunk.ordinal, hit)
        for text, (hit, chunk) in zip(texts, seen, strict=True)
    ]
    scored.sort(key=lambda one: one[:3])
    ordered = [LexicalHit(hit.chunk_id, -score) for score, _, _, hit in scored]
    # The scores of the rest go on below the last one in the proportion of their first scores.
    last, first_left = ordered[-1].score, seen[-1][0].score
    left = [
        LexicalHit(chunk_id=hit.chunk_id, score=last * hit.score / first_left if first_left else last)
        for hit in hits[look_at:]
    ]
    return [*ordered, *left]


def _score(text: _Tokens, wanted: Wanted, average: float) -> float:
    norm = _K1 * (1 - _B + _B * text.body.size / average)
    places = text.body.places
    body = text.body.tokens() if wanted.phrases else []
    above = frozenset(text.title) | frozenset(text.headings)
    score = 0.0
    for number, unit in enumerate(wanted.units):
        if number in wanted.phrases:
            count = _count_phrase(text, body, wanted, number)
        else:
            stem = unit.stems[0]
            count = len(places.get(stem, ()))
            if stem in above:
                count += _TITLE_COUNTS * text.title.count(stem) + _HEADING_COUNTS * text.headings.count(stem)
        if count:
            score += wanted.counts[number] * unit.weight * count * (_K1 + 1) / (count + norm)
    return score + _bonus(places, above, wanted)


def _count_phrase(text: _Tokens, body: Sequence[str], wanted: Wanted, number: int) -> float:
    unit = wanted.units[number]
    return (
        len(wanted.phrase_places(body, unit))
        + _TITLE_COUNTS * len(wanted.phrase_places(text.title, unit))
        + _HEADING_COUNTS * len(wanted.phrase_places(text.headings, unit))
    )


def _bonus(places: Mapping[str, Sequence[int]], above: frozenset[str], wanted: Wanted) -> float:
    """The bonuses, as a share of half of what a text with every word many times would score."""
    total = sum(wanted.single.values())
    if not total:
        return 0.0
    share = _NEIGHBOURS_BONUS * _neighbours(places, wanted)
    share += _STRETCH_BONUS * _best_stretch(places, wanted) / total
    share += _TITLE_BONUS * sum(weight for stem, weight in wanted.single.items() if stem in above) / total
    if all(stem in places or stem in above for stem in wanted.single):
        share += _ALL_BONUS
    return share * (_K1 + 1) / 2 * sum(wanted.single[stem] for stem in wanted.sequence)


def _neighbours(places: Mapping[str, Sequence[int]], wanted: Wanted) -> float:
    """Which share of the neighbouring words of the query are neighbours in the text."""
    together = apart = 0.0
    for first, second in pairwise(wanted.sequence):
        if first == second:
            continue
        weight = min(wanted.single[first], wanted.single[second])
        behind = frozenset(places.get(second, ()))
        if any(place + 1 in behind for place in places.get(first, ())):
            together += weight
        else:
            apart += weight
    return together / (together + apart) if together else 0.0


def _best_stretch(places: Mapping[str, Sequence[int]], wanted: Wanted) -> float:
    """The largest weight of distinct words that one stretch of the text holds."""
    events = sorted((place, stem) for stem, found in places.items() for place in found)
    counts = dict.fromkeys(places, 0)
    best = current = 0.0
    left = 0
    for place, stem in events:
        if not counts[stem]:
            current += wanted.single[stem]
        counts[stem] += 1
        while place - events[left][0] > _STRETCH_TOKENS:
            gone = events[left][1]
            counts[gone] -= 1
            if not counts[gone]:
                current -= wanted.single[gone]
            left += 1
        best = max(best, current)
    return best
