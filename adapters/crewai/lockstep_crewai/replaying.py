"""Replays of a crew's, agent's or flow's run: `lockstep.replay("crewai/research", make_crew)`.

A fresh one does what the recorded one did: its kickoffs are made again with what they were given, and its models, tools
and people answer what they answered. Each task, method, the state behind it and the end are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lockstep.adapter.native import Played, ReplayOptions, check_range
from lockstep.errors import Code, TargetError
from lockstep.log.model import Kind, Status, Value
from lockstep.log.store import RunReader
from lockstep.session.native import endings, guard
from lockstep.session.native.ran import Ran, Recorded
from lockstep.session.native.served import CUT_PATIENCE
from lockstep.session.native.server import Server
from lockstep.session.native.serving import Serving
from lockstep_crewai import again, driving, fresh, layout
from lockstep_crewai.driving import Drive, Ended
from lockstep_crewai.playing import Player
from lockstep_crewai.seams import Seams

_HINT = (
    "the code of a crew or flow runs in a replay, and what it does outside of its models, tools and people is not"
    " recorded without a session: make a tool of what asks the outside, or record with lockstep record"
)


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a run, in a thread of its own. Raises TargetError LS402 where it cannot begin."""
    session = Session(reader, options)
    session.play(target)
    return session.played()


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, which goes on meanwhile."""
    return await asyncio.to_thread(replay, reader, target, options)


class Session:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, options: ReplayOptions) -> None:
        self.options = options
        self.recorded = Recorded(reader)
        self.server = Server(self.recorded.record, options.store, deadline=options.deadline)
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self._chosen = _chosen(self.recorded, options)
        self._serving: Serving | None = None
        self._ran: Ran | None = None

    def play(self, target: Any) -> None:
        """Makes the turns again, one after the other."""
        recorded, server, options = self.recorded, self.server, self.options
        server.faults += _faults(recorded)
        self.player = player = Player(
            recorded, server.latch, server.hide, until=options.until, faults=server.faults
        )  # fmt: skip
        seams = Seams(server.stretch(0, 0), player, again=True)
        made, root = fresh.made(target, recorded.meta, seams)
        drive = Drive(server.latch, self._moved, self._stuck, options.deadline, self)
        guard.watch(driving.watched)
        for run in self._chosen:
            serving = self._serve(run)
            # Of one that was cut off, whoever waits where nothing is recorded any more has come to the cut.
            drive.deadline = min(options.deadline, CUT_PATIENCE) if self._is_open(run) else options.deadline
            player.turn(run, serving, is_open=self._is_open(run))
            root.seams.calls = serving
            request = self._asked(run)
            given = again.options(request)
            again.restore(made, request)
            entry = run.entry
            ended = drive.run(lambda entry=entry, given=given: again.turn(made, entry, given))  # type: ignore[misc]
            serving.turn_over = True
            self._ended(run, serving, ended)
            if server.latch.stopped:
                return

    def _serve(self, run: Ran) -> Serving:
        until, record = self.options.until, self.recorded.record
        stop = run.stop
        if until is not None and run.pos < record.position(until) < stop:
            stop = record.position(until) + 1
        self._ran = run
        # What came after a step, waits for it: whoever did that had been told by then what the step came to.
        also = [step.pos for step in self.recorded.steps_of(run) if step.pos < stop]
        is_cut = self._is_open(run) or stop != run.stop
        self._serving = self.server.stretch(run.pos, stop, interrupted=is_cut, also=also)
        return self._serving

    def _is_open(self, run: Ran) -> bool:
        """Whether nothing is known of what follows the last event of a turn: it was cut off, cancelled, or left."""
        return run.status not in (Status.OK, Status.ERROR)

    def _asked(self, run: Ran) -> Mapping[str, Any]:
        found: Any = self.server.reveal(dict(self.recorded.asked(run)))
        return found  # type: ignore[no-any-return]

    def _moved(self) -> Any:
        return self.player.moved, self._serving.progress if self._serving is not None else 0

    # What stops it.

    def reached(self, kind: str, name: str, source: str) -> None:
        """See `lockstep.session.native.guard.Watched`."""
        assert self._serving is not None
        reason = f"not covered: {kind} {name} would be reached for real; {_HINT}"
        self._serving.diverge(Code.NOT_COVERED, reason, kind=kind, name=name, source=source)

    def _stuck(self) -> None:
        assert self._serving is not None
        assert self._ran is not None
        if self._is_open(self._ran):
            self.server.latch.come_to_cut()
            return
        self._serving.finish()
        seconds = self.options.deadline
        self._serving.differs(
            Code.STUCK,
            f"nothing has moved for {seconds:g} s: it waits for what is neither a model, a tool nor a person's"
            " answer", lane=str(self.recorded.address), kind="turn", name=self._ran.entry,
        )  # fmt: skip

    # The end.

    def _ended(self, run: Ran, serving: Serving, ended: Ended) -> None:
        latch = self.server.latch
        if self._is_open(run) and not latch.stopped:
            latch.come_to_cut()
        if latch.difference is None and not latch.cut:
            serving.finish()
            self._compare(run, serving)
        if latch.difference is not None:
            return
        if not ended.stopped and self.options.turn in (None, run.number):
            if ended.error is None:
                self.results.append(ended.result)
            self.error = ended.error

    def _compare(self, run: Ran, serving: Serving) -> None:
        """How the turn ended, and whether it made all steps."""
        left = self.player.left
        if left is not None:
            serving.differs(
                Code.MISSING, "a recorded step was never done", lane=left.event.lane, kind="task",
                name=left.event.name, at=left.pos, expected=left.event.name, actual="(nothing)", source="",
            )  # fmt: skip
        found = endings.differs(run.status, self.recorded.result(run), self.player.ending, self.server.hide)
        if found is not None:
            path, before, after = found
            serving.differs(
                Code.END, "the turn ended in another way than when it was recorded", lane="", kind="turn",
                name=run.entry, path=path, expected=before, actual=after, source="",
            )  # fmt: skip

    def played(self) -> Played:
        keys: Value = [*self.player.keys]
        report = self.server.report(end=keys, recorded=keys, steps=len(self.player.compared))
        return Played(report=report, results=self.results, error=self.error)


def _faults(recorded: Recorded) -> list[str]:
    """What could not be recorded: what is replayed is not all that was done."""
    found: list[str] = []
    for seq, event in recorded.record.heads:
        if event.kind is Kind.CAUSE and event.what == layout.FAULTS:
            told = recorded.record.field(seq, layout.FAULTS)
            said = told if isinstance(told, list) else []
            found += [f"when it was recorded: {each}" for each in said if isinstance(each, str)]
    return found


def _chosen(recorded: Recorded, options: ReplayOptions) -> tuple[Ran, ...]:
    """The turns to make again: also those before the only one that is asked for, since a flow remembers them. Raises
    TargetError LS402."""
    if options.depth != "call":
        raise TargetError(
            Code.BAD_TARGET,
            f"depth {options.depth!r} is nothing that a crew has: its agents run, and its calls are served",
        )
    runs = recorded.runs
    if not runs:
        raise TargetError(Code.BAD_TARGET, f"{recorded.address} was cut off before its first turn began")
    number, until = options.turn, options.until
    check_range(options, recorded.address, len(runs), len(recorded.steps))
    runs = runs[:number]
    if until is not None:
        runs = tuple(run for run in runs if run.pos < recorded.steps[until].pos)
    return runs
