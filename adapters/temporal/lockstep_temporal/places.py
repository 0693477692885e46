"""Where in the log an activity stands that a workflow has begun: whoever runs it tells its attempts there.

A process that records workflows knows those that are on in it. Another one, which only runs activities, finds it in the
store: the command is in the log before the server has it, so before anybody can run it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.errors import LockstepError
from lockstep.log.model import Kind
from lockstep.log.steps import TURN
from lockstep_temporal import commands, layout
from lockstep_temporal.books import Books

if TYPE_CHECKING:
    from lockstep.log.store import RunReader, Store
    from lockstep.session.native.journal import Journal

_MOST = 128  # runs that are read along, and journals that are open
_MOST_OVER = 1000  # activities that have their answer, of which a late attempt may still speak
_NO_ACTIVITIES = frozenset(commands.FAMILY) - {commands.ACTIVITY, commands.LOCAL_ACTIVITY} | commands.INBOUND
_ATTEMPTS = frozenset({layout.ATTEMPT, TURN})


class Place(msgspec.Struct, frozen=True):
    """An activity in the log: the position of its BEGIN, and who writes there."""

    journal: Journal
    pos: int


type _Activity = tuple[str, str]  # run id of the execution, id of the activity in it


def activity_id(body: Any) -> str:
    """By the body of a BEGIN: the activity's own id, or its number."""
    told = body.get("id")
    return str(told if told is not None else body.get("seq"))


def here(run_id: str, activity: str) -> Place | None:
    """Where an activity stands that a workflow of this process waits for. Takes microseconds, in any thread."""
    for books in Books.all():
        found = books.place(run_id, activity)
        if found is not None:
            return Place(*found)
    return None


class Places:
    """Finds activities in one store. For one thread."""

    def __init__(self, store: str | None) -> None:
        """`store`: path, found as `lockstep.log.store.locate` does."""
        self._path = store
        self._store: Store | None = None
        self._reading: OrderedDict[tuple[str, str], _Along] = OrderedDict()
        self._journals: OrderedDict[tuple[str, str], Journal] = OrderedDict()

    def find(self, workflow_id: str, run_id: str, activity: str) -> Place | None:
        """None where nothing of it is in the log, so far at least. Raises StoreError."""
        known = here(run_id, activity)
        if known is not None:
            return known
        try:
            return self._stored(workflow_id, run_id, activity)
        except LockstepError:
            self.close()  # a run that was deleted meanwhile is read anew the next time
            raise

    def close(self) -> None:
        """Lets go of the store."""
        for journal in self._journals.values():
            journal.close()
        self._journals.clear()
        self._reading.clear()
        if self._store is not None:
            self._store.close()
            self._store = None

    def _stored(self, workflow_id: str, run_id: str, activity: str) -> Place | None:
        store = self._opened()
        if store is None:
            return None
        number = 1
        while store.has_run(name := layout.run_name(workflow_id, number)):
            for branch in _branches(store.run(name)):
                pos = self._along(store, name, branch).find(run_id, activity)
                if pos:
                    return Place(self._journal(store, name, branch), pos)
            number += 1
        return None

    def _opened(self) -> Store | None:
        from lockstep.log.store import open_store

        if self._store is None:
            try:
                self._store = open_store(self._path)
            except LockstepError:
                return None  # nobody has written to it yet
        return self._store

    def _along(self, store: Store, run: str, branch: str) -> _Along:
        found = self._reading.get((run, branch))
        if found is None:
            found = self._reading[run, branch] = _Along(store.run(run, branch))
            if len(self._reading) > _MOST:
                self._reading.popitem(last=False)
        self._reading.move_to_end((run, branch))
        return found

    def _journal(self, store: Store, run: str, branch: str) -> Journal:
        from lockstep.session.native.journal import Journal

        found = self._journals.get((run, branch))
        if found is None:
            found = self._journals[run, branch] = Journal.open(store, run, {}, branch=branch)
            if len(self._journals) > _MOST:
                self._journals.popitem(last=False)[1].close()
        self._journals.move_to_end((run, branch))
        return found


class _Along:
    """One branch, read along: the activities that are under way in it, or were lately."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._next = 0
        self._run_id = ""
        self._open: dict[_Activity, int] = {}
        self._over: OrderedDict[_Activity, int] = OrderedDict()  # an attempt may outlive its activity
        self._at: dict[int, _Activity] = {}

    def find(self, run_id: str, activity: str) -> int:
        """The position of its BEGIN, 0 where there is none."""
        self._read()
        return self._open.get((run_id, activity)) or self._over.get((run_id, activity), 0)

    def _read(self) -> None:
        reader, stream = self._reader, self._reader.main
        for seq, event in reader.heads(stream, self._next):
            self._next = seq + 1
            if event.kind is Kind.BEGIN:
                if event.what == TURN:
                    request: Any = reader.field(stream, seq, "request")
                    self._run_id = str(request.get("run_id")) if isinstance(request, dict) else ""
                elif event.what not in _NO_ACTIVITIES and event.what not in _ATTEMPTS:
                    told = {name: reader.field(stream, seq, name) for name in ("id", "seq")}
                    key = self._run_id, activity_id(told)
                    self._open[key] = event.pos
                    self._at[event.pos] = key
            elif event.kind is Kind.END and event.of in self._at:
                over = self._at.pop(event.of)
                if self._open.get(over) == event.of:
                    del self._open[over]
                    self._over[over] = event.of
                    if len(self._over) > _MOST_OVER:
                        self._over.popitem(last=False)


def _branches(reader: RunReader) -> list[str]:
    """The branches that workers may write to, the newest first: forks of ours are nobody's activities."""
    found = []
    for branch in reversed(reader.branches):
        fork = None if not branch.parent else reader.on(branch.name).fork
        body: Any = fork.body if fork is not None else None
        if not branch.parent or (isinstance(body, dict) and body.get("latest") is True):
            found.append(branch.name)
    return found
