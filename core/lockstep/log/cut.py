"""Where a branch leaves its parent: what of the parent's events it shares, and which calls were in flight there.

A branch shares the events up to a position. A call that began up to there and ended later is *in flight at the cut*:
its beginning is shared, what it gets in the branch is the branch's own, and what was nested in it in the parent is
not part of the branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind
from lockstep.log.steps import CLOSING

_MOST = 1 << 16  # calls in flight at once


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
    flying  in the order of positions
    """

    pos: int
    seq: int
    steps: int
    last: int
    flying: tuple[Flying, ...]


def cut(heads: Iterable[tuple[int, Event]], pos: int) -> Cut:
    """The cut at a position, by all heads of the stream."""
    flying: dict[int, Flying] = {}
    closing: set[int] = set()
    ended: list[int] = []
    begun: set[int] = set()
    steps = seq = last = 0
    for number, event in heads:
        last = max(last, event.pos)
        if event.pos > pos:
            continue
        seq = number + 1
        if event.kind is Kind.BEGIN and not event.of:
            closes = event.what in CLOSING
            flying[event.pos] = Flying(event.pos, number, closes, False)
            if closes:
                closing.add(event.pos)
        elif event.kind is Kind.PART:
            begun.add(event.of)
        elif event.kind is Kind.END:
            ended.append(event.of)
        elif event.kind is Kind.STEP:
            steps += 1
    for of in ended:
        if flying.pop(of, None) is not None:
            steps += of in closing
    left = [
        one if one.pos not in begun else msgspec.structs.replace(one, begun=True) for _, one in sorted(flying.items())
    ]
    return Cut(pos, seq, steps, last, tuple(left))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Annotated[tuple[Flying, ...], msgspec.Meta(max_length=_MOST)]).decode


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
