"""Recording an attached agent where no session is on: each of its conversations is a run, and each question a turn.

A fault of ours never reaches the agent. It is told once by the logger "lockstep", and kept in `Owner.faults`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lockstep.errors import LockstepError, StoreError
from lockstep.log import untapped
from lockstep.log.model import Status, Value
from lockstep.log.store import Store, open_store
from lockstep.session.native import Calls, Journal
from lockstep.session.native.turn import Turn
from lockstep_ag2 import layout
from lockstep_ag2.events import Names
from lockstep_ag2.noting import Noting
from lockstep_ag2.states import History, Seen

_OPEN = 64  # conversations that are kept open: a server may have thousands, and each is opened again in a moment


class Conversation:
    """One stream's run, being written.

    calls     who answers its calls: the journal, or in a fork what that decides
    context   of the last turn: a reply goes on with it
    """

    def __init__(self, journal: Journal, calls: Calls | None = None) -> None:
        self.journal = journal
        self.calls: Calls = calls if calls is not None else journal
        self.names = Names()
        self.history = History(journal.hide, self.names)
        self.context: Any = None

    def begun(self, speaker: str, agent: Any, event: Any, context: Any, history: list[Any], faults: Any) -> Recording:
        """A turn of it begins. `history`: what it goes on from, where it is no question."""
        entry, request = layout.begun(agent, event, context, history, same=context is self.context)
        self.context = context
        turn = self.journal.begin_turn(entry, request)
        return Recording(speaker, self, turn, faults)


class Recording(Noting):
    """A turn that is recorded."""

    def __init__(self, speaker: str, conversation: Conversation, turn: Turn, faults: Any) -> None:
        super().__init__(speaker, conversation.history, conversation.names)
        self.calls = conversation.calls
        self.turn = turn
        self._journal = conversation.journal
        self._faults = faults

    def step(self, source: str, name: str, state: Seen) -> None:
        try:
            record, above = self._history.record(state)
            body: Value = {**record}
            pos = self._journal.step("main", name or self.speaker, source, body, state.digest, above)
            self._history.stored(state, pos)
        except Exception as error:
            self.fault("a step", error)

    def end(self, status: Status, value: Any) -> None:
        self.turn.end(status, value)
        self._faults.tell()

    def fault(self, where: str, error: BaseException) -> None:
        self._journal.fault(where, error)
        self._faults.tell()


class Owner:
    """Who records one agent. `faults`: what went wrong in recording it, in words."""

    def __init__(self, agent: str, run: str | None, store: str | None) -> None:
        self._agent = agent
        self._run = run
        self._path = store
        self._store: Store | None = None
        self._open: OrderedDict[Any, Conversation] = OrderedDict()
        self._names: dict[Any, str] = {}  # by the stream's id
        self._lost: list[str] = []
        self._told = 0
        self._lock: Any = untapped.RLock()

    @property
    def faults(self) -> list[str]:
        with self._lock:
            return [*self._lost, *(fault for each in self._open.values() for fault in each.journal.faults)]

    def runs(self) -> list[str]:
        """The names of its runs, in the order in which they began."""
        return list(self._names.values())

    def begun(self, agent: Any, event: Any, context: Any, history: list[Any]) -> Recording | None:
        """A turn of the agent begins. None where it cannot be recorded."""
        try:
            with self._lock:
                conversation = self._conversation(context.stream)
                return conversation.begun(self._agent, agent, event, context, history, self)
        except Exception as error:
            with self._lock:
                self._lost.append(f"begin of a turn: {type(error).__name__}: {error}")
            self.tell()
            return None

    def _conversation(self, stream: Any) -> Conversation:
        found = self._open.get(stream.id)
        if found is not None:
            self._open.move_to_end(stream.id)
            return found
        if self._store is None:
            self._store = open_store(self._path, create=True)
        found = self._open[stream.id] = Conversation(self._journal(self._store, str(stream.id)))
        while len(self._open) > _OPEN:
            _, old = self._open.popitem(last=False)
            self._lost += old.journal.faults
            old.journal.close()
        return found

    def _journal(self, store: Store, stream: str) -> Journal:
        """The run of a stream: the one that it has, or a new one. Raises StoreError."""
        told = self._names.get(stream)
        meta = layout.meta(self._agent, stream)
        if told is not None:
            return Journal.open(store, told, meta)
        number = 0
        while True:
            number += 1
            name = layout.name(self._run or self._agent, number)
            if store.has_run(name) and not _is_of(store, name, stream):
                continue
            journal = Journal.open(store, name, meta)
            native: Any = journal.meta.get("native")
            if journal.is_new or (isinstance(native, dict) and native.get("stream") == stream):
                break
            journal.close()
        self._names[stream] = name
        if number > 1 and journal.is_new:
            _log().info("%s is there already: this conversation is recorded as %s", layout.name(self._agent, 1), name)
        return journal

    def tell(self) -> None:
        """Says what is new of the faults: the first one by a warning."""
        faults = self.faults
        if faults and not self._told:
            self._told = len(faults)
            _log().warning("the recording of the agent %s is incomplete: %s", self._agent, faults[0])

    def close(self) -> None:
        """Stores all, and lets go of the store. It is opened again with the next turn."""
        with self._lock:
            for conversation in self._open.values():
                conversation.journal.close()
                self._lost += conversation.journal.faults
            self._open.clear()
            store, self._store = self._store, None
            if store is not None:
                store.close()


def _is_of(store: Store, name: str, stream: str) -> bool:
    """Whether a run is of a stream: one with an id of its own may go on in another process."""
    try:
        native: Any = store.run(name).meta
    except (StoreError, LockstepError):
        return False
    told = native.get("native") if isinstance(native, dict) else None
    return isinstance(told, dict) and told.get("stream") == stream


def _log() -> Any:
    import logging

    return logging.getLogger("lockstep")
