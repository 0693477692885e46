"""A session that forks: it replays its parent's record up to a cut, and then the same session records.

Up to the cut everything is as in the replay of a recording that was interrupted there (`Replaying`). When all
that was recorded up to it has happened, the session goes live: it becomes a `Going`, which records the branch, and
every call from then on is decided by the tail (`lockstep.session.tail`). A call that comes early, for something
that the record has only after the cut, waits until then.

What strands do by themselves before that moment (they print, read a clock, take a lock) may already lie after the
cut: it is the branch's own, and kept until the branch is written. So positions after the cut are handed out from
the beginning.

Clocks: the wall clock jumps to now, as after a suspended laptop wakes; those that only measure go on from where
they were in the recording. Draws go on from the same seed.
"""

from __future__ import annotations

import _thread
import itertools
import shlex
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from lockstep.errors import Refusal
from lockstep.log.model import Event, Kind, Value
from lockstep.log.vault import Vault
from lockstep.session import engine, findings, lanes, refusal
from lockstep.session.effects import Ignored, LiveCall
from lockstep.session.forked import ForkedCall
from lockstep.session.lanes import Lane
from lockstep.session.policy import decide
from lockstep.session.recording import Recording
from lockstep.session.replaying import Replaying
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets
from lockstep.session.surface import UNKNOWN
from lockstep.session.tail import Plan, Refuse, Tail
from lockstep.session.tape import Tape
from lockstep.session.writer import Finish, Writer

if TYPE_CHECKING:
    from lockstep.session.beside import Beside

_monotonic_ns = time.monotonic_ns  # before the taps

# Clocks that count from the machine's start: what they showed at the cut is known from the run's beginning.
_STEADY = frozenset(("time.monotonic", "time.perf_counter", "loop.time"))


# Each of the two kinds below says whose method it takes where these differ.
class _Forked(Replaying, Recording):  # type: ignore[misc]
    """What a fork is before and after the moment in which it goes live.

    plan   what it is to be
    upto   position of the last event shared with the parent
    lived   calls past the cut that ran for real; `answers`: by how they were answered, those that did not
    refused  what may not run, in words
    """

    resumes = True
    plan: Plan
    upto: int
    refused: list[str]
    answers: dict[str, int]
    lived: int
    started: int  # when it really began: `began` is when its parent's clock did
    failed: bool
    ahead: int  # nanoseconds that steady clocks of the program are ahead of the machine's
    tail: Tail
    vault: Vault
    later: Any
    beside: Beside | None = None
    went_live: Callable[[str], None] | None = None
    _parked: list[Callable[[], None]]  # told when it goes live, or stops before

    def within(self, lane: Lane) -> bool:
        """Whether a lane has not come to the cut yet, as far as can be told: a print has no place of its own in the
        order, and may come after the session has gone live."""
        return not self.recording or any(self._prints(lane, channel) for channel in lane.state.output)

    def _prints(self, lane: Lane, channel: str) -> bool:
        """Whether the part served has something that this lane is still to print."""
        printed = self._printed.get((lane.name, channel))
        return channel in lane.state.output if printed is None else printed.pending()

    def output(self, channel: str, data: str | bytes) -> None:
        if lanes.inside() is None:
            lane = lanes.lane()
            if self._prints(lane, channel):
                Replaying.output(self, channel, data)
                self._outlet(channel).wrote(lane.strand)
                return
        Recording.output(self, channel, data)

    def _channel(self, lane: Lane, channel: str) -> Any:
        return Replaying._channel(self, lane, channel)

    def beyond(self, lock: str, changes: int) -> bool:
        return changes >= len(self.tape.turns.get(lock, ()))

    def serves(self, lane: Lane) -> bool:
        """Whether a call of this lane may be one of those in the part served."""
        return not self.recording

    def refuse(self, call: Any, verdict: Refuse, name: str, request: Value) -> NoReturn:
        """Latches that a call may not run, and raises it."""
        message = refusal.text(
            call.kind, name, request, verdict.declared, verdict.nearest, tail=self.plan.policy.tail
        )  # fmt: skip
        self._refuse(message)

    def reaches(self, source: str, what: str) -> None:
        """Past the cut, something that no tap covers is about to reach outside: a call of which nothing is known."""
        if self.stopped:
            self.raise_latched()
        if decide(self.plan.policy, "unknown", source, what, recorded=False) != "live":
            self._refuse(
                f"{source} {what} would run for real\n"
                "it is unknown (no tap covers it), and the record has no answers of it\n"
                f"let it run:    --live {shlex.quote(f'{source} {what}')}"
            )

    def _refuse(self, message: str) -> NoReturn:
        with self._lock:
            self.refused.append(message)
        self._stop()
        self.raise_latched()

    def latched(self) -> BaseException:
        if self.refused:
            return Refusal(self.refused[0])
        return Replaying.latched(self)

    def answered(self, how: str) -> None:
        """A call past the cut got its answer without being made."""
        with self._lock:
            self.answers[how] = self.answers.get(how, 0) + 1

    # What waits for the moment.

    def when_live(self, told: Callable[[], None]) -> bool:
        with self._lock:
            if self.recording or self.stopped:
                return False
            self._parked.append(told)
            return True

    def when_stopped(self, told: Callable[[], None]) -> None:
        """The same for what nothing but a refusal resumes. Of a session that is live."""
        with self._lock:
            if not self.stopped:
                self._parked.append(told)
                return
        told()

    def until_live(self) -> None:
        """Blocks this strand until the session goes live. Raises what was latched."""
        self._park()
        if self.stopped:
            self.raise_latched()

    def _park(self) -> None:
        """Blocks this strand until the session goes live, or stops."""
        sleeper = _thread.allocate_lock()
        sleeper.acquire()
        if self.when_live(sleeper.release):
            strand = lanes.own().name
            self.gate.sleep(strand)
            try:
                with self.standstill.blocking():
                    self.standstill.check()
                    sleeper.acquire()
            finally:
                self.gate.awake(strand)

    def hold(self, lock: Any) -> bool:
        if lock.acquire(False):
            return True
        with self.standstill.blocking():
            while not lock.acquire(True, 0.05):
                if self.stopped:
                    self.raise_latched()
                if self.recording:
                    return False
        return True

    def never(self, lane: Lane, what: str) -> NoReturn:
        raise AssertionError(f"{what}: past the cut a fork goes live")  # every tap asks `goes_live` before

    def goes_live(self) -> bool:
        self.until_live()
        return True

    def past_end(self, lane: Lane) -> bool:
        self.until_live()
        return True

    def turn(self, lock: str, strand: Lane, last: Lane | None) -> int:
        """Before a strand takes a lock, which `last` had before: lets those have it first that are to have it by the
        record. A strand that is past the cut takes no other strand's lock before the session is live. Returns how
        often the lock has changed hands for certain."""
        if self.recording:
            return self.turn(lock, strand, last)
        if self.stopped or not self.gate.past(strand.name):
            return 0
        turns = self.turns(lock)
        if (last is not None and last is not strand) if turns is None else turns.past(strand.name):
            # Never raises: a pool's worker that sets a result would end by it, and who waits for that never would.
            self._park()
            return self.turn(lock, strand, last)
        return 0

    def _print_turn(self, channel: str) -> None:
        if lanes.inside() is None:
            strand, outlet = lanes.lane().strand, self._outlet(channel)
            outlet.changes = max(outlet.changes, self.turn(channel, strand, outlet.last))

    def cut(self) -> None:
        """What an interrupted recording comes to; a fork goes live there."""

    def _stop(self) -> None:
        Replaying._stop(self)
        self._release()

    def _release(self) -> None:
        with self._lock:
            parked, self._parked = self._parked, []
        for told in parked:
            told()

    def told_more(self) -> dict[str, Any]:
        edits = {} if not self.recording else self.tail.unreached
        return {
            "branch": self.plan.branch,
            "state": self.state(self.failed),
            "difference": self._first,
            "live": self.lived,
            "seconds": (_monotonic_ns() - self.started) / 1e9,
            "answers": dict(self.answers),
            "refused": tuple(self.refused),
            "unreached": tuple(address for edit in edits.values() for address in edit.told),
        }


class Forking(_Forked):
    """Until it goes live."""

    recording = False

    def __init__(
        self, run: str, process: str, seed: bytes, tape: Tape, later: Callable[[], Tape], plan: Plan, writer: Writer,
        secrets: Secrets, deadline: float,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.upto = plan.upto
        self._later = later
        self.started = _monotonic_ns()
        self._early: list[tuple[Event, Finish | None]] = []  # what is the branch's own already
        self._parked = []
        self.refused, self.answers = [], {}
        self.lived = self.ahead = 0
        self.failed = False
        self.prepare(writer)
        Replaying.__init__(self, run, process, seed, tape, 0.0, deadline, secrets)
        self.position = itertools.count(plan.upto + 2).__next__  # FORK is the first

    @cached_property
    def later(self) -> Tape:
        """The parent's record beyond the cut."""
        return self._later()

    @cached_property
    def _cut_at(self) -> int:
        """Nanoseconds into the run at which the cut lies."""
        slots = self.tape.slots
        return max((slot.at for slot in slots), default=0)

    def emit(
        self, kind: Kind, lane: str, pos: int, what: str = "", name: str = "", of: int = 0, tick: int = -1,
        body: Value = None, hidden: bool = False, finish: Finish | None = None,
    ) -> None:  # fmt: skip
        with self._lock:
            if not self.recording:
                event = Event(kind, pos, self._cut_at, lane, what, name, of, tick, b"", body)
                self._early.append((event, finish or (None if hidden or body is None else self._hidden)))
                return
        Recording.emit(self, kind, lane, pos, what, name, of, tick, body, hidden, finish)

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = Replaying.new_lane(self, name, parent, strand)
        if name not in self.tape.strands:
            above = parent.name if parent is not None else ""
            self.emit(Kind.LANE, above, self.position(), what=lane.strand.name, name=name)
        return lane

    def printing(self, channel: str) -> Callable[[bool], None] | None:
        self._print_turn(channel)
        return Replaying.printing(self, channel) if not self.recording else self.printing(channel)

    def _step(self, lane: Lane, what: str, name: str, state: Value, thread: str = "", of: int = 0) -> int:
        if lane.state.cursor < len(lane.state.effects):
            return Replaying._step(self, lane, what, name, state, thread, of)
        # The lane is past the cut, and a loop's other tasks may not be: nothing waits here.
        if self.stopped:
            self.raise_latched()
        return Recording._step(self, lane, what, name, state, thread, of)

    def open(self, kind: str) -> Any:
        if lanes.inside() is not None:
            return Replaying.open(self, kind)
        if self.stopped:
            self.raise_latched()
        return ForkedCall(self, lanes.lane(), kind)

    # The moment.

    def begin(self) -> None:
        """The taps are on. Writes where the branch leaves, and goes live at once where nothing is served."""
        plan = self.plan
        edits = {address: value for edit in plan.edits for address, value in edit.told.items()}
        body: Any = self.secrets.hide(
            {"edits": edits, "live": [*plan.policy.live], "tail": plan.policy.tail, "upto": plan.upto,
             "until": plan.until}
        )  # fmt: skip
        self.writer.put(Event(Kind.FORK, plan.upto + 1, self._cut_at, self.root.name, name=plan.origin, body=body))
        self.gate.on_end = self._go_live
        if self.gate.head() is None:
            self.gate.on_end = None
            self._go_live()

    def _go_live(self) -> None:
        with self._lock:
            if self.stopped or self.recording:
                return
            start: Any = self.tape.body(self.tape.start_seq) if self.tape.start is not None else {}
            now, at = _monotonic_ns(), self._cut_at
            self.began = now - at
            self.ahead = int(start.get("clock") or now - at) + at - now
            self.facts = start.get("facts") or {}
            self.tail = Tail(self.plan, self.later, beside=self.beside)
            self.secrets.goes_live(self.vault, self.plan.branch)
            self.standstill.unordered = True
            self._write_early()
            self.writer.collect = self._reads
            self.branch = self.plan.branch
            # Lanes, calls and taps know this one object, so that it is this one which becomes the other kind.
            self.__class__ = Going  # type: ignore[assignment]
        for turns in list(self._turns.values()):
            turns.stop()
        if self.went_live is not None:
            self.went_live(self.branch)
        self._release()

    def _write_early(self) -> None:
        for event, finish in self._early:
            self.writer.put(event, finish)
        self._early.clear()

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        self._settle()
        if self.recording:
            return self.finish(exit, error, result)
        if self._first is None:
            self.stop_at(findings.end_too_early(self.tape, self.gate.head(), self.root.name))
        self.emit(Kind.FINISH, self.root.name, self.position(), what="diverged", body={"end": None})
        self._write_early()
        self.writer.close(30.0)
        return self._report("fork", engine.digest((), b""), exit, **self.told_more())

    def state(self, failed: bool) -> str:
        return "diverged"


class Going(_Forked):
    """Once it is live."""

    recording = True
    cause = Recording.cause  # type: ignore[assignment]
    step = Recording.step
    checkpoint = Recording.checkpoint
    _step = Recording._step
    feed = Recording.feed
    output = _Forked.output
    before_fork = Recording.before_fork
    after_in_parent = Recording.after_in_parent
    after_in_child = Recording.after_in_child
    flush = Recording.flush

    def emit(self, kind: Kind, *args: Any, **kwargs: Any) -> None:
        # What the program does on its way out of a refusal is not of the branch, which is cut off there.
        if not self.stopped or kind in (Kind.FINISH, Kind.READS):
            Recording.emit(self, kind, *args, **kwargs)

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = Recording.new_lane(self, name, parent, strand)
        lane.state = self.tape.lane(name)
        return lane

    def open(self, kind: str) -> Any:
        if lanes.collecting():
            self.collected(f"{kind} call")
        parent = lanes.inside()
        if parent is True:
            return Ignored()
        if parent is not None:
            return LiveCall(self, lanes.lane(), kind, parent)
        if self.stopped:
            self.raise_latched()
        return ForkedCall(self, lanes.lane(), kind)

    def turn(self, lock: str, strand: Lane, last: Lane | None) -> int:
        turns = self.turns(lock)
        return 0 if turns is None else turns.after(strand.name)

    def printing(self, channel: str) -> Callable[[bool], None] | None:
        self._print_turn(channel)
        return Recording.printing(self, channel)

    def clock_ahead(self, source: str) -> int:
        """Nanoseconds that a clock of the program is ahead of the machine's."""
        return self.ahead if source in _STEADY else 0

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        self.gate.stop()
        return msgspec.structs.replace(Recording.finish(self, exit, error, result), mode="fork")

    def state(self, failed: bool) -> str:
        self.failed = failed
        if self.refused:
            return "refused"
        return "diverged" if self._first is not None else Recording.state(self, failed)
