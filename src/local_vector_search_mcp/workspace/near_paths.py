"""Near paths: what a caller may have meant by a path that does not exist. Touches no disk."""

import difflib
import unicodedata
from collections.abc import Iterable

_LIMIT = 3
_MAX_COMPARED = 20_000


def near_paths(wanted: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known paths that are near to a wanted one, nearest first.

    Paths that differ by case or Unicode form come first, then the same file name elsewhere, then similar spellings.
    """
    target = _folded(wanted)
    name = target.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    ranked: list[tuple[float, str]] = []
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(target)
    for position, path in enumerate(known):
        if position >= _MAX_COMPARED:
            break
        folded = _folded(path)
        other = folded.rpartition("/")[2]
        if folded == target:
            ranked.append((0.0, path))
        elif other == name:
            ranked.append((1.0 + _distance(matcher, folded), path))
        elif (other.rpartition(".")[0] or other) == stem:
            ranked.append((2.0 + _distance(matcher, folded), path))
        else:
            matcher.set_seq1(folded)
            # The two cheap bounds spare the costly comparison for most paths.
            if matcher.real_quick_ratio() > 0.6 and matcher.quick_ratio() > 0.6:
                ranked.append((3.0 + 1.0 - matcher.ratio(), path))
    ranked.sort()
    return tuple(path for score, path in ranked[:_LIMIT] if score < 3.4)


def _distance(matcher: "difflib.SequenceMatcher[str]", folded: str) -> float:
    matcher.set_seq1(folded)
    return 1.0 - matcher.ratio()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
