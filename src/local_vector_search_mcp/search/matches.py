"""Where a text holds what a query looks for: tokens for ranking, character ranges for snippets.

Texts are taken apart as the rows were, so what is shown as found is what was found.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from local_vector_search_mcp.index.normalize import (
    AlignedText,
    Identifier,
    aligned_text,
    identifiers,
    index_text,
    needs_no_folding,
)
from local_vector_search_mcp.search.plan import Plan, Unit
from local_vector_search_mcp.search.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedUnit:
    """A unit of the plan as rows hold it: its stems, how rare it is, whether the last stem may go on."""

    stems: tuple[str, ...]
    weight: float
    open_end: bool


class Match(NamedTuple):
    """The characters ``[start, end)`` of a text, and which unit of the query was found there.

    Made and sorted in great numbers, as tuples are quickly.
    """

    start: int
    end: int
    unit: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText:
    """A text taken apart as its row was.

    Attributes:
        text: As it stands in the document.
        source: What was taken apart: the text itself, or its aligned form.
        aligned: Where ``source`` comes from; None where it is the text itself.
        located: The tokens of ``source`` with their byte ranges in it.
        identifiers: Each with the stems of its parts, which stand behind the tokens of ``source`` in the row.
        size: How many tokens the row has.
        places: The places among them of each stem that scores by itself.
    """

    text: str
    source: str
    aligned: AlignedText | None
    located: list[tuple[int, int, str]]
    identifiers: list[tuple[Identifier, list[str]]]
    size: int
    places: dict[str, list[int]]

    def tokens(self) -> list[str]:
        """The tokens of the row."""
        tokens = [token for _, _, token in self.located]
        for _, stems in self.identifiers:
            tokens += stems
        return tokens


class Wanted:
    """What a plan looks for, ready to be found in texts.

    Args:
        plan: What is asked.
        vocabulary: The words of the index.
    """

    def __init__(self, plan: Plan, vocabulary: Vocabulary) -> None:
        self._tokenizer = vocabulary.tokenizer
        self._part_stems: dict[str, str] = {}
        self.sequence = tuple(vocabulary.stem(unit.tokens[0]) for unit in plan.scored if unit.single)
        """The stems of the words that score, in the query's order, as often as it says them."""
        distinct = tuple(dict.fromkeys(plan.scored))
        self.units = tuple(_wanted(unit, vocabulary) for unit in distinct)
        self.counts = tuple(plan.scored.count(unit) for unit in distinct)
        """How often the query says each unit."""
        self.single = {unit.stems[0]: unit.weight for unit in self.units if len(unit.stems) == 1 and not unit.open_end}
        """The weight of each stem that scores by itself."""
        self.phrases = tuple(place for place, unit in enumerate(self.units) if len(unit.stems) > 1 or unit.open_end)
        self._unit_of = {
            unit.stems[0]: place for place, unit in enumerate(self.units) if len(unit.stems) == 1 and not unit.open_end
        }

    def tokens(self, text: str) -> list[str]:
        """All tokens of a text as its row holds them."""
        return self._tokenizer.stems(index_text(text))

    def phrase_places(self, tokens: Sequence[str], unit: WantedUnit) -> list[int]:
        """The places among tokens at which a unit of several words, or the beginning of one, stands."""
        *head, last = unit.stems
        if not head:
            return [place for place, token in enumerate(tokens) if token.startswith(last)]
        size = len(head)
        return [
            place
            for place, token in enumerate(tokens[:-size])
            if token == head[0]
            and (tokens[place + size] == last or (unit.open_end and tokens[place + size].startswith(last)))
            and list(tokens[place : place + size]) == head
        ]

    def read(self, text: str) -> ReadText:
        """Take a text apart, so that it can be scored and searched for matches."""
        aligned = None if needs_no_folding(text) else aligned_text(text)
        source = text if aligned is None else aligned.text
        located = self._tokenizer.located(source)
        single = self.single
        # Most tokens are none of those looked for, so they are passed over before anything is done for each.
        found = [(place, one[2]) for place, one in enumerate(located) if one[2] in single]
        size = len(located)
        parts: list[tuple[Identifier, list[str]]] = []
        for identifier in identifiers(text):
            stems = [self._stem_of_part(part) for part in identifier.parts]
            parts.append((identifier, stems))
            found += [(place, stem) for place, stem in enumerate(stems, start=size) if stem in single]
            size += len(stems)
        places: dict[str, list[int]] = {}
        for place, stem in found:
            places.setdefault(stem, []).append(place)
        return ReadText(
            text=text, source=source, aligned=aligned, located=located, identifiers=parts, size=size, places=places
        )

    def find(self, read: ReadText) -> list[Match]:
        """Every match in a text, in order; identifiers match by their parts too."""
        spans = [*self._single_spans(read), *self._phrase_spans(read)]
        aligned = read.aligned
        if read.source.isascii():
            found = [Match(*span) for span in spans]
        else:
            chars = _char_places(read.source, [place for span in spans for place in span[:2]])
            found = [Match(chars[start], chars[end], unit, weight) for start, end, unit, weight in spans]
        if aligned is not None:
            found = [
                Match(aligned.starts[start], aligned.ends[end - 1], unit, weight) for start, end, unit, weight in found
            ]
        found += self._in_identifiers(read)
        return sorted(found)

    def _single_spans(self, read: ReadText) -> Iterator[tuple[int, int, int, float]]:
        located = read.located
        for stem, places in read.places.items():
            unit, weight = self._unit_of[stem], self.single[stem]
            for place in places:
                if place < len(located):
                    start, end, _ = located[place]
                    yield start, end, unit, weight

    def _phrase_spans(self, read: ReadText) -> Iterable[tuple[int, int, int, float]]:
        if not self.phrases:
            return
        located = read.located
        tokens = [token for _, _, token in located]
        for number in self.phrases:
            unit = self.units[number]
            for place in self.phrase_places(tokens, unit):
                yield located[place][0], located[place + len(unit.stems) - 1][1], number, unit.weight

    def _in_identifiers(self, read: ReadText) -> Iterable[Match]:
        text = read.text
        for identifier, stems in read.identifiers:
            found = self._among_parts(stems)
            if not found:
                continue
            ranges = _part_ranges(text, identifier)
            name = re.escape(text[identifier.start : identifier.end])
            for again in re.finditer(f"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", text):
                shift = again.start() - identifier.start
                for first, last, unit in found:
                    start, end = ranges[first][0] + shift, ranges[last][1] + shift
                    yield Match(start, end, unit, self.units[unit].weight)

    def _among_parts(self, stems: Sequence[str]) -> list[tuple[int, int, int]]:
        """What is found among the parts of an identifier: the first and the last part, and the unit."""
        found = [(place, place, self._unit_of[stem]) for place, stem in enumerate(stems) if stem in self.single]
        for number in self.phrases:
            unit = self.units[number]
            found += [(place, place + len(unit.stems) - 1, number) for place in self.phrase_places(stems, unit)]
        return found

    def _stem_of_part(self, part: str) -> str:
        stem = self._part_stems.get(part)
        if stem is None:
            stem = self._part_stems[part] = (self._tokenizer.stems(part) or [""])[0]
        return stem


def _wanted(unit: Unit, vocabulary: Vocabulary) -> WantedUnit:
    *head, last = unit.tokens
    stems = (*(vocabulary.stem(token) for token in head), vocabulary.stem(last))
    return WantedUnit(stems=stems, weight=vocabulary.weight_of(unit.rows), open_end=unit.open_end)


def _char_places(text: str, offsets: Sequence[int]) -> dict[int, int]:
    """Byte offsets of UTF-8 as offsets of characters."""
    data = text.encode("utf-8")
    places: dict[int, int] = {}
    at_byte = at_char = 0
    for offset in sorted(set(offsets)):
        at_char += len(data[at_byte:offset].decode("utf-8"))
        at_byte = offset
        places[offset] = at_char
    return places


def _part_ranges(text: str, identifier: Identifier) -> list[tuple[int, int]]:
    """Where each part stands; a name that is spelled with symbols stands as a whole."""
    if len(identifier.parts) == 1:
        return [(identifier.start, identifier.end)]
    ranges: list[tuple[int, int]] = []
    at = identifier.start
    for part in identifier.parts:
        start = text.index(part, at)
        at = start + len(part)
        ranges.append((start, at))
    return ranges
