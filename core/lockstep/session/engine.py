"""The decisions of a replay, as plain functions: no I/O, no waiting, no clock.

`match` answers the one question that every intercepted call asks: which recorded effect is this?
Inside its lane the next unused effect with the same match key; the order inside a lane must be the
recorded one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from lockstep.errors import Code
from lockstep.session.tape import LaneTape, Recorded


class Serve(msgspec.Struct, frozen=True):
    """The record answers the call with this effect."""

    effect: Recorded


class Diverge(msgspec.Struct, frozen=True):
    """The record does not answer it: `expected` is the recorded effect at this place, if there is one."""

    code: Code
    reason: str
    expected: Recorded | None = None


class Beyond(msgspec.Struct, frozen=True):
    """The lane of an interrupted recording ends here: what follows is not known."""


type Decision = Serve | Diverge | Beyond


def match(lane: LaneTape, key: bytes, interrupted: bool) -> Decision:
    """Decides a call with match key `key`, and uses up the effect that it serves."""
    effects, cursor = lane.effects, lane.cursor
    if cursor < len(effects):
        expected = effects[cursor]
        if expected.begin.key == key:
            lane.cursor = cursor + 1
            return Serve(expected)
        for later in effects[cursor + 1 :]:
            if later.begin.key == key:
                return Diverge(Code.ORDER, "this call was recorded later in its lane", expected)
        return Diverge(Code.REQUEST, "another request than recorded", expected)
    if interrupted:
        return Beyond()
    return Diverge(Code.EXTRA, "the recorded run made no further call in this lane")


def left(lanes: Iterable[LaneTape]) -> Recorded | None:
    """The first recorded effect, by position, that no call has used."""
    unused = [lane.effects[lane.cursor] for lane in lanes if lane.cursor < len(lane.effects)]
    return min(unused, key=lambda effect: effect.begin.pos) if unused else None


class LaneSum(msgspec.Struct, frozen=True):
    """What one lane's identity is made of: (match key, outcome digest) of its effects in the order
    asked, values read by source, and a digest of its output by channel."""

    name: str
    effects: tuple[tuple[bytes, bytes], ...]
    reads: tuple[tuple[str, int], ...]
    output: tuple[tuple[str, bytes], ...]


def digest(lanes: Iterable[LaneSum], end: bytes) -> bytes:
    """The identity of a run's content: lane by lane, then the end. 32 bytes, BLAKE2b.

    Times, arrival order, processes and hash seeds are not in it, so a recording and its replay have
    the same. `end` is the canonical form of exit status or exception.
    """
    total = blake2b(digest_size=32, person=b"lockstep run")
    for lane in sorted(lanes, key=lambda item: item.name):
        if not (lane.effects or lane.reads or lane.output):
            continue
        part = blake2b(digest_size=32, person=b"lockstep lane")
        part.update(msgspec.msgpack.encode(lane))
        total.update(part.digest())
    total.update(end)
    return total.digest()
