"""Recording a team: its turns and steps, to a run of its own, or to the session that is on.

attach(team)        # any AgentChat team or agent, before its first run; returns it
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.errors import TargetError
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.effects import Ignored
from lockstep.session.native import Journal
from lockstep_autogen import attaching, books, canonical, insession, layout, naming, states, stopping
from lockstep_autogen.attaching import Root
from lockstep_autogen.layout import Moment
from lockstep_autogen.seams import Asked, Seams

if TYPE_CHECKING:
    from lockstep.session.native.turn import Turn

log = logging.getLogger("lockstep")

_MOST_FAULTS = 100
_IGNORED: Any = Ignored()


def attach[T](team: T, *, run: str | None = None, store: str | os.PathLike[str] | None = None) -> T:
    """Records a team or agent of AutoGen's from now on: its messages, its models' and tools' answers, its state.

    run    what its run is called, after `autogen/`; the team's name if not told
    store  path of the store; found as ever if not told

    While a session is on, it is recorded there and not in a run of its own. Returns the team. Raises TargetError LS402
    for what is no team or agent, or is attached already; AdapterError LS410 for a version of AutoGen that lacks what is
    needed.
    """
    target: Any = team
    recording = Recording(run, store)
    root = Root(target, Seams(recording, recording))
    attaching.attach(root)
    recording.of(root)
    try:
        root.stops = stopping.wanted(target)
    except TargetError as error:
        log.warning("it does not stop: %s", error.message)
    return team


class Last(msgspec.Struct):
    """The step before, in one lane: its position, the channels of its state, its key."""

    pos: int
    channels: Mapping[str, Value]
    key: bytes


class Steps:
    """Makes steps of moments: each against the one before in its lane."""

    def __init__(self) -> None:
        self.last: dict[str, Last] = {}
        self.count = 0

    async def next(self, moment: Moment) -> tuple[dict[str, Value], Last]:
        """The record of a moment, not hidden, and what it will be the step before with; its position is not known yet,
        and stands for that of the one before."""
        after, was = await states.of(moment)
        return self.against(moment, after, was)

    def unsaved(self, moment: Moment) -> tuple[dict[str, Value], Last]:
        """The same where the state cannot be asked for: it is that of the step before, and not consistent."""
        last = self.last.get(moment.lane)
        kept = {} if last is None else dict(last.channels)
        return self.against(
            moment,
            {**states.said(moment), **{name: value for name, value in kept.items() if name not in layout.SAID}},
            states.was(moment.spoken),
        )

    def against(
        self, moment: Moment, after: dict[str, Value], was: list[Value]
    ) -> tuple[dict[str, Value], Last]:  # fmt: skip
        last = self.last.get(moment.lane)
        body = layout.body_of(last.channels if last else None, after, was, consistent=moment.consistent)
        if moment.order:
            body[layout.ORDER] = layout.in_a_row(moment.order)
        return body, Last(last.pos if last else 0, after, last.key if last else b"")

    def made(self, moment: Moment, next: Last, body: Mapping[str, Value]) -> bytes:
        """The key of a step, by its hidden record; the next one of its lane is made against it."""
        next.key = layout.key_of(next.key, moment.source, moment.name, body)
        self.last[moment.lane] = next
        self.count += 1
        return next.key


class Recording:
    """Is `Calls` and `Told` of a team that is recorded: in a session by that, else in a run of its own. Nothing that
    goes wrong here reaches the program."""

    def __init__(self, run: str | None, store: str | os.PathLike[str] | None) -> None:
        self._run = run
        self._store = store
        self._root: Any = lambda: None
        self._journal: Journal | None = None
        self._broken = False  # the store cannot be opened: said once
        self._turn: Turn | None = None
        self._steps = Steps()
        self._session: insession.Steps | None = None
        self._faults: set[str] = set()  # that the logger has told
        self._said: set[str] = set()  # that are in the log

    def of(self, root: Root) -> None:
        """What it records."""
        self._root = weakref.ref(root)
        for unseen in root.unseen:
            log.warning(
                "lockstep does not see %s: give what asks the outside to lockstep_autogen.record_model or record_tool",
                unseen,
            )

    # Calls.

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`."""
        session = sessions.session
        if session is not None:
            found: Call = session.open(kind)
            return found
        journal = self.journal()
        try:
            return journal.call(lane, kind, within) if journal is not None else _IGNORED
        except Exception as error:
            self.fault(f"a {kind} call", error)
            return _IGNORED  # type: ignore[no-any-return]

    # Told.

    async def begins(self, asked: Asked, before: Moment) -> None:
        if self._in_session() is None:
            try:
                journal = self.journal()
                if journal is None:
                    return
                self._turn = journal.begin_turn(asked.entry, journal.hide(canonical.inert(asked.request)))
            except Exception as error:
                self.fault("begin of a turn", error)
        if asked.entry.startswith(("run", "on_messages")):  # what else is done to a team is a step when it is over
            await self._told(before)

    async def cut(self, moment: Moment) -> Any:
        halted = self._halts(moment)
        await self._told(moment, halted)
        return stopping.message(halted)

    def _halts(self, moment: Moment) -> str:
        """Why the team is stopped here, "" where it is not."""
        try:
            root, within = self._root(), self._in_session()
            if root is None or moment.lane != root.lane:
                return ""
            steps = within.steps if within is not None else self._steps
            return str(root.stops.reason(steps.count, moment))
        except Exception as error:
            self.fault("where a team stops", error)
            return ""

    async def ends(self, result: Any, last: Moment | None) -> None:
        if last is not None and (last.consistent or last.spoken):
            await self._told(last)
        self._end(Status.OK, result)

    def fails(self, error: BaseException, last: Moment | None) -> None:
        if last is not None and last.spoken:
            self._told_now(last)
        if isinstance(error, GeneratorExit):
            self._end(Status.CLOSED, None)
        elif isinstance(error, Exception) and not self._broke(error):
            self._end(Status.ERROR, error)
        else:
            self._leave()

    def fault(self, where: str, error: BaseException) -> None:
        session = sessions.session
        if session is not None:
            session.fault(where, error)
            return
        said = f"{where}: {type(error).__name__}: {error}"
        if self._journal is not None:
            self._journal.fault(where, error)
        if said not in self._faults and len(self._faults) < _MOST_FAULTS:
            self._faults.add(said)
            log.warning("lockstep could not record: %s", said)

    # The run.

    def journal(self) -> Journal | None:
        """The run of the team, made when it first has something to record. None where none can be."""
        if self._journal is None and not self._broken:
            try:
                root: Root = self._root()
                name = self._run or str(root.target.name)
                kind, members = type(root.target).__name__, naming.members(root.target)
                self._journal = books.journal(self._store, name, kind, root.unseen, members)
                if self._journal.run != books.run_name(name):
                    log.warning("the run of this team is called %s", self._journal.run)
                weakref.finalize(root.target, self._journal.close)
            except Exception as error:
                self._broken = True
                self.fault("the run of a team", error)
        return self._journal

    def _in_session(self) -> insession.Steps | None:
        session = sessions.session
        if session is None:
            self._session = None
        elif self._session is None or self._session.session is not session:
            self._session = insession.Steps(session)
        return self._session

    async def _told(self, moment: Moment, halted: str = "") -> None:
        try:
            within = self._in_session()
            steps = within.steps if within is not None else self._steps
            try:
                body, next = await steps.next(moment)
            except Exception as error:
                self.fault("a team's state", error)
                body, next = steps.unsaved(msgspec.structs.replace(moment, consistent=False))
            if halted:
                body[layout.HALTED] = halted
            self._write(within, moment, body, next)
        except Exception as error:
            self.fault("a step of a team", error)

    def _told_now(self, moment: Moment) -> None:
        try:
            within = self._in_session()
            steps = within.steps if within is not None else self._steps
            self._write(within, moment, *steps.unsaved(moment))
        except Exception as error:
            self.fault("a step of a team", error)

    def _write(self, within: insession.Steps | None, moment: Moment, body: dict[str, Value], next: Any) -> None:
        if within is not None:
            within.step(moment, body, next)
            return
        journal = self.journal()
        if journal is None:
            return
        hidden: Any = journal.hide(body)
        of = next.pos
        key = self._steps.made(moment, next, hidden)
        next.pos = journal.step(moment.lane, moment.name, moment.source, hidden, key, of)

    def _broke(self, error: Exception) -> bool:
        """Whether the turn ended because a model did not answer: nothing of the team's own was wrong, so that it was
        interrupted, as by Ctrl-C. AutoGen raises its text in an error of its own."""
        root = self._root()
        broken = root.broken if root is not None else None
        return broken is not None and (broken is error or f"{type(broken).__name__}: {broken}" in str(error))

    def _leave(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            try:
                self._say_faults()
                turn.leave()
            except Exception as error:
                self.fault("end of a turn", error)

    def _say_faults(self) -> None:
        """Says in the log what could not be recorded: it is incomplete."""
        journal = self._journal
        if journal is None:
            return
        faults = [fault for fault in journal.faults if fault not in self._said]
        if faults:
            self._said.update(faults)
            body: Value = {layout.FAULTS: [journal.hide(fault) for fault in faults]}
            root = self._root()
            lane = root.lane if root is not None else ""
            event = Event(Kind.CAUSE, journal.position(), journal.now(), lane, layout.FAULTS, body=body)
            journal.append([event], len(faults))

    def _end(self, status: str, value: Any) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            self._say_faults()
        except Exception as error:
            self.fault("what could not be recorded", error)
        try:
            given = value if isinstance(value, BaseException) or status != Status.OK else returned(value)
        except Exception as error:
            self.fault("what a turn returned", error)
            given = None
        try:
            turn.end(status, given)
        except Exception as error:
            self.fault("end of a turn", error)


def returned(result: Any) -> Value:
    """What a turn returned, as data: of a `TaskResult` its messages and its reason to stop."""
    if hasattr(result, "stop_reason"):
        messages: list[Value] = [canonical.message(each) for each in result.messages]
        return {"messages": messages, "stop_reason": result.stop_reason}
    if hasattr(result, "chat_message"):
        inner: list[Value] = [canonical.message(each) for each in result.inner_messages or ()]
        return {"message": canonical.message(result.chat_message), "inner": inner}
    return canonical.inert(result)
