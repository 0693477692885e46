"""One stretch of a native run's record, as it is served: which recorded call answers a call, and what it hands out.

In its lane, the first unused recorded call with the same match key. Nobody says which of two calls that are open at
once in one lane comes first (a node may gather them), so no order is asked for: each call is told by what it asks, and
equal ones get their answers in the recorded order.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn, Protocol

from lockstep.errors import Code, Difference
from lockstep.log import untapped
from lockstep.log.model import Event, Status, Value
from lockstep.session import engine, findings, sites
from lockstep.session.call import Call
from lockstep.session.handed import Handed, served
from lockstep.session.native.calls import Strand
from lockstep.session.native.faults import worded
from lockstep.session.native.latch import Latch
from lockstep.session.native.order import Order
from lockstep.session.native.served import NativeCall
from lockstep.session.secrets import Secrets
from lockstep.session.served import as_recorded
from lockstep.session.tape import LaneTape, Recorded, Tape

_ALIKE = 50  # recorded calls of a lane over which one is laid to find it by other values of its secrets


class Alike(Protocol):
    """What an adapter knows of calls that do not ask the same, and stand for each other."""

    def key(self, lane: str, kind: str, key: Value) -> bytes | None:
        """The match key of the recorded call that this one stands for; None where only an equal one does."""
        ...

    def told(self, found: Difference, kind: str, request: Value) -> Difference:
        """What is said of a call that was not recorded. `request`: its own, with its secrets hidden."""
        ...


class Unasked:
    """What is recorded of one lane and has not been asked for. `effects` and `cursor` are those of its tape: the
    latter is the first that is left."""

    __slots__ = ("_by_key", "_tape", "_used")

    def __init__(self, tape: LaneTape) -> None:
        self._tape = tape
        self._used: set[int] = set()
        self._by_key: dict[bytes, deque[Recorded]] = {}
        for effect in tape.effects:
            self._by_key.setdefault(effect.begin.key, deque()).append(effect)

    @property
    def effects(self) -> list[Recorded]:
        return self._tape.effects

    @property
    def cursor(self) -> int:
        return self._tape.cursor

    def has(self, key: bytes) -> bool:
        return bool(self._by_key.get(key))

    def take(self, key: bytes) -> Recorded | None:
        """The first with this match key, which is used up."""
        found = self._by_key.get(key)
        if not found:
            return None
        effect = found.popleft()
        self._used.add(effect.index)
        tape = self._tape
        while tape.cursor < len(tape.effects) and tape.cursor in self._used:
            tape.cursor += 1
        return effect

    def left(self) -> Iterator[Recorded]:
        """Those that nobody asked for, in the recorded order."""
        return (effect for effect in self.effects[self.cursor :] if effect.index not in self._used)

    def likeliest(self, kind: str, name: str) -> Recorded | None:
        """The one that a call which was not recorded stands in the place of: the first of its kind and name, else the
        first."""
        first = None
        for effect in self.left():
            if (effect.begin.what, effect.begin.name) == (kind, name):
                return effect
            first = first or effect
        return first


class Serving:
    """Is `Calls`. What a `ServedCall` needs of its session, for one tape.

    tape         what is recorded
    latched      where the first difference is
    interrupted  whether nothing is known of what follows it
    alike        who knows of calls that stand for each other though they do not ask the same, None where nobody does
    """

    recording = False
    alike: Alike | None = None
    turn_over = False  # its turn has ended: what a strand of it still waits for does not come

    def __init__(
        self, tape: Tape, secrets: Secrets, latch: Latch, *, interrupted: bool = False, ordered: bool = True,
        deadline: float = 30.0, patience: float = 0.5, also: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """`ordered`: all of it is to happen again, in its order. `deadline`: seconds without progress that a strand
        waits for an answer that does not come; `patience`: likewise, for what is to come before its answer; `also`: see
        `Order`."""
        self.tape = tape
        self.secrets = secrets
        self.latched = latch
        self.interrupted = interrupted
        self.deadline = deadline
        self.patience = patience
        self.root = Strand("", Unasked(LaneTape()))
        self.counts: dict[str, int] = {}
        self.faults: list[str] = []
        self.progress = 0  # grows with whatever a strand asks or gets
        self._lock: Any = untapped.RLock()
        self._strands: dict[str, Strand] = {}
        self._handed: dict[int, Handed] = {}  # by position of the recorded call
        self._due = sum(effect.ended for lane in tape.lanes.values() for effect in lane.effects)
        self._over: set[int] = set()
        self.order = Order(tape, also) if ordered else None

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`."""
        if self.latched.stopped:
            self.latched.raise_it()
        if within is not None:
            self.diverge(Code.EXTRA, f"a {kind} call from inside a served call", lane=lane, kind=kind)
        return NativeCall(self, self.strand(lane), kind)

    def strand(self, lane: str) -> Strand:
        with self._lock:
            found = self._strands.get(lane)
            if found is None:
                found = self._strands[lane] = Strand(lane, Unasked(self.tape.lane(lane)))
            return found

    def recognised(
        self, lane: Strand, kind: str, name: str, request: Value, key: Value
    ) -> tuple[str, Value, bytes]:  # fmt: skip
        """A call with its secrets hidden, and its match key: as the recorded one's, where that differs in the values of
        its secrets only, or stands for it (`Alike`)."""
        hidden: tuple[str, Value, bytes] = self.secrets.asked(kind, name, request, key)
        like = self.alike.key(lane.name, kind, key) if self.alike is not None else None
        if like is not None:
            return hidden[0], hidden[1], like
        state: Unasked = lane.state
        if not state.has(hidden[2]):
            for effect in islice((each for each in state.left() if each.begin.what == kind), _ALIKE):
                found = as_recorded(self, kind, effect, name, request, key)
                if found is not None:
                    return found
        return hidden

    def take(self, lane: Strand, key: bytes) -> Recorded | None:
        """The recorded call that answers one with this match key, which is used up; None where there is none."""
        with self._lock:
            self.progress += 1
            found: Recorded | None = lane.state.take(key)
        if found is not None and self.order is not None:
            self.order.asked(found.begin.pos)
        return found

    def match(self, lane: Strand, kind: str, name: str, key: bytes, request: Value) -> Recorded | None:
        """The recorded call that answers this one; None past the end of an interrupted recording. Raises Divergence."""
        found = self.take(lane, key)
        if found is not None:
            return found
        with self._lock:
            expected = lane.state.likeliest(kind, name)
        if self.latched.stopped:
            self.latched.raise_it()
        if expected is None and self.interrupted:
            return None
        decision = engine.Diverge(Code.REQUEST, "another request than recorded", expected)
        if expected is None:
            some = "further call" if lane.state.effects else "call"
            decision = engine.Diverge(Code.EXTRA, f"the recorded run made no {some} in this lane")
        asked = {"lane": lane.name, "kind": kind, "name": name, "source": sites.site(2)}
        told = findings.unmatched(self.tape, self.tape.lane(lane.name), asked, request, decision)
        self.latched.stop_at(self.alike.told(told, kind, request) if self.alike is not None else told)
        raise self.latched.error()

    # What else a `ServedCall` asks of its session.

    def log_of(self, lane: Strand) -> Serving:
        return self

    def append(self, handed: Handed) -> None:
        self._handed[handed.pos] = handed

    def count(self, kind: str) -> None:
        with self._lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def fault(self, where: str, error: BaseException) -> None:
        """An error of our own while serving: the replay is not called identical."""
        self.faults.append(worded(where, error))

    def raise_latched(self) -> NoReturn:
        self.latched.raise_it()

    def diverge(self, code: Code, reason: str, **about: Any) -> NoReturn:
        """Latches a difference (see `differs`) and raises it."""
        self.differs(code, reason, **about)
        self.latched.raise_it()

    def differs(self, code: Code, reason: str, **about: Any) -> None:
        """Latches a difference that was found otherwise, if it is the first. `about`: call, or lane, kind and name; at
        (a position, or a recorded call); path, expected, actual, source."""
        call = about.pop("call", None)
        if call is not None:
            about = {"kind": call.kind, "name": call.name, "lane": call.lane.name, "at": call.recorded or sys.maxsize,
                     **about}  # fmt: skip
        about.setdefault("source", sites.site(2))
        about.setdefault("lane", "")
        self.latched.stop_at(findings.finding(self.tape, code, reason, **about))

    # What the program has got.

    def handed_out(self, event: Event, over: Recorded | None) -> None:
        """A strand has got this piece; with it all of the call `over`."""
        with self._lock:
            self.progress += 1
            if over is not None and over.ended:
                self._over.add(over.begin.pos)
        if self.order is not None:
            self.order.handed(event)

    def over(self, call: Recorded | None) -> None:
        """The program takes no more of a call."""
        with self._lock:
            self.progress += 1
            if call is not None and call.ended:
                self._over.add(call.begin.pos)
        if self.order is not None and call is not None:
            self.order.come(*(event.pos for _, event, _ in call.pieces))

    # The end.

    def left(self) -> list[Recorded]:
        """Recorded calls that nobody made, by position. Of one that the recorded program cancelled, nobody knows
        whether it would have come to be made."""
        with self._lock:
            found = [
                effect
                for name in self.tape.lanes
                for effect in self.strand(name).state.left()
                if not (effect.ended and effect.pieces[-1][1].what == Status.CANCELLED)
            ]
        return sorted(found, key=lambda effect: effect.begin.pos)

    def finish(self) -> None:
        """The stretch is over: latches a recorded call that was never made, or of whose answer less was taken, if
        nothing differed before. Not where the recording was interrupted in it, and the replay stopped there."""
        if self.latched.stopped:
            return
        found = self.left()
        if found and not (self.interrupted and not any(effect.ended for effect in found)):
            missing = found[0]
            self.latched.stop_at(findings.never_made(self.tape, missing.seq, missing.begin, missing))
            return
        short = self._short()
        if short is not None:
            self.differs(
                Code.PAST_END, "the recorded program read more of this answer", lane=short.begin.lane, at=short,
                kind=short.begin.what, name=short.begin.name,
                source=str(self.tape.request(short).get("site", "")),
            )  # fmt: skip

    @property
    def is_through(self) -> bool:
        """Whether all calls of the stretch have been made, and what came of them taken."""
        return not self.left() and self._short() is None

    def _short(self) -> Recorded | None:
        for effect in self._asked():
            last = effect.pieces[-1][1] if effect.ended else None
            got = self._handed[effect.begin.pos]
            if last is not None and last.what != Status.CANCELLED and last.key and last.key != got.digest():
                return effect
        return None

    def _asked(self) -> Iterator[Recorded]:
        for lane in self.tape.lanes.values():
            yield from (effect for effect in lane.effects if effect.begin.pos in self._handed)

    def handed(self) -> Iterator[tuple[str, tuple[bytes, bytes]]]:
        """Of each call that was made, by position: its lane, match key and the digest of what was handed out."""
        for effect in sorted(self._asked(), key=_position):
            got = self._handed[effect.begin.pos]
            whole = got.ended or effect.ended
            # Of one that was in flight at the cut, how much of it had come is a race.
            digest = got.digest() if whole else served(effect, self.tape.body)
            if not _cancelled(effect):
                yield effect.begin.lane, (got.key, digest)

    def recorded(self) -> Iterator[tuple[str, tuple[bytes, bytes]]]:
        """The same as it is recorded."""
        every = [effect for lane in self.tape.lanes.values() for effect in lane.effects if not _cancelled(effect)]
        for effect in sorted(every, key=_position):
            yield effect.begin.lane, (effect.begin.key, served(effect, self.tape.body))

    def outstanding(self) -> bool:
        """Whether some recorded answer has not been handed out."""
        with self._lock:
            return len(self._over) < self._due


def _position(effect: Recorded) -> int:
    return effect.begin.pos


def _cancelled(effect: Recorded) -> bool:
    return effect.ended and effect.pieces[-1][1].what == Status.CANCELLED


def lane_sums(told: Iterable[tuple[str, tuple[bytes, bytes]]]) -> list[engine.LaneSum]:
    """The identity of each lane's content, from its calls."""
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for lane, effect in told:
        found.setdefault(lane, []).append(effect)
    return [engine.LaneSum(lane, tuple(effects), (), ()) for lane, effects in found.items()]
