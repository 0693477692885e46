"""Where a branch leaves its parent: what of the parent's events it shares, and which calls were in flight there.

A branch shares the events up to a position. A call that began up to there and ended later is *in flight at the cut*:
its beginning is shared, what it gets in the branch is the branch's own, and what was nested in it in the parent is
not part of the branch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind
from lockstep.log.steps import CLOSING

MOST = 1 << 12  # calls in flight at a cut


class Flying(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An outermost call in flight at a cut: position and number of its BEGIN, whether its end closes a step, and
    whether the program had been given some of its outcome."""

    pos: int
    seq: int
    closing: bool
    begun: bool


class Cut(msgspec.Struct, frozen=True):
    """One cut through a stream.

    pos     the last position that is shared
    seq     the number of the first event that no longer counts: 1 + the greatest number of one up to `pos`
    steps   closed up to `pos`
    last    the greatest position in the stream
    flying  in the order of positions; if there are more than MOST, one more than that
    """

    pos: int
    seq: int
    steps: int
    last: int
    flying: tuple[Flying, ...]


class _Call:
    """An outermost call: at which of the cuts it began, was first answered and ended."""

    __slots__ = ("began", "closing", "ended", "given", "pos", "seq")

    def __init__(self, pos: int, seq: int, closing: bool, began: int, never: int) -> None:
        self.pos = pos
        self.seq = seq
        self.closing = closing
        self.began = began
        self.given = self.ended = never


def cuts(heads: Iterable[tuple[int, Event]], positions: Sequence[int], *, native: bool = False) -> Iterator[Cut]:
    """The cuts at some positions, which rise, by all heads of the stream, in any order. Keeps what spans a cut only:
    a stream may be long, and a forged file may have as many branches as it may. Of a native run, steps are its
    checkpoints, and calls in flight are not gone on with: its tasks run anew."""
    never = len(positions)
    seqs, steps = [0] * (never + 1), [0] * (never + 1)
    last = 0
    # What was met before the BEGIN that it belongs to, since threads may be stored a little out of order.
    ends: dict[int, int] = {}
    parts: dict[int, int] = {}
    nested: set[int] = set()
    calls: dict[int, _Call] = {}
    spanning: dict[int, _Call] = {}

    def end(call: _Call, where: int) -> None:
        call.ended = where
        steps[where] += call.closing
        if call.began < where:
            spanning[call.pos] = call

    for seq, event in heads:
        where = bisect_left(positions, event.pos)
        last = max(last, event.pos)
        seqs[where] = max(seqs[where], seq + 1)
        kind, of = event.kind, event.of
        if kind is Kind.STEP:
            steps[where] += 1
        elif native:
            continue
        elif kind is Kind.BEGIN and of:
            if ends.pop(event.pos, None) is None:
                nested.add(event.pos)
        elif kind is Kind.BEGIN:
            call = _Call(event.pos, seq, event.what in CLOSING, where, never)
            call.given = parts.pop(event.pos, never)
            if event.pos in ends:
                end(call, ends.pop(event.pos))
            else:
                calls[event.pos] = call
        elif kind is Kind.PART:
            found = calls.get(of) or spanning.get(of)
            if found is not None:
                found.given = min(found.given, where)
            elif of not in nested:
                parts[of] = min(where, parts.get(of, never))
        elif kind is Kind.END:
            if of in nested:
                nested.discard(of)
            elif of in calls:
                end(calls.pop(of), where)
            else:
                ends[of] = where
    spanning |= {pos: call for pos, call in calls.items() if call.began < never}
    crossing = [spanning[pos] for pos in sorted(spanning)]
    seq = closed = 0
    for index, position in enumerate(positions):
        seq, closed = max(seq, seqs[index]), closed + steps[index]
        there = (call for call in crossing if call.began <= index < call.ended)
        flying = [Flying(call.pos, call.seq, call.closing, call.given <= index) for call in islice(there, MOST + 1)]
        yield Cut(position, seq, closed, last, tuple(flying))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Annotated[tuple[Flying, ...], msgspec.Meta(max_length=MOST)]).decode


def pack(flying: tuple[Flying, ...]) -> bytes:
    """The calls in flight as they are stored; empty for none."""
    return _encode(flying) if flying else b""


def unpack(data: bytes) -> tuple[Flying, ...]:
    """The reverse. Raises StoreError LS202."""
    if not data:
        return ()
    try:
        return _decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise StoreError(Code.DAMAGED, f"a branch's calls in flight do not decode: {error}") from error


class Hidden:
    """Tells what of the shared events is nested in a call that was in flight, and so not part of the branch."""

    def __init__(self) -> None:
        self._roots: set[int] = set()
        self._anew: set[int] = set()  # those whose code will print again
        self._nested: set[int] = set()
        self._printed: set[int] = set()

    def at(self, flying: Iterable[Flying]) -> None:
        """What is learned from now on is shared up to a cut with these calls in flight."""
        self._roots = {one.pos for one in flying}
        self._anew = {one.pos for one in flying if not one.begun}

    def learn(self, event: Event) -> None:
        """To be told of all events that are shared, from the first call in flight on."""
        if event.kind is Kind.BEGIN:
            if event.of in self._roots or event.of in self._nested:
                self._nested.add(event.pos)
        elif event.kind is Kind.OUTPUT and event.of in self._anew:
            self._printed.add(event.pos)

    def __contains__(self, event: Event) -> bool:
        if event.kind is Kind.OUTPUT and event.pos in self._printed:
            return True
        return bool(self._nested) and event.kind in _BELONG and (event.pos in self._nested or event.of in self._nested)


_BELONG = frozenset({Kind.BEGIN, Kind.PART, Kind.END, Kind.OUTPUT})
