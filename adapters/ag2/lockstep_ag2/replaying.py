"""Replays of a conversation that was recorded without a session: its questions are asked again of a fresh agent, whose
calls are served, and what it says and keeps is compared.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from ag2.events import ModelResponse

from lockstep.adapter.native import Played, ReplayOptions, check_range, no_loop
from lockstep.errors import Code, Stop, TargetError
from lockstep.log import canonical, checkpoints
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import RunReader
from lockstep.session.native import guard
from lockstep.session.native.faults import worded
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.native.served import aturn
from lockstep.session.native.server import Server
from lockstep.session.native.serving import Serving
from lockstep_ag2 import again, attaching, compare, layout, strands, threads
from lockstep_ag2.again import Asking
from lockstep_ag2.events import Names
from lockstep_ag2.noting import Noting
from lockstep_ag2.states import EVENTS, History, Seen

_STILL = 0.01  # seconds between two looks at a turn that is to be cancelled where it was
_LOOKS = 5
_HINT = (
    "what an agent does past its model, tools and human is not recorded without a session: record the program with "
    "lockstep record"
)


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a conversation with the agent that a factory makes. Raises TargetError LS402 where an event
    loop is running: await `areplay` then."""
    no_loop("agents are run asynchronously", "areplay")
    with asyncio.Runner() as runner:
        return runner.run(areplay(reader, target, options))


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop."""
    session = Session(reader, options)
    guard.watch(_watched)
    threads.install()
    asking = Asking(await attaching.made(target))
    before: Value = []
    for turn in session.chosen:
        playing = Playing(session, turn)
        if session.server.latch.stopped:
            break
        if playing.before is not None and playing.before != before:
            await asking.continue_from(session.server.reveal(playing.before))  # type: ignore[arg-type]
        await playing.play(asking)
        before = playing.left
    return session.played()


def _watched() -> guard.Watched | None:
    """The replayed turn whose code is running: what AG2 does before the agent is asked is part of it too."""
    strand = strands.running()
    turn = strand.turn if strand is not None else strands.prepared.get()
    return turn if isinstance(turn, Playing) else None


class Session:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, options: ReplayOptions) -> None:
        self.options = options
        self.record = Record(reader)
        self.states = checkpoints.States(reader)
        meta: Any = reader.meta
        self.agent = str(meta["native"]["agent"])
        self.server = Server(self.record, options.store, deadline=options.deadline)
        self.names = Names()
        self.history = History(self.server.hide, self.names)
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.steps = 0
        self.keys: list[Value] = []
        self.cut = False
        self.raced = False  # whether a turn failed, was cancelled or left
        self.whole: list[Serving] = []  # of turns that came to a good end
        if options.depth != "call":
            raise TargetError(
                Code.BAD_TARGET, f"AG2 has no depth {options.depth!r}: its agents are replayed by their calls"
            )
        self.chosen = self._choose()

    def _choose(self) -> Sequence[RecordedTurn]:
        record, number, until = self.record, self.options.turn, self.options.until
        check_range(self.options, "this conversation", len(record.turns), len(record.steps))
        stop = record.position(until) if until is not None else sys.maxsize
        return [turn for turn in record.turns if number in (None, turn.number) and turn.pos < stop]

    def played(self) -> Played:
        latch = self.server.latch
        if self.cut:
            latch.come_to_cut()
        report = self.server.report(end=[*self.keys], recorded=[*self.keys], steps=self.steps)
        if self.raced and not (report.identical or latch.difference or report.uncovered or report.faults):
            # How far calls came beside one that failed is a race, on both sides: what was asked in whole turns counts.
            same = all(list(serving.handed()) == list(serving.recorded()) for serving in self.whole)
            report = msgspec.structs.replace(report, identical=same)
        return Played(report=report, results=self.results, error=self.error)


class Playing(Noting):
    """One turn of a replay."""

    def __init__(self, session: Session, turn: RecordedTurn) -> None:
        super().__init__(session.agent, session.history, session.names)
        self._session = session
        self._recorded_turn = turn
        record, until = session.record, session.options.until
        self._made: list[Event] = [event for _, event in record.steps if turn.pos < event.pos < turn.stop]
        self._began = Event(Kind.BEGIN, turn.pos, 0, strands.ROOT)
        self._next = 0
        self._stop = record.position(until) if until is not None else sys.maxsize
        self.serving: Serving
        if turn.pos < self._stop < turn.stop:
            self.serving = session.server.stretch(turn.pos, self._stop + 1, interrupted=True)
        else:
            self.serving = session.server.turn(turn)
        self.calls = self.serving
        self._ended: tuple[str, Value] = ("", None)
        self._error: BaseException | None = None

    @property
    def before(self) -> list[Value] | None:
        """The recorded history that the turn found; None where nothing tells."""
        if not self._made:
            return None
        found: Any = self._session.states.at(self._made[0].pos).get(EVENTS)
        return found[:-1] if isinstance(found, list) else None

    @property
    def left(self) -> Value:
        """The recorded history at its last step."""
        return self._session.states.at(self._made[-1].pos).get(EVENTS) if self._made else None

    @property
    def status(self) -> str:
        end = self._recorded_turn.end
        return str(end.what) if end is not None else ""

    # What the turn notes.

    def step(self, source: str, name: str, state: Seen) -> None:
        session = self._session
        latch = session.server.latch
        if latch.stopped:
            latch.raise_it()
        if self._next >= len(self._made):
            if self._recorded_turn.interrupted:
                latch.come_to_cut()
            else:
                self.differs(Code.EXTRA, "the recorded turn came to no further step", kind="step", name=name)
            latch.raise_it()
        event = self._made[self._next]
        self._next += 1
        if event.key != state.digest:
            found = compare.states(session.states.at(event.pos), state.channels)
            path, expected, actual = found or ("", "", "")
            self.differs(
                Code.STATE, "the history holds something else than when it was recorded", at=event.pos, kind="step",
                name=event.name, path=path, expected=expected, actual=actual,
            )  # fmt: skip
            latch.raise_it()
        session.steps += 1
        session.keys.append(event.key)
        if event.pos >= self._stop:
            latch.come_to_cut()
            latch.raise_it()

    async def follows(self, event: Any) -> None:
        """See `Turn.follows`: agents in the background had done then what they had when it was recorded, and are heard
        of before this one goes on. An answer with calls of tools waits for nobody: those come next."""
        order, steps = self.serving.order, self._made[self._next :]
        answer = isinstance(event, ModelResponse)
        if order is None or (answer and event.tool_calls.calls):
            return
        if answer:
            steps = steps[1:]  # the first one is of the answer itself
        next_ = steps[0] if steps else self._recorded_turn.end
        if next_ is not None:
            await aturn(self.serving, order, self._began, next_)

    def _unseen(self, error: Exception) -> None:
        if self._next < len(self._made):
            self._next += 1  # it was not recorded either, or this is told by the next one
        self.fault("the state of a step", error)

    def fault(self, where: str, error: BaseException) -> None:
        self._session.server.faults.append(worded(where, error))

    def differs(self, code: Code, reason: str, **about: Any) -> None:
        if "at" not in about and self._next:
            about["at"] = self._made[self._next - 1].pos + 1
        self.serving.differs(code, reason, **{"lane": strands.ROOT, "kind": "", "name": "", **about})

    def stopped(self) -> BaseException | None:
        latch = self._session.server.latch
        return latch.error() if latch.stopped else None

    def reached(self, kind: str, name: str, source: str) -> None:
        """See `lockstep.session.native.guard.Watched`."""
        reason = f"not covered: {kind} {name} would be reached for real; {_HINT}"
        self.differs(Code.NOT_COVERED, reason, kind=kind, name=name, source=source)
        self._session.server.latch.raise_it()

    def end(self, status: Status, value: Any) -> None:
        if isinstance(value, BaseException):
            self._error = value
            value = None
        self._ended = (str(status), value)

    # Running.

    async def play(self, asking: Asking) -> None:
        session, turn = self._session, self._recorded_turn
        request: Any = session.server.reveal(session.record.request(turn))
        for name in layout.unstorable(request.get("variables")):
            session.server.note("variable", f"{name} of turn {turn.number} could not be recorded")
        reply: Any = None
        error: BaseException | None = None
        running = asking.ask(self, turn.entry, request, human=again.humans(self.serving.tape))
        try:
            reply = await (self._cancelled(running) if self.status == Status.CANCELLED else running)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:
            error = raised
            if isinstance(raised, asyncio.CancelledError) and self.status != Status.CANCELLED:
                raise
        self._finish(reply, error)

    async def _cancelled(self, running: Any) -> Any:
        """Cancels the turn where it was: when all that is recorded of it has happened, and it waits."""
        task = asyncio.ensure_future(running)
        still, seen = 0, (-1, -1)
        while not task.done():
            await asyncio.sleep(_STILL)
            now = (self.serving.progress, self._next)
            waits = now == seen and self._next >= len(self._made) and self._all_made()
            still, seen = (still + 1 if waits else 0), now
            if still >= _LOOKS or self._session.server.latch.stopped:
                task.cancel()
        return await task

    def _all_made(self) -> bool:
        """Whether every recorded call was made, and has handed out what it did."""
        return list(self.serving.handed()) == list(self.serving.recorded())

    # The end.

    def _finish(self, reply: Any, error: BaseException | None) -> None:
        session = self._session
        self.over = True
        self.serving.turn_over = True
        latch, last = session.server.latch, self._recorded_turn is session.chosen[-1]
        stopped = isinstance(error, Stop)
        if not latch.stopped and not stopped and self.status:
            self._compare(error)
        if self.status == Status.OK:
            session.whole.append(self.serving)
        elif self.status:
            session.raced = True
        if latch.difference is None and stopped and not latch.stopped:
            self.differs(Code.END, f"the turn was stopped: {error}")
        if latch.difference is not None:
            return
        if not stopped:
            session.results.append(reply)
        session.error = None if stopped else error
        session.cut = last and not self.status and session.options.until is None
        if latch.cut and self._recorded_turn.left:
            latch.cut = False  # a branch that left in the middle of a turn goes on with its own

    def _compare(self, error: BaseException | None) -> None:
        session, status = self._session, self.status
        now, value = self._ended
        if not now:  # the turn never began: its input, or what is asked before a turn, failed
            now = Status.ERROR if error is not None else Status.OK
            self._error = error
        if now != status:
            self._compare_ends(now, value)
        if self._next < len(self._made) and status in (Status.OK, Status.ERROR):
            event = self._made[self._next]
            self.differs(Code.MISSING, "a recorded step was not come to", at=event.pos, kind="step", name=event.name)
        if status == Status.OK:
            self.serving.finish()
        self._compare_ends(now, value)
        session.keys.append(status)
        if status == Status.OK:  # as equal as it was found to be; by its digest, since secrets in it are hidden
            session.keys.append(canonical.digest(session.record.result(self._recorded_turn)))

    def _compare_ends(self, now: str, value: Value) -> None:
        server = self._session.server
        recorded = self._session.record.result(self._recorded_turn)
        given = server.hide(compare.ending(value, self._error))
        found = compare.endings(self.status, recorded, now, given)
        if found is not None:
            path, before, after = found
            self.differs(
                Code.END, "the turn ended in another way than when it was recorded", kind="turn",
                name=self._recorded_turn.entry, path=path, expected=before, actual=after,
            )  # fmt: skip
