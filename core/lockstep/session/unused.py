"""The recorded calls that a fork has not used: which one answers a call of its tail, and which is most like it.

Each is handed out once. Past the fork point the program may do things in another order, or in other strands, so a
call is looked for in its own lane first and then in all others, whatever came between.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, islice

import msgspec

from lockstep.log.model import Kind, Status, Value
from lockstep.session import difference
from lockstep.session.tape import Recorded, Tape

_MOST = 3  # places that differ, as many as a person reads
_WINDOW = 100  # recorded calls that are looked through for the nearest, as a divergence does


# Kinds whose recorded answer is no other call's: a process is more than what it printed, and a socket a conversation.
UNANSWERABLE = frozenset({"process", "websocket"})


class Nearest(msgspec.Struct, frozen=True):
    """The recorded call that looks most like one that was not recorded.

    differs  the first places where the two differ: path, recorded and now, short
    used     whether it has answered a call already
    """

    effect: Recorded
    differs: tuple[tuple[str, str, str], ...]
    used: bool


class Unused:
    """An index of what is left of a tape; made where the served part ends. O(1) a question, O(n) to make.

    Not locked: whoever decides and takes does both under one lock.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._used: set[int] = set()  # numbers of events
        self._in_lane: dict[tuple[str, bytes], deque[Recorded]] = {}
        self._anywhere: dict[bytes, deque[Recorded]] = {}
        left = [effect for lane in tape.lanes.values() for effect in lane.effects[lane.cursor :] if _answers(effect)]
        left.sort(key=lambda effect: effect.begin.pos)
        for effect in left:
            begin = effect.begin
            self._in_lane.setdefault((begin.lane, begin.key), deque()).append(effect)
            self._anywhere.setdefault(begin.key, deque()).append(effect)

    def find(self, key: bytes, lane: str) -> Recorded | None:
        """The first unused recorded call with this match key, of this lane if there is one."""
        own = self._first(self._in_lane.get((lane, key)))
        return own if own is not None else self._first(self._anywhere.get(key))

    def take(self, key: bytes, lane: str) -> Recorded | None:
        """The same, and uses it up."""
        found = self.find(key, lane)
        if found is not None:
            self.use(found)
        return found

    def use(self, effect: Recorded) -> None:
        """This call has been answered otherwise: it is not handed out."""
        self._used.add(effect.seq)

    def nearest(self, kind: str, name: str, request: Value, lane: str) -> Nearest | None:
        """The recorded call most like this one, used or not: of the same kind and name, else of those requests that
        went to the same server by the same method; None where there is none."""
        wanted = set(difference.leaves(_told(request)))
        best: tuple[int, bool, Recorded] | None = None
        for effect in self._like(kind, name, lane) or self._like(kind, name.partition("/")[0] + "/", lane):
            used = self._was_used(effect)
            far = len(wanted ^ set(difference.leaves(_told(self._asked(effect)))))
            # Of two that are as like, one that could still answer says more.
            if best is None or (far, used) < best[:2]:
                best = far, used, effect
        if best is None:
            return None
        _, used, effect = best
        recorded = self._asked(effect)
        differs = tuple(islice(difference.each(_told(recorded), _told(request)), _MOST))
        return Nearest(effect, differs or tuple(islice(difference.each(recorded, request), 1)), used)

    def _like(self, kind: str, name: str, lane: str) -> list[Recorded]:
        """Recorded calls of this name, or of all that begin like it where it ends in "/"."""
        own = self._tape.lanes.get(lane)
        others = (each.effects for at, each in self._tape.lanes.items() if at != lane)
        # From the end: what comes after the fork point is what was to come now.
        calls = chain.from_iterable(map(reversed, (own.effects if own is not None else [], *others)))
        return list(islice((effect for effect in calls if _named(effect, kind, name)), _WINDOW))

    def _was_used(self, effect: Recorded) -> bool:
        lane = self._tape.lanes[effect.begin.lane]
        return effect.seq in self._used or effect.index < lane.cursor

    def _first(self, effects: deque[Recorded] | None) -> Recorded | None:
        while effects:
            if effects[0].seq not in self._used:
                return effects[0]
            effects.popleft()
        return None

    def _asked(self, effect: Recorded) -> Value:
        found: Value = self._tape.request(effect).get("request")
        return found


def _named(effect: Recorded, kind: str, name: str) -> bool:
    begin = effect.begin
    if begin.kind is not Kind.BEGIN or begin.what != kind:
        return False
    return begin.name == name or (name.endswith("/") and begin.name.startswith(name))


def _answers(effect: Recorded) -> bool:
    """Whether the recording has an answer that another call can be given: not of one that was in flight when it
    ended, nor of one that the program cancelled."""
    if effect.begin.kind is not Kind.BEGIN or effect.begin.what in UNANSWERABLE or not effect.ended:
        return False
    return effect.pieces[-1][1].what != Status.CANCELLED


def _told(request: Value) -> Value:
    # Who asks, and with which client, differs where nothing does that matters.
    if isinstance(request, dict) and "headers" in request:
        return {name: value for name, value in request.items() if name != "headers"}
    return request
