"""Where a comparison writes down what it finds: the differences in the order of the first run, and what is left out."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

from lockstep.debugger.drawn import Drawn
from lockstep.debugger.entries import DiffEntry
from lockstep.debugger.moments import Moments, Span
from lockstep.debugger.pairing import Pairs
from lockstep.debugger.sameness import LeftOut, Sameness, Where
from lockstep.debugger.sides import Call, Side
from lockstep.debugger.structure import Change, Comparison, Found
from lockstep.log.model import Value

CHANGES = 50  # places listed in one entry

# Where an entry stands: process and position in the first run; for what only the second has, the position there too.
type Order = tuple[int, int, int]

_INDEX = re.compile(r"\[\d+\]")


class Ledger:
    """The findings of one comparison."""

    def __init__(self, a: Side, b: Side, *, exact: bool) -> None:
        self.a = a
        self.b = b
        self.exact = exact
        self._moments = Moments(a), Moments(b)
        self._same = Sameness((Drawn(a), Drawn(b)), self._moments, exact=exact)
        self._entries: list[tuple[Order, DiffEntry]] = []
        self._left_out: dict[tuple[str, str], LeftOut] = {}
        self._places: list[tuple[int, int]] = []  # of what both have: in the second run,
        self._partners: list[Order] = []  # and the latest in the first up to there

    def add(self, order: Order, entry: DiffEntry) -> None:
        self._entries.append((order, entry))

    def entries(self) -> tuple[DiffEntry, ...]:
        """All, in the order of the first run."""
        self._entries.sort(key=lambda pair: pair[0])
        return tuple(entry for _, entry in self._entries)

    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(self._left_out.values())

    def leave_out(self, addresses: tuple[str | None, str | None], what: str, path: str, a: str, b: str) -> None:
        key = what, _INDEX.sub("[]", path)
        before = self._left_out.get(key)
        if before is None:
            self._left_out[key] = LeftOut(what, key[1], 1, addresses[0] or "", addresses[1] or "", a, b)
        else:
            self._left_out[key] = msgspec.structs.replace(before, count=before.count + 1)

    def compare(
        self, addresses: tuple[str | None, str | None], a: Value, b: Value, where: Where, path: str = ""
    ) -> tuple[list[Found], bool]:
        """All that differs between two values, and whether anything was left out."""
        left: set[tuple[str, str, str]] = set()

        def left_out(what: str, inner: str, one: str, other: str) -> None:
            # A message is compared as such and once more in its body: what it says counts once.
            if (what, one, other) not in left:
                left.add((what, one, other))
                self.leave_out(addresses, what, inner, one, other)

        comparison = Comparison(self._same, left_out)
        comparison.compare(a, b, path, path, where)
        return comparison.found, bool(left)

    def spans(self, a: Call, b: Call) -> tuple[Span | None, Span | None]:
        """When two calls were made and answered."""
        return self._moments[0].span(a), self._moments[1].span(b)

    def compare_whole(self, entry: DiffEntry, a: Value, b: Value, order: Order) -> None:
        """Adds the entry where two values differ, with the places."""
        found, _ = self.compare((entry.address_a, entry.address_b), a, b, Where((entry.lane, entry.lane)))
        if found:
            self.add(order, with_changes(entry, found))

    # Where what only the second run has stands among what the first run has.

    def place(self, pairs: Pairs) -> None:
        both = sorted(
            ((other.stream, other.pos), (one.stream, one.pos, 0)) for one, other in [*pairs.calls, *pairs.moved]
        )
        self._places = [place for place, _ in both]
        self._partners = []
        latest: Order = (0, 0, 0)
        for _, order in both:
            latest = max(latest, order)
            self._partners.append(latest)

    def before(self, stream: int, pos: int) -> Order:
        """The order of a place in the second run."""
        at = bisect_right(self._places, (stream, pos))
        first = self._partners[at - 1] if at else (0, 0, 0)
        return first[0], first[1], pos


def with_changes(entry: DiffEntry, found: list[Found]) -> DiffEntry:
    changes = tuple(each.change for each in found[:CHANGES])
    first = changes[0] if changes else Change("", "", "")
    return msgspec.structs.replace(entry, path=first.path, a=first.a, b=first.b, changes=changes)
