"""Which call of the one run is which of the other: by strand first, then by what was asked.

Strands have deterministic names, so most are found by name; those of one parent and function are aligned by what
they ask, so that one more of them does not shift the others. Inside of a strand, calls with the same match key
are aligned in order; then those that are the same but for ids and times; then, over all strands, those that moved;
and of what is left between two aligned calls, those that are most alike count as the same call, changed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from lockstep.debugger import bodies, contents
from lockstep.debugger.alignment import alike, common, gaps
from lockstep.debugger.sameness import loosened
from lockstep.debugger.sides import Call, Lane, Side
from lockstep.log import canonical
from lockstep.log.model import Value

_LIKE = 0.5  # of two things with different names: what they must have in common to be the same one, changed
_SAME_NAME = 0.25  # what an equal name counts for
_SCORED = 40_000  # pairs: 0.2 s
_WORDS = 300  # of one text that are looked at for likeness


class Pairs(msgspec.Struct):
    """What belongs together.

    lanes    strands, None where the other run has no such one
    strayed  of these, the ones that run another function, or began at another place among their like
    calls    the same call, in order inside of each strand
    moved    the same call at another place
    removed  calls that only the one run made, `added` only the other
    """

    lanes: list[tuple[Lane | None, Lane | None]] = []
    strayed: list[tuple[Lane, Lane]] = []
    calls: list[tuple[Call, Call]] = []
    moved: list[tuple[Call, Call]] = []
    removed: list[Call] = []
    added: list[Call] = []


def pair(a: Side, b: Side) -> Pairs:
    """Pairs two runs."""
    found = Pairs([], [], [], [], [], [])
    prints_a, prints_b = _prints(a.roots), _prints(b.roots)
    _pair_lanes(a.roots, b.roots, prints_a, prints_b, found)
    _pair_calls(a, b, found)
    return found


def pair_steps(a: Side, b: Side, calls_a: Sequence[Call], calls_b: Sequence[Call]) -> Pairs:
    """Pairs the calls of two steps, whatever their strands. A step of one call is the other's one call."""
    found = Pairs([], [], [], [], [], [])
    if len(calls_a) == len(calls_b) == 1:
        found.calls.append((calls_a[0], calls_b[0]))
        return found
    one, other = Lane(""), Lane("")
    one.calls, other.calls = list(calls_a), list(calls_b)
    found.lanes.append((one, other))
    _pair_calls(a, b, found)
    found.lanes.clear()
    return found


# Strands.


def _prints(roots: Iterable[Lane]) -> dict[str, bytes]:
    """What each strand with all below it asks, as one digest; b"" where that is nothing."""
    found: dict[str, bytes] = {}
    for lane in _deepest_first(roots):
        below = [(child.name.rpartition("/")[2], found[child.name]) for child in lane.children if found[child.name]]
        asks = blake2b(digest_size=16)
        for call in lane.calls:
            asks.update(call.key)
        for name, printed in sorted(below):
            asks.update(name.encode() + b"\0" + printed)
        found[lane.name] = asks.digest() if lane.calls or below else b""
    return found


def _deepest_first(roots: Iterable[Lane]) -> list[Lane]:
    order: list[Lane] = []
    waiting = list(roots)
    while waiting:
        lane = waiting.pop()
        order.append(lane)
        waiting += lane.children
    return order[::-1]


def _pair_lanes(
    roots_a: list[Lane], roots_b: list[Lane], prints_a: dict[str, bytes], prints_b: dict[str, bytes], found: Pairs
) -> None:
    waiting = [(roots_a, roots_b)]
    while waiting:
        olds, news = waiting.pop()
        if len(olds) == len(news) == 1 and not found.lanes:
            pairs: list[tuple[Lane | None, Lane | None]] = [(olds[0], news[0])]
        else:
            pairs = _siblings(olds, news, prints_a, prints_b, found.strayed)
        found.lanes += pairs
        waiting += [(old.children, new.children) for old, new in pairs if old is not None and new is not None]


def _siblings(
    olds: list[Lane],
    news: list[Lane],
    prints_a: dict[str, bytes],
    prints_b: dict[str, bytes],
    strayed: list[tuple[Lane, Lane]],
) -> list[tuple[Lane | None, Lane | None]]:
    """The strands of one parent."""
    pairs: list[tuple[Lane | None, Lane | None]] = []
    by_stem: dict[str, tuple[list[Lane], list[Lane]]] = {}
    for side, lanes in enumerate((olds, news)):
        for lane in sorted(lanes, key=_number):
            by_stem.setdefault(function(lane), ([], []))[side].append(lane)
    left_a: list[Lane] = []
    left_b: list[Lane] = []
    for some_a, some_b in by_stem.values():
        same = common([prints_a[lane.name] for lane in some_a], [prints_b[lane.name] for lane in some_b])
        keys = _Keys()

        def score(i: int, j: int, a: list[Lane] = some_a, b: list[Lane] = some_b, keys: _Keys = keys) -> float:
            return _SAME_NAME + keys.alike(a[i], b[j]) + (0.01 if a[i].name == b[j].name else 0.0)

        for gap_a, gap_b in gaps(same, len(some_a), len(some_b)):
            same += alike(gap_a, gap_b, score)
        partners_a, partners_b = {i for i, _ in same}, {j for _, j in same}
        pairs += [(some_a[i], some_b[j]) for i, j in sorted(same)]
        left_a += [lane for i, lane in enumerate(some_a) if i not in partners_a]
        left_b += [lane for j, lane in enumerate(some_b) if j not in partners_b]
    # Another function, or another place among its siblings.
    keys = _Keys()
    for one in left_a:
        best, at = 0.0, -1
        for index, other in enumerate(left_b if len(left_a) * len(left_b) <= _SCORED else ()):
            likeness = keys.alike(one, other) if prints_a[one.name] and prints_b[other.name] else 0.0
            if likeness >= _LIKE and likeness > best:
                best, at = likeness, index
        partner = left_b.pop(at) if at >= 0 else None
        pairs.append((one, partner))
        if partner is not None:
            strayed.append((one, partner))
    pairs += [(None, lane) for lane in left_b]
    return pairs


class _Keys:
    """What strands ask, as multisets of match keys."""

    def __init__(self) -> None:
        self._found: dict[int, Counter[bytes]] = {}

    def alike(self, a: Lane, b: Lane) -> float:
        one, other = self._of(a), self._of(b)
        total = max(one.total(), other.total())
        return (one & other).total() / total if total else 0.0

    def _of(self, lane: Lane) -> Counter[bytes]:
        found = self._found.get(id(lane))
        if found is None:
            found = Counter(call.key for each in _deepest_first([lane]) for call in each.calls)
            self._found[id(lane)] = found
        return found


def function(lane: Lane) -> str:
    """What a strand runs, by its name without its number."""
    return lane.name.rpartition("/")[2].rpartition(".")[0]


def _number(lane: Lane) -> tuple[int, str]:
    digits = lane.name.rpartition(".")[2]
    return (int(digits) if digits.isdecimal() and len(digits) < 10 else 0, lane.name)


# Calls.


class _Asked:
    """The requests of calls that have no equal partner, read once."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._loose: dict[tuple[int, int], bytes] = {}
        self._features: dict[tuple[int, int], frozenset[int]] = {}

    def loose(self, call: Call) -> bytes:
        """A match key in which ids and times do not count."""
        at = call.stream, call.seq
        found = self._loose.get(at)
        if found is None:
            asked = loosened(contents.request(call, self._side.asked(call)[0]))
            found = self._loose[at] = canonical.key(call.kind, call.name, asked)
        return found

    def features(self, call: Call) -> frozenset[int]:
        """What the request says, as a set: two are alike by how much of it they share."""
        at = call.stream, call.seq
        found = self._features.get(at)
        if found is None:
            asked = contents.request(call, self._side.asked(call)[0])
            found = self._features[at] = frozenset(map(hash, _leaves(asked, "")))
        return found


def _leaves(value: Value, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        # Without their numbers: what is added before an item moves it.
        for inner in value:
            yield from _leaves(inner, path)
    elif isinstance(value, str | bytes):
        opened: Any = bodies.json(value) if value[:1] in ("{", "[", b"{", b"[") else None
        if isinstance(opened, dict | list):
            yield from _leaves(opened, path)
            return
        for word in value.split(maxsplit=_WORDS)[:_WORDS]:
            yield path, word
    else:
        yield path, repr(value)


type _Gap = tuple[list[Call], list[Call]]


def _pair_calls(a: Side, b: Side, found: Pairs) -> None:
    asked = _Asked(a), _Asked(b)
    left: list[_Gap] = []
    for one, other in found.lanes:
        if one is None or other is None:
            left.append((list(one.calls) if one is not None else [], list(other.calls) if other is not None else []))
        else:
            left += _aligned(one.calls, other.calls, asked, found)
    _take_moved(left, asked, found)
    for olds, news in left:
        pairs = _most_alike(olds, news, asked)
        partners_a, partners_b = {i for i, _ in pairs}, {j for _, j in pairs}
        found.calls += [(olds[i], news[j]) for i, j in pairs]
        found.removed += [call for i, call in enumerate(olds) if i not in partners_a]
        found.added += [call for j, call in enumerate(news) if j not in partners_b]


def _aligned(a: list[Call], b: list[Call], asked: tuple[_Asked, _Asked], found: Pairs) -> list[_Gap]:
    """Pairs what is the same, and returns the gaps."""
    same = common([call.key for call in a], [call.key for call in b])
    found.calls += [(a[i], b[j]) for i, j in same]
    left: list[_Gap] = []
    for olds, news in gaps(same, len(a), len(b)):
        some_a, some_b = [a[i] for i in olds], [b[j] for j in news]
        if not some_a or not some_b:
            left.append((some_a, some_b))
            continue
        near = common([asked[0].loose(call) for call in some_a], [asked[1].loose(call) for call in some_b])
        found.calls += [(some_a[i], some_b[j]) for i, j in near]
        for rest_a, rest_b in gaps(near, len(some_a), len(some_b)):
            left.append(([some_a[i] for i in rest_a], [some_b[j] for j in rest_b]))
    return left


def _take_moved(left: list[_Gap], asked: tuple[_Asked, _Asked], found: Pairs) -> None:
    """Pairs what is the same at another place: in its own strand rather than in another one."""
    olds = [call for gap, _ in left for call in gap]
    news = [call for _, gap in left for call in gap]
    taken: set[int] = set()
    for by_lane in (True, False):
        for loose in (False, True):
            places: dict[Any, deque[Call]] = {}
            for call in news:
                if id(call) not in taken:
                    key = asked[1].loose(call) if loose else call.key
                    places.setdefault((key, call.lane if by_lane else ""), deque()).append(call)
            if not places:
                break
            for call in olds:
                if id(call) in taken:
                    continue
                key = asked[0].loose(call) if loose else call.key
                at = places.get((key, call.lane if by_lane else ""))
                if at:
                    partner = at.popleft()
                    taken |= {id(call), id(partner)}
                    found.moved.append((call, partner))
    for gap_a, gap_b in left:
        gap_a[:] = [call for call in gap_a if id(call) not in taken]
        gap_b[:] = [call for call in gap_b if id(call) not in taken]


def _most_alike(olds: list[Call], news: list[Call], asked: tuple[_Asked, _Asked]) -> list[tuple[int, int]]:
    def score(i: int, j: int) -> float:
        one, other = olds[i], news[j]
        if one.kind != other.kind:
            return 0.0
        if one.name == other.name and len(olds) == len(news) == 1:
            return 1.0
        first, second = asked[0].features(one), asked[1].features(other)
        likeness = len(first & second) / max(1, len(first | second))
        if one.name == other.name:
            return _SAME_NAME + likeness
        return likeness if likeness >= _LIKE else 0.0

    if len(olds) * len(news) <= _SCORED:
        return alike(range(len(olds)), range(len(news)), score)
    # Too many to look at each with each: by kind and name, in order.
    pairs = common([(call.kind, call.name) for call in olds], [(call.kind, call.name) for call in news])
    for gap_a, gap_b in gaps(list(pairs), len(olds), len(news)):
        pairs += alike(gap_a, gap_b, score)
    return pairs
