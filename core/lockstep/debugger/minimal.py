"""Delta debugging: the smallest part of a whole that still has an effect. Pure.

    search = smallest(range(52), known={frozenset(): False, frozenset(range(52)): True})
    chosen = next(search)                 # try these
    chosen = search.send(True)            # they have it; False: they have not; None: nobody can say
    ...                                   # StopIteration.value: Smallest((7, 31), proven=True)

`ddmin` of Zeller and Hildebrandt ("Simplifying and isolating failure-inducing input", IEEE TSE 28, 2002): the halves
are tried, then what is left without each, then smaller parts. What it ends with is 1-minimal: without any one of its
items it has been seen not to have the effect, or nobody could say. Nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, MutableMapping, Sequence
from itertools import pairwise

import msgspec

type Chosen = frozenset[int]
# What is known of sets that were tried; the search adds to it.
type Known = MutableMapping[Chosen, bool | None]


class Smallest(msgspec.Struct, frozen=True):
    """Where the search ended. `proven`: whether each item was left out by itself, and the effect was gone."""

    items: tuple[int, ...]
    proven: bool


type Searching = Generator[Chosen, bool | None, Smallest]


def smallest(items: Iterable[int], known: Known, likely: Sequence[int] = ()) -> Searching:
    """Yields sets to try, is sent whether each has the effect.

    items   what together has it
    likely  of these, what must be in the answer by what is known so far: tried alone first, and doubted last
    """
    whole = sorted(items)
    first = [item for item in whole if item in set(likely)]
    rest = [item for item in whole if item not in set(first)]
    if first and (yield from _ask(first, known)):
        rest = []
    elif rest:
        rest = yield from _reduced(rest, first, known)
    return (yield from _checked(sorted([*first, *rest]), known))


def ahead(
    items: Iterable[int], known: Known, likely: Sequence[int], chosen: Chosen, most: int
) -> tuple[Chosen, ...]:  # fmt: skip
    """The set that is asked about, and those that are asked about next, up to `most`, as long as none of them has the
    effect."""
    found = [chosen]
    told = dict(known)
    while len(found) < most:
        told[found[-1]] = False
        try:
            found.append(next(smallest(items, told, likely)))
        except StopIteration:
            break
    return tuple(found)


def _ask(chosen: Iterable[int], known: Known) -> Generator[Chosen, bool | None, bool | None]:
    asked = frozenset(chosen)
    if asked not in known:
        known[asked] = yield asked
    return known[asked]


def _reduced(rest: list[int], fixed: list[int], known: Known) -> Generator[Chosen, bool | None, list[int]]:
    """`ddmin` over `rest`, with what is `fixed` in every set."""
    parts = min(2, len(rest))
    while len(rest) > 1:
        blocks = _split(rest, parts)
        smaller = None
        for block in blocks:
            if (yield from _ask([*fixed, *block], known)):
                smaller, parts = block, 2
                break
        else:
            for block in blocks if parts > 2 else ():
                left = [item for item in rest if item not in set(block)]
                if (yield from _ask([*fixed, *left], known)):
                    smaller, parts = left, max(parts - 1, 2)
                    break
        if smaller is not None:
            rest = smaller
        elif parts < len(rest):
            parts = min(2 * parts, len(rest))
        else:
            break
    return rest


def _split(items: list[int], parts: int) -> list[list[int]]:
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    return [items[low:high] for low, high in pairwise(bounds)]


def _checked(items: list[int], known: Known) -> Searching:
    """Leaves each item out by itself; where the effect stays, it was not needed, and all others are tried again."""
    proven = True
    number = 0
    while number < len(items):
        left = [*items[:number], *items[number + 1 :]]
        has = yield from _ask(left, known)
        if has:
            items, number, proven = left, 0, True
            continue
        proven = proven and has is False
        number += 1
    return Smallest(tuple(items), proven)
