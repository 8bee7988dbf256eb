"""Near paths: what a caller may have meant by a path that does not exist. Touches no disk."""

import difflib
import unicodedata
from collections.abc import Iterable

_LIMIT = 3
_MAX_COMPARED = 20_000
_LENGTH_OF_A_SLIP = 4


def near_paths(wanted: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known paths that are near to a wanted one, nearest first.

    Paths that differ by case or Unicode form come first, then the same file name elsewhere, then similar spellings.
    """
    target = _folded(wanted)
    folder, _, name = target.rpartition("/")
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
        elif _may_be_a_slip(folder, name, folded, other):
            matcher.set_seq1(folded)
            # The two cheap bounds spare the costly comparison for most of the rest.
            if matcher.real_quick_ratio() > 0.6 and matcher.quick_ratio() > 0.6:
                ranked.append((3.0 + 1.0 - matcher.ratio(), path))
    ranked.sort()
    return tuple(path for score, path in ranked[:_LIMIT] if score < 3.4)


def _may_be_a_slip(folder: str, name: str, path: str, other: str) -> bool:
    """Whether a path is worth a close look: one in the same folder, or a name that begins alike and is as long."""
    if path[: -len(other) - 1] == folder:
        return True
    return other[:1] == name[:1] and abs(len(other) - len(name)) <= _LENGTH_OF_A_SLIP


def _distance(matcher: "difflib.SequenceMatcher[str]", folded: str) -> float:
    matcher.set_seq1(folded)
    return 1.0 - matcher.ratio()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
