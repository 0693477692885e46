"""A session that replays: it serves what was recorded, and finds the first difference."""

from __future__ import annotations

import _thread
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import msgspec

from lockstep.errors import Code, Cut, Difference, Divergence
from lockstep.log import canonical
from lockstep.log.model import Kind, Value
from lockstep.session import claims, current, engine, findings, lanes, reads, sites
from lockstep.session.gate import Gate, Stopped
from lockstep.session.handed import Handed, served, step_key, stepped
from lockstep.session.lanes import Lane
from lockstep.session.printed import Printed
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets
from lockstep.session.served import ServedCall
from lockstep.session.standstill import Standstill
from lockstep.session.surface import UNKNOWN, Session, ending
from lockstep.session.tape import Recorded, Slot, Tape
from lockstep.session.turns import Turns

_sleep = time.sleep  # before the taps
_monotonic_ns = time.monotonic_ns
_PATIENCE = 0.1  # seconds that a loop waits for a callback from another thread before it goes on without
_LATE = 2_000_000_000  # nanoseconds that a strand which came to the cut waits for what others had still said
_SETTLE = 1.0  # seconds without progress after which other strands are not waited for at the end


class Replaying(Session):
    """Every answer comes from the tape; the first difference is latched."""

    recording = False
    gate: Gate

    def __init__(
        self, run: str, process: str, seed: bytes, tape: Tape, speed: float, deadline: float,
        secrets: Secrets | None = None,
    ) -> None:  # fmt: skip
        self.tape = tape
        self.reading: Any = _thread.RLock()  # held by who reads the store
        self.interrupted = tape.interrupted
        self.gate = Gate(tape.slots, speed)
        self.printer: Callable[[str, Value], None] | None = None
        self.want: Callable[[str], None] | None = None  # says so of another process, by its lane
        self.wanted: Callable[[], bool] | None = None  # whether another process waits for this one to come to its cut
        self._first: Difference | None = None
        self._when = 0  # when that was found
        self._elsewhere = False  # another process of the run is not the recorded one
        self._cut = False
        self._turns: dict[str, Turns] = {}
        self.standstill = Standstill(self, deadline)
        self._open: frozenset[str] = frozenset(self._recorded_end().get("open", ()))  # strands that ran on at the end
        self._awaited: dict[int, Any] = {}  # slot -> what its loop sleeps on
        self._missed: set[int] = set()  # slots that a loop has waited for in vain
        self._unknown: Difference | None = None  # the first strand or task that the recording does not have
        self.wakes: dict[int, Callable[[Any], None]] = {}  # slot -> lets a callback from another thread run
        Session.__init__(self, run, process, seed, secrets)
        self.gate.claims = claims.of(self, tape.turns)
        self.gate.on_wait = self.standstill.check

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = Session.new_lane(self, name, parent, strand)
        lane.state = self.tape.lane(name)
        if self._unknown is None and name not in self.tape.strands and not self.interrupted:
            self._unknown = findings.begun(self.tape, name, sites.site(2))
        return lane

    def open(self, kind: str) -> Any:
        lane = lanes.current()
        if lanes.collecting():
            self.collected(f"{kind} call")
        if lane is None and lanes.inside() is not None:
            self.diverge(Code.EXTRA, f"a {kind} call from inside a served effect", kind=kind)
        if self.stopped:
            self.raise_latched()
        return ServedCall(self, lane or lanes.lane(), kind)

    def match(self, lane: Lane, kind: str, name: str, key: bytes, request: Value) -> Recorded | None:
        """The recorded effect for this call; None past the cut of an interrupted run."""
        if self.stopped:
            self.raise_latched()
        decision = engine.match(lane.state, key, self.interrupted or lane.strand.name in self._open)
        if isinstance(decision, engine.Beyond):
            return None

        def asked() -> dict[str, Any]:  # only where it differs: looking for the site takes 10 µs
            return {"lane": lane.name, "kind": kind, "name": name, "source": sites.site(2)}

        if isinstance(decision, engine.Diverge):
            self.stop_at(findings.unmatched(self.tape, lane.state, asked(), request, decision))
            self.raise_latched()
        recorded = decision.effect
        if recorded.begin.kind is Kind.BEGIN:
            found = findings.miscounted(self.tape, recorded, lane.reads, asked)
            if found is not None:
                self.stop_at(found)
                self.raise_latched()
        for channel in lane.state.output:
            found = findings.unprinted(self.tape, recorded, lane.name, self._channel(lane, channel), channel)
            if found is not None:
                self.stop_at(msgspec.structs.replace(found, source=sites.site(1)))
                self.raise_latched()
        return recorded

    def cause(self, lane: Lane | None, what: str, number: int | str) -> Slot | None:
        """The recorded cause with this number in this lane, None if it never came. Wake-ups of a loop
        have names that are unique without a lane."""
        return self.tape.causes.get((lane.name if lane is not None else "", what, str(number)))

    def turns(self, lock: str) -> Turns | None:
        """The recorded turns of a lock, None if only one strand ever took it."""
        with self._lock:
            found = self._turns.get(lock)
            if found is None and lock in self.tape.turns:
                found = self._turns[lock] = Turns(self, self.tape.turns[lock])
            return found

    def wake_sent(self, slot: Slot, release: Callable[[Any], None]) -> None:
        """Another thread has sent the callback that the recording saw run at `slot`."""
        with self._lock:
            self.wakes[slot.index] = release
            sleeper = self._awaited.pop(slot.index, None)
        if sleeper is not None:
            sleeper.release()

    def wait_for_wake(self, slot: Slot) -> bool:
        """Blocks a loop that has come to the place of a callback which another thread will send. False: it did
        not come for a while, so the loop's count may be ahead of the recording's, and it is to go on. Once a
        callback: a loop that is ahead passes here each time it has run one."""
        with self._lock:
            if slot.index in self.wakes or self.stopped:
                return not self.stopped
            if slot.index in self._missed:
                return False
            sleeper = self._awaited[slot.index] = _thread.allocate_lock()
            sleeper.acquire()
        with self.standstill.blocking():
            sleeper.acquire(timeout=_PATIENCE)
        with self._lock:
            self._awaited.pop(slot.index, None)
            if slot.index not in self.wakes:
                self._missed.add(slot.index)
            return slot.index in self.wakes and not self.stopped

    def hold(self, lock: Any) -> bool:
        """Takes a plain lock that another strand will release, however long that takes. Raises what was latched
        where it will not: the other strand may have died of it."""
        if lock.acquire(False):
            return True
        with self.standstill.blocking():
            while not lock.acquire(True, 0.25):
                if self.stopped:
                    self.raise_latched()
        return True

    def never(self, lane: Lane, what: str) -> NoReturn:
        """The recorded program never got past this: it was cut, or it ended while this strand waited."""
        if self.interrupted:
            self.cut_here()
        if lane.strand is self.root:
            self.diverge(
                Code.EXTRA, f"the recorded program never waited here ({what})", lane=lane, kind=what, name=what
            )
        self._rest()

    def past_end(self, lane: Lane) -> bool:
        """A lane wants to read more than was recorded. Returns True where nothing is known of it and the real
        value does: where an interrupted recording stops short of other lanes that are still to go on."""
        if self.stopped:
            self.raise_latched()
        if self.interrupted:
            if self.gate.head() is not None:
                return True
            self.cut_here()
        if lane.strand.name in self._open:
            self._rest()
        return False

    def at_cut(self) -> NoReturn:
        """This strand waited here for another process when the recording was cut: it waits until it is again."""
        self.gate.wait_stop()
        self.raise_latched()

    def _rest(self) -> NoReturn:
        # As in the recording, this strand gets no further before the end of the program.
        self.gate.wait_stop()
        if self._first is None and not self._cut:
            raise SystemExit  # a thread ends by it without a word
        self.raise_latched()

    def step(self, name: str, state: Value) -> None:
        if not lanes.collecting():
            self._step(lanes.lane(), sites.site(2), name, state)

    def checkpoint(self, thread: str, name: str, state: Value, of: int = 0, *, wait: bool = True) -> int:
        lane = lanes.current()
        return self._step(lane, thread, name, state, thread, of) if lane is not None else 0

    def _step(self, lane: Lane, what: str, name: str, state: Value, thread: str = "", of: int = 0) -> int:
        hidden: Any = self.secrets.hide([name, state])
        expected = lane.state.effects[lane.state.cursor] if lane.state.cursor < len(lane.state.effects) else None
        if expected is not None and expected.begin.kind is Kind.STEP:
            recorded_state = [expected.begin.name, self.tape.body(expected.seq)]
            if self.secrets.same(recorded_state, [name, state]):
                hidden = recorded_state
        name, state = hidden
        key = step_key(self.secrets, thread, name, state)
        recorded = self.match(lane, "step", name, key, stepped(thread, state))
        if recorded is None:
            self.cut_here()
        self.log_of(lane).append(Handed(key, recorded.begin.pos))
        self.count("step")
        if recorded.slot is not None:
            self.wait(recorded.slot)
        return recorded.begin.pos

    def wait(self, slot: Slot) -> None:
        """Blocks this thread until the slot's turn. Raises what was latched."""
        try:
            self.gate.wait(slot)
        except Stopped:
            self.raise_latched()

    def printing(self, channel: str) -> Callable[[bool], None] | None:
        if self.stopped or lanes.inside() is not None:
            return None
        lane = lanes.lane()
        strand, turns = lane.strand.name, self.turns(channel)
        if strand in self._open and not self._channel(lane, channel).pending():
            self.gate.wait_stop()  # as in the recording, whose end came first
            return None
        if turns is None:
            return None
        turns.wait(strand)
        return lambda written: turns.taken(strand) if written else None

    def output(self, channel: str, data: str | bytes) -> None:
        if lanes.inside() is not None:
            return
        lane = lanes.lane()
        printed = self._channel(lane, channel)
        differs = printed.write(data)
        self._print_whole(channel, lane, printed.passed)
        if differs is not None and self._first is None and not self._cut:
            self.latch(
                Code.OUTPUT, f"another {channel} than recorded", lane=lane, kind="output", name=channel,
                expected=differs[0], actual=differs[1],
            )  # fmt: skip

    def feed(self, lane: Lane, channel: str, data: bytes, site: str = "") -> None:
        differs = self._channel(lane, channel).write(data)
        if differs is not None:
            self.diverge(
                Code.OUTPUT, f"the process is given another {channel} than recorded", lane=lane, kind="process",
                name=lane.name.rpartition("/")[2], expected=differs[0], actual=differs[1],
                **({"source": site} if site else {}),
            )  # fmt: skip

    def unfed(self, lane: Lane, channel: str) -> str | None:
        """What was recorded to be given next to the process that runs as `lane`, None if nothing."""
        return self._channel(lane, channel).left() if channel in lane.state.output else None

    def _channel(self, lane: Lane, channel: str) -> Printed:
        found = self._printed.get((lane.name, channel))
        if found is None:
            pieces = [partial(self.tape.body, seq) for _, seq in lane.state.output.get(channel, [])]
            found = self._printed[(lane.name, channel)] = Printed(pieces, self.interrupted, self.secrets)
        return found

    def replay_output(self, effect: Recorded) -> None:
        """Prints what a served effect printed itself while it was recorded."""
        if self.printer is not None:
            for seq in effect.output:
                self.printer("stdout", self.secrets.reveal(self.tape.body(seq)))
        effect.output = []

    # The latch.

    def latch(self, code: Code, reason: str, **about: Any) -> None:
        call, lane = about.pop("call", None), about.pop("lane", None)
        if call is not None:
            about.setdefault("kind", call.kind)
            about.setdefault("name", call.name)
            about.setdefault("at", call.recorded or sys.maxsize)
            lane = lane or call.lane
        if lane is None:
            lane = lanes.lane()
        if "at" not in about and isinstance(lane, Lane) and lane.state.cursor < len(lane.state.effects):
            about["at"] = lane.state.effects[lane.state.cursor].begin.pos
        about.setdefault("source", sites.site(2))
        name = lane.name if isinstance(lane, Lane) else str(lane)
        self.stop_at(findings.finding(self.tape, code, reason, lane=name, **about))

    def missing(self, head: Slot | None) -> None:
        """Latches that nothing can move the program but what is recorded at `head`, which nobody asked for."""
        # A strand that the recording does not have waits for what never came there, and began before this.
        absent = findings.unbegun(self.tape, head, self.lanes) if head is not None and self._unknown is None else None
        self.stop_at(self._unknown or absent or findings.missing(self.tape, head))

    def stop_at(self, found: Difference) -> None:
        """The first difference wins."""
        if found.code is Code.READS and self._unknown is not None and found.lane not in self.tape.strands:
            found = self._unknown  # that a strand began which reads at all comes before what it reads
        hidden: Any = self.secrets.hide_more([found.reason, found.name, found.expected, found.actual, *found.nearest])
        found = msgspec.structs.replace(
            found, reason=hidden[0], name=hidden[1], expected=hidden[2], actual=hidden[3], nearest=tuple(hidden[4:])
        )  # fmt: skip
        with self._lock:
            if self._first is not None or self._cut:
                return
            self._first, self._when = found, _monotonic_ns()
        self._stop()

    def leave(self) -> None:
        """Stops since another process of the run is not the recorded one."""
        with self._lock:
            if self.stopped:
                return
            self._elsewhere = self._cut = True
        self._stop()

    def latched(self) -> BaseException:
        if self._first is not None:
            return Divergence(self._first)
        return Cut("the end of the interrupted recording")

    def never_began(self, lane: str) -> None:
        """Latches that the recorded program never began the process that runs as `lane`."""
        self.stop_at(findings.process_begun(self.tape, lane, sites.site(2)))

    def before_fork(self) -> None:
        self.standstill.pause()
        self.reading.acquire()

    def after_in_parent(self) -> None:
        self.reading.release()

    def after_in_child(self) -> None:
        self.on_stop = None

    def cut(self) -> None:
        """Latches the cut: everything recorded has happened."""
        with self._lock:
            if self._first is not None or self._cut:
                return
            self._cut = True
        self._stop()

    def cut_here(self, lane: Lane | None = None) -> NoReturn:
        """This strand went past the cut: it waits for the others to get there, then stops."""
        self.gate.wait_all()
        until = _monotonic_ns() + _LATE
        while len(self.processes) > 1 and not self.stopped and _monotonic_ns() < until and reads.order_left(self):
            _sleep(0.005)  # others of its strands still say what other processes heard
        self.cut()
        self.raise_latched()

    def _stop(self) -> None:
        self.stopped = True
        self.gate.stop()
        for turns in list(self._turns.values()):
            turns.stop()
        with self._lock:
            sleepers, self._awaited = list(self._awaited.values()), {}
        for sleeper in sleepers:
            sleeper.release()
        if self.on_stop is not None:
            self.on_stop()

    def running(self) -> set[str] | None:
        """The strands of the program that are not over; None where some have no name and may do anything."""
        with self._lock:
            named = {strand.name for strand in self._alive if isinstance(strand, Lane)}
            return None if self._adopted or len(named) < len(self._alive) else named | {self.root.name}

    def loosen(self) -> None:
        """From here on whoever comes first has a lock."""
        for turns in list(self._turns.values()):
            turns.stop()
        self.gate.skip(Kind.LOCK)

    def flush(self, timeout: float = 10.0) -> bool:
        return True

    def strand_ended(self, strand: Lane) -> None:
        Session.strand_ended(self, strand)
        self.gate.reached(strand.name, claims.END)
        # A thread that is over makes no more calls: what is left of its lane was never asked.
        if not self.stopped and not self.interrupted and current.session is self:
            found = findings.calls_left(self.tape, [strand.state])
            if found is not None:
                self.stop_at(found)
            else:
                self.standstill.check()

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        self._settle()
        if self.silence is not None:
            self.silence()
        end: Any = ending(exit, error, result)
        recorded = self._recorded_end().get("end")
        if not (isinstance(recorded, dict) and "result" in recorded):
            end.pop("result", None)  # nobody knows what the recorded one would have been
        end = recorded if recorded is not None and self.secrets.same(recorded, end) else self.secrets.hide(end)
        digest = engine.digest(self.sums(self._open), canonical.digest(end))
        if self._first is None and not self._cut:
            site = sites.of_exception(error) if error is not None else ""
            self._first = self._compare(end, digest, site)
        if self._cut:
            digest = self._digest_of_cut()
        for source, detail in self.recorded_notes():
            # What was live then was answered by nobody now, even if nothing shows it.
            if (source, detail) not in self.notes and self._first is None:
                self.note(source, f"{detail}, in the recording")
        if self._first is not None and not self._when:
            self._when = _monotonic_ns()
        identical = self._first is None and not self.faults and not self.notes and not self._elsewhere
        self.stopped = True
        self.gate.stop()
        return self._report(
            "replay", digest, exit, identical=identical, cut=self._cut and not self._elsewhere, difference=self._first,
            when=self._when, stopped=self._elsewhere,
            redacted=tuple(sorted(self.secrets.stood_in)),
        )  # fmt: skip

    def _digest_of_cut(self) -> bytes:
        """All that was recorded has happened. How far beyond it each strand came is a race, so that what they read
        and printed, which was compared as it came, is no part of it. An answer counts as the program got it; one
        that was on its way to the program at the cut counts as recorded."""
        sums = []
        for name, lane in self.tape.lanes.items():
            taken = self._handed.get(name, [])
            effects = []
            for number, recorded in enumerate(lane.effects):
                got = taken[number] if number < len(taken) else None
                key = recorded.begin.key if got is None else got.key
                whole = got is not None and got.ended
                effects.append((key, got.digest() if got is not None and whole else served(recorded, self.tape.body)))
            sums.append(engine.LaneSum(name, tuple(effects), (), ()))
        return engine.digest(sums, canonical.digest(None))

    def _settle(self) -> None:
        """The program is over in its first strand; what the others had done by then they do now."""
        quiet, progress = 0.0, -1
        while self._alive and not self.stopped and quiet < _SETTLE and self._unsettled():
            quiet = quiet + 0.005 if self.gate.progress == progress else 0.0
            progress = self.gate.progress
            _sleep(0.005)

    def _unsettled(self) -> bool:
        if self.gate.head() is not None:
            return True
        printed = {lane: recorded.output for lane, recorded in self.tape.lanes.items() if recorded.output}
        return any(
            (lane, channel) not in self._printed or self._printed[(lane, channel)].pending()
            for lane, channels in printed.items()
            if self.tape.strands.get(lane, lane) in self._open
            for channel in channels
        )

    def recorded_notes(self) -> list[tuple[str, str]]:
        """What the recording named as not covered: (source, detail)."""
        return [(str(source), str(detail)) for source, detail, _ in self._recorded_end().get("notes", ())]

    def _recorded_end(self) -> dict[str, Any]:
        body = self.tape.body(self.tape.finish_seq) if self.tape.finish is not None else None
        return body if isinstance(body, dict) else {}

    def _compare(self, end: dict[str, Value], digest: bytes, site: str) -> Difference | None:
        """What only shows when the program is over."""
        tape, root = self.tape, self.root.name
        if tape.finish is None:
            if self.gate.head() is None:
                self._cut = True  # it was killed between its last event and its end
                return None
            return findings.end_too_early(tape, self.gate.head(), root)
        recorded = self._recorded_end()
        closed = [lane for lane in self.lanes.values() if lane.strand.name not in self._open]
        counts = {lane.name: lane.reads for lane in closed}
        printed = {at: found for at, found in self._printed.items() if at[0] in counts}
        handed = {lane.name: self._handed[lane.name] for lane in closed}
        return (
            findings.raised(tape, recorded.get("end"), end, root, site)
            or findings.calls_left(tape, tape.lanes.values())
            or findings.reads_left(tape, recorded.get("reads", {}), counts)
            or findings.output_left(tape, printed, self._open)
            or findings.printed(tape, recorded.get("printed", {}), self.printed(self._open), root)
            or findings.answers_left(tape, handed)
            or findings.end(tape, recorded.get("end"), end, root)
            or findings.digests(tape, recorded.get("digest"), digest, root)
        )
