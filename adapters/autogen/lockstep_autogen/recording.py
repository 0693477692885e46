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
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.native import Journal, new
from lockstep.session.native import recording as own
from lockstep.session.native.steps import Last, write
from lockstep_autogen import attaching, canonical, insession, layout, naming, states, stopping
from lockstep_autogen.adapter import adapter
from lockstep_autogen.attaching import Root
from lockstep_autogen.layout import Moment
from lockstep_autogen.seams import Asked, Seams

if TYPE_CHECKING:
    pass

log = logging.getLogger("lockstep")

DISTRIBUTIONS = ("autogen-agentchat", "autogen-core", "autogen-ext")  # whose versions a run says


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
        self._own = own.Recording("a team", self._made, self._lane)
        self._steps = Steps()
        self._session: insession.Steps | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be recorded, in words."""
        return self._own.faults

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
        return self._own.call(lane, kind, within)

    # Told.

    async def begins(self, asked: Asked, before: Moment) -> None:
        if not self._own.begin(asked.entry, lambda: canonical.inert(asked.request)):
            return
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
        try:
            given = returned(result)
        except Exception as error:
            self.fault("what a turn returned", error)
            given = None
        self._own.end(Status.OK, given)

    def fails(self, error: BaseException, last: Moment | None) -> None:
        if last is not None and last.spoken:
            self._told_now(last)
        if isinstance(error, GeneratorExit):
            self._own.end(Status.CLOSED)
        elif isinstance(error, Exception) and not self._broke(error):
            self._own.end(Status.ERROR, error)
        else:
            self._own.leave()

    def fault(self, where: str, error: BaseException) -> None:
        self._own.fault(where, error)

    # The run.

    def journal(self) -> Journal | None:
        """See `lockstep.session.native.recording.Recording`."""
        return self._own.journal()

    def _made(self) -> Journal:
        root: Root = self._root()
        name = self._run or str(root.target.name)
        about: dict[str, Value] = {"class": type(root.target).__name__, "unseen": [*root.unseen]}
        members = naming.members(root.target)
        if members:
            about["members"] = [*members]
        journal = new.journal(self._store, adapter.name, name, about, DISTRIBUTIONS)
        if journal.run != new.run_name(adapter.name, name):
            log.warning("the run of this team is called %s", journal.run)
        weakref.finalize(root.target, journal.close)
        return journal

    def _lane(self) -> str:
        root = self._root()
        return root.lane if root is not None else ""

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
        if journal is not None:
            write(journal, self._steps, moment, body, next)

    def _broke(self, error: Exception) -> bool:
        """Whether the turn ended because a model did not answer: nothing of the team's own was wrong, so that it was
        interrupted, as by Ctrl-C. AutoGen raises its text in an error of its own."""
        root = self._root()
        broken = root.broken if root is not None else None
        return broken is not None and (broken is error or f"{type(broken).__name__}: {broken}" in str(error))


def returned(result: Any) -> Value:
    """What a turn returned, as data: of a `TaskResult` its messages and its reason to stop."""
    if hasattr(result, "stop_reason"):
        messages: list[Value] = [canonical.message(each) for each in result.messages]
        return {"messages": messages, "stop_reason": result.stop_reason}
    if hasattr(result, "chat_message"):
        inner: list[Value] = [canonical.message(each) for each in result.inner_messages or ()]
        return {"message": canonical.message(result.chat_message), "inner": inner}
    return canonical.inert(result)
