"""Several rankings as one, and places shared out among documents. Pure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def fuse(rankings: Iterable[tuple[Sequence[Key], float]], *, k: int) -> dict[Key, float]:
    """Merge rankings by weighted reciprocal rank.

    Args:
        rankings: Each with its weight, best first; a key at most once in each.
        k: Damping constant, >= 1. A key at rank r (from 1) earns weight / (k + r).

    Returns:
        The score of every key that any ranking holds; larger is better.

    Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009.
    """
    scores: dict[Key, float] = {}
    for ranking, weight in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    return scores


def spread(
    items: Iterable[Item], *, group_of: Callable[[Item], Hashable], most_per_group: int | None, places: int
) -> tuple[list[Item], bool]:
    """Fill places in rank order so that no group takes more than its share while others can fill them.

    Args:
        items: Best first; read no further than needed.
        group_of: The group of an item.
        most_per_group: The share; None for no limit.
        places: Most items returned.

    Returns:
        The items, those that were held back after all others and in rank order too; and whether every place was
        filled within the shares.
    """
    taken: list[Item] = []
    held_back: list[Item] = []
    counts: dict[Hashable, int] = {}
    for item in items:
        if len(taken) == places:
            break
        group = group_of(item)
        if most_per_group is not None and counts.get(group, 0) >= most_per_group:
            held_back.append(item)
            continue
        counts[group] = counts.get(group, 0) + 1
        taken.append(item)
    full = len(taken) == places
    return [*taken, *held_back[: places - len(taken)]], full
