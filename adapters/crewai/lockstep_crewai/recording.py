"""Recording a crew, agent or flow: its turns and steps, to a run of its own, or to the session that is on."""

from __future__ import annotations

import logging
import os
import weakref
from typing import Any

from lockstep.log import untapped
from lockstep.log.address import quote
from lockstep.log.model import Kind, Status, Value
from lockstep.log.native import ATTACHMENT
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.native import Journal, new
from lockstep.session.native import recording as own
from lockstep.session.native.steps import write
from lockstep_crewai import insession, layout, refused, wrapping
from lockstep_crewai.adapter import adapter
from lockstep_crewai.layout import Moment
from lockstep_crewai.seams import Asked, Seams
from lockstep_crewai.steps import Steps
from lockstep_crewai.wrapping import Root

log = logging.getLogger("lockstep")

_DISTRIBUTIONS = ("crewai", "crewai-core", "openai", "litellm")  # whose versions a run says


def record(target: Any, run: str | None, store: str | os.PathLike[str] | None) -> None:
    """Has it recorded from now on. See `entry.wrap`."""
    refused.check(target)
    name = run.removeprefix(f"{adapter.name}/") if run else None
    recording = Recording(name, store)
    root = Root(target, Seams(recording, recording), lane=quote(name) if name else "")
    recording.of(root)
    wrapping.put(root)


class Recording:
    """Is `Calls` and `Told` of what is recorded: in a session by that, else in a run of its own. Nothing that goes
    wrong here reaches the program."""

    recording = True

    def __init__(self, run: str | None, store: str | os.PathLike[str] | None) -> None:
        self._run = run
        self._store = store
        self._root: Any = lambda: None
        self._own = own.Recording("what is wrapped", self._made, self._lane)
        self._steps = Steps()
        self._lock: Any = untapped.RLock()  # of steps, of which several may be done at once

    def of(self, root: Root) -> None:
        """What it records."""
        self._root = weakref.ref(root)

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be recorded, in words."""
        return self._own.faults

    @property
    def is_new(self) -> bool:
        """Whether it has recorded nothing yet."""
        return self._own.is_new

    # Calls.

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`."""
        return self._own.call(lane, kind, within)

    # Told.

    def begins(self, asked: Asked, before: Moment) -> None:
        self._steps.turn()
        if self._own.begin(asked.entry, lambda: dict(asked.request)):
            self.step(before)

    def step(self, moment: Moment) -> None:
        try:
            session = sessions.session
            if session is not None:
                insession.step(session, moment)
                return
            with self._lock:  # never while a session has us wait for another thread
                self._write(moment)
        except Exception as error:
            self.fault(f"the step {moment.at}", error)

    def counts(self, lane: str, tokens: Value) -> None:
        journal = self.journal() if sessions.session is None else None
        if journal is None:
            return
        try:
            body: Value = {layout.TOKENS: tokens}
            journal.emit(Kind.CAUSE, lane, journal.position(), layout.TOKENS, body=body)
        except Exception as error:
            self.fault("the tokens that a crew has counted", error)

    def was_busy(self, lane: str, attempt: int) -> bool:
        return False

    def busy(self, lane: str, attempt: int) -> None:
        journal = self.journal() if sessions.session is None else None
        if journal is not None:
            journal.emit(Kind.CAUSE, lane, journal.position(), layout.BUSY, body={layout.BUSY: attempt})

    def attached(self, lane: str, name: str, about: Value) -> None:
        last = self._steps.last.get(lane)
        journal = self.journal() if sessions.session is None else None
        if journal is None or last is None:
            return
        try:
            body: Value = {"content": about}
            journal.emit(Kind.WRITES, lane, journal.position(), ATTACHMENT, name, last.pos, body=body)
        except Exception as error:
            self.fault(f"a {name} in {lane}", error)

    def ends(self, result: Value) -> None:
        self._own.end(Status.OK, result)

    def fails(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self._own.end(Status.ERROR, error)
        elif isinstance(error, GeneratorExit):
            self._own.end(Status.CLOSED)
        else:
            self._own.leave()  # Ctrl-C, a cancellation, or what a session stops its program with

    def fault(self, where: str, error: BaseException) -> None:
        self._own.fault(where, error)

    # The run.

    def journal(self) -> Journal | None:
        """See `lockstep.session.native.recording.Recording`."""
        return self._own.journal()

    def _made(self) -> Journal:
        root: Root = self._root()
        name = self._run or root.name
        journal = new.journal(self._store, adapter.name, name, root.about(), _DISTRIBUTIONS)
        if journal.run != new.run_name(adapter.name, name):
            log.warning("the run of this %s is called %s", root.kind, journal.run)
        weakref.finalize(root.target, journal.close)
        return journal

    def _lane(self) -> str:
        root = self._root()
        return root.lane if root is not None else ""

    def _write(self, moment: Moment) -> None:
        journal = self.journal()
        if journal is not None:
            write(journal, self._steps, moment, *self._steps.next(moment))
