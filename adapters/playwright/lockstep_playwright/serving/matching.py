"""Which recorded call answers one of the browser's.

As everywhere, the first in its lane that asked the same. Two frames, or workers, that start at once may come in the
other order, and then have each other's lanes: so where a lane has no such call, the others are looked through. That is
named where several have one, since they may have had other answers.

A difference is latched as soon as it is found, and what is asked after it is still answered from the record: one beacon
too many need not leave a page without its pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from lockstep.errors import Cut
from lockstep.log.model import Event
from lockstep.session.call import Asked, Call, Piece
from lockstep.session.native.calls import Calls
from lockstep.session.native.served import NativeCall
from lockstep.session.native.serving import Serving
from lockstep.session.tape import Recorded
from lockstep_playwright.layout import LANE
from lockstep_playwright.network import requests
from lockstep_playwright.serving.pace import ORDER
from lockstep_playwright.serving.renaming import Renaming

type Note = Callable[[str, str], Any]


class Match(msgspec.Struct, frozen=True):
    """Who answers a call.

    call      live: the outside does
    recorded  the recorded call that does; None: an edit, or a recorded answer past the cut of a fork
    serving   what it is of
    """

    call: Call
    recorded: Recorded | None = None
    serving: Serving | None = None

    def events(self) -> list[Event]:
        return [event for _, event, _ in self.recorded.pieces] if self.recorded is not None else []

    def now(self) -> Piece:
        """The next piece of what is served."""
        served: Any = self.call  # of a `NativeCall`, or what a fork makes of one
        piece: Piece = served.now()
        return piece


async def match(calls: Calls, lane: str, told: requests.Request, note: Note) -> Match:
    """`lane`: "" where nobody knows who asks. Raises what is latched: Divergence, Cut, Refusal."""
    if isinstance(calls, Serving):
        return _served(calls, lane, told, note)
    renaming = _renaming(getattr(calls, "served", None))
    like = renaming.find(lane, told.kind, told.key) if renaming is not None else None
    call = calls.call(lane or LANE, told.kind)
    call.ask(told.name, told.request, told.key, declared=told.declared)
    if call.held:
        await call.aready()
    if renaming is not None and like is not None:
        renaming.took(told.kind, told.key, like)
    if call.live:
        return Match(call)
    # Of a fork: its part before the cut, which knows what it is of, or what its tail says.
    of: Any = call
    return Match(call, of.recorded, getattr(calls, "served", None))


def is_recorded(calls: Calls, told: Asked) -> bool:
    """Whether some call that nobody made yet asked the same."""
    serving = calls if isinstance(calls, Serving) else getattr(calls, "served", None)
    if serving is None:
        return False
    key = serving.recognised(serving.strand(LANE), told.kind, told.name, told.request, told.key)[2]
    return _elsewhere(serving, key) is not None


def is_once_more(calls: Calls, told: Asked) -> bool:
    """Whether a replay has all the recorded calls behind it that asked the same, and there were some."""
    if not isinstance(calls, Serving) or is_recorded(calls, told):
        return False
    key = calls.recognised(calls.strand(LANE), told.kind, told.name, told.request, told.key)[2]
    return any(effect.begin.key == key for lane in calls.tape.lanes.values() for effect in lane.effects)


def _served(serving: Serving, lane: str, told: Asked, note: Note) -> Match:
    strand = serving.strand(lane or LANE)
    hidden, request, key = serving.recognised(strand, told.kind, told.name, told.request, told.key)
    effect = serving.take(strand, key)
    if effect is None:
        other = _elsewhere(serving, key)
        if other is not None:
            if lane and _is_ambiguous(serving, key):
                note(ORDER, f"{told.name} was asked by {other} when it was recorded, now by {lane}")
            strand = serving.strand(other)
            effect = serving.take(strand, key)
    if effect is None:
        effect = serving.match(strand, told.kind, hidden, key, request)
    if effect is None:
        raise Cut(f"the recording ends before {told.name}")
    renaming = _renaming(serving)
    if renaming is not None:
        renaming.took(told.kind, told.key, effect)
    call = NativeCall(serving, strand, told.kind)
    call.name = hidden
    call.answered_by(effect, key)
    found: Any = call
    return Match(found, effect, serving)


def _renaming(serving: Serving | None) -> Renaming | None:
    found = serving.alike if serving is not None else None
    return found if isinstance(found, Renaming) else None


def _elsewhere(serving: Serving, key: bytes) -> str | None:
    """The lane that has the first such call that nobody made."""
    found = [name for name in serving.tape.lanes if serving.strand(name).state.has(key)]
    return min(found, key=lambda name: _first(serving, name, key), default=None)


def _first(serving: Serving, lane: str, key: bytes) -> int:
    left: Iterator[Recorded] = serving.strand(lane).state.left()
    return next(effect.begin.pos for effect in left if effect.begin.key == key)


def _is_ambiguous(serving: Serving, key: bytes) -> bool:
    """Whether several calls that nobody made asked the same."""
    lanes = [serving.strand(name).state for name in serving.tape.lanes]
    left = (effect for state in lanes if state.has(key) for effect in state.left() if effect.begin.key == key)
    return len(list(islice(left, 2))) > 1
