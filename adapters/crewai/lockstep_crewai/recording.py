"""Recording a crew, agent or flow: its turns and steps, to a run of its own, or to the session that is on."""

from __future__ import annotations

import logging
import os
import weakref
from typing import TYPE_CHECKING, Any

from lockstep.log import untapped
from lockstep.log.address import quote
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.native import ATTACHMENT
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.effects import Ignored
from lockstep.session.native import Journal
from lockstep_crewai import books, insession, layout, refused, wrapping
from lockstep_crewai.adapter import adapter
from lockstep_crewai.layout import Moment
from lockstep_crewai.seams import Asked, Seams
from lockstep_crewai.steps import Steps
from lockstep_crewai.wrapping import Root

if TYPE_CHECKING:
    from lockstep.session.native.turn import Turn

log = logging.getLogger("lockstep")

_MOST_FAULTS = 100
_IGNORED: Any = Ignored()


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
        self._journal: Journal | None = None
        self._broken = False  # the store cannot be opened: said once
        self._turn: Turn | None = None
        self._steps = Steps()
        self._faults: set[str] = set()
        self._said: set[str] = set()  # that are in the log
        self._lock: Any = untapped.RLock()  # of steps, of which several may be done at once

    def of(self, root: Root) -> None:
        """What it records."""
        self._root = weakref.ref(root)

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be recorded, in words."""
        return tuple(sorted(self._faults))

    @property
    def is_new(self) -> bool:
        """Whether it has recorded nothing yet."""
        return self._journal is None and not self._broken

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

    def begins(self, asked: Asked, before: Moment) -> None:
        self._steps.turn()
        if sessions.session is None:
            try:
                journal = self.journal()
                if journal is None:
                    return
                self._turn = journal.begin_turn(asked.entry, dict(asked.request))
            except Exception as error:
                self.fault("begin of a turn", error)
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
        self._end(Status.OK, result)

    def fails(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self._end(Status.ERROR, error)
        elif isinstance(error, GeneratorExit):
            self._end(Status.CLOSED, None)
        else:
            self._leave()  # Ctrl-C, a cancellation, or what a session stops its program with

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
        """The run, made when there is first something to record. None where none can be."""
        with self._lock:
            if self._journal is None and not self._broken:
                try:
                    root: Root = self._root()
                    name = self._run or root.name
                    self._journal = books.journal(self._store, name, root.about())
                    if self._journal.run != books.run_name(name):
                        log.warning("the run of this %s is called %s", root.kind, self._journal.run)
                    weakref.finalize(root.target, self._journal.close)
                except Exception as error:
                    self._broken = True
                    self.fault("the run of what is wrapped", error)
            return self._journal

    def _write(self, moment: Moment) -> None:
        journal = self.journal()
        if journal is None:
            return
        body, next = self._steps.next(moment)
        hidden: Any = journal.hide(body)
        of = next.pos
        key = self._steps.made(moment, next, hidden)
        next.pos = journal.step(moment.lane, moment.name, moment.source, hidden, key, of)

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
            turn.end(status, value)
        except Exception as error:
            self.fault("end of a turn", error)
