"""A turn: one native invocation of a graph, from its input to its end.

`Pregel.stream` and `astream` are what invoke, ainvoke, batch and astream_events all come to, so these two are wrapped.
A graph whose saver is none of ours gets the original generator back, and so does a graph that runs inside a running
turn: it is part of that turn.

What the rest of the adapter asks is `running()`: the turn that the running code is part of. It is set around each step
of the generator only, so that it reaches the graph's threads and tasks, and never the caller.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from lockstep.log import untapped
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep_langgraph import asked
from lockstep_langgraph.driving import Watcher, adriven, driven

if TYPE_CHECKING:
    from lockstep.session.call import Call

# Before the taps: a native run's seed is nothing that a session should record.
_urandom = os.urandom
_time_ns = time.time_ns


class Calls(Protocol):
    """Who answers the calls of a turn: a journal that records them, or a record that serves them."""

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """Begins a call of this lane; `within` is the call whose own code makes it."""
        ...


class Ids(Protocol):
    """Where the ids come from that LangGraph draws in a turn."""

    def uuid(self, lane: str, version: int) -> UUID:
        """The next id in this lane, as `uuid4` or `uuid7` have them."""
        ...

    def checkpoint(self, lane: str) -> str | None:
        """The id of the next checkpoint in this lane of checkpoints; None where LangGraph draws its own."""
        ...


class Begun(Protocol):
    """A turn whose beginning is recorded."""

    def end(self, status: str, value: Any) -> None: ...


class Journal(Calls, Protocol):
    """The branch that a turn is written to: `lockstep.session.native`."""

    def begin_turn(self, entry: str, request: Value, seed: bytes) -> Begun: ...


class Keeper(Protocol):
    """What a turn needs of a saver's shared core."""

    codec: Any  # dump(value, path) -> Value

    def branch_for(self, turn: Turn) -> Any:
        """The journal that the turn goes to, by what it has read: asked once, when the turn first has something to
        record, if no put has said it before (`Turn.enter`). None where nothing of it is to be recorded."""
        ...

    def fault(self, where: str, error: BaseException) -> None: ...


class Turn:
    """One native invocation that is on, or was.

    thread   its thread's id
    entry    invoke, stream, ainvoke, astream or astream_events
    request  {"input", "config", "options"} as data
    seed     16 bytes that everything random of the framework is drawn from: when it began, in ms since the epoch, in
             the first six
    base     id of the checkpoint that the turn's own graph began from: the saver sets it
    ids      where the ids of messages and checkpoints come from, of `lockstep_langgraph.ids`
    journal  the branch that it is written to, None until something is
    failed   why its state is not kept: the saver has said so to the framework, and no further task runs
    replay   what has it run again (`lockstep_langgraph.loops.Replay`), None where it runs for the first time
    """

    replay: Any = None

    def __init__(self, keeper: Keeper, thread: str, entry: str, request: Value, seed: bytes) -> None:
        self.keeper = keeper
        self.thread = thread
        self.entry = entry
        self.request = request
        self.seed = seed
        self.base: str | None = None
        self.ids: Ids | None = None
        self.journal: Any = None
        self.over = False
        self.failed: Exception | None = None
        self._calls: Calls | None = None
        self._begun: Begun | None = None
        self._deciding = untapped.allocate_lock()

    def enter(self, journal: Any = None) -> Any:
        """Its journal; the first to ask writes the turn's beginning. `journal`: the branch that a put has decided."""
        if self.journal is not None:
            return self.journal
        with self._deciding:
            if self.journal is None:
                found = journal if journal is not None else self.keeper.branch_for(self)
                if found is not None:
                    self._begun = found.begin_turn(self.entry, self.request, self.seed)
                    self.journal = found
        return self.journal

    @property
    def calls(self) -> Calls | None:
        """Who answers this turn's calls, None where nobody does and they go straight through. Those of threads that a
        serializer of the program's own keeps are recorded by nobody: their text would stand beside encrypted state."""
        if self._calls is None:
            journal = self.enter()
            if self.keeper.codec.typed is None:
                self._calls = journal
        return self._calls

    @calls.setter
    def calls(self, calls: Calls | None) -> None:
        self._calls = calls

    def check(self) -> None:
        """Raises where the turn cannot go on. LangGraph puts state while the tasks of the next step run, and would tell
        of what came of it at the turn's end: after every call, with a traceback from each put that waited for it."""
        if self.failed is not None:
            raise self.failed.with_traceback(None)

    def done(self, last: Any, mode: Any) -> None:
        """The invocation came to its end. `last` of what it gave, in a stream of this mode."""
        try:
            value = asked.returned(self.keeper.codec, last, mode)
        except Exception as error:
            self.keeper.fault("what a turn gave", error)
            value = {}
        self.end(Status.OK, value)

    def end(self, status: str, value: Any) -> None:
        """The invocation is over: `value` is what it gave, or the exception that ended it."""
        self.over = True
        if self._begun is not None:
            try:
                self._begun.end(status, value)
            except Exception as error:
                self.keeper.fault("end of a turn", error)


current: ContextVar[Turn | None] = ContextVar("lockstep_langgraph_turn", default=None)

# The turn that the next invocation in this context is, in place of one of its own: replays and forks.
prepared: ContextVar[Turn | None] = ContextVar("lockstep_langgraph_prepared", default=None)


def running() -> Turn | None:
    """The turn that the running code is part of. What a node left running after its turn's end is part of none."""
    turn = current.get()
    return None if turn is None or turn.over else turn


class Driver(Protocol):
    """What an invocation goes through that is no turn: with a session on, its code runs in the thread's native lane."""

    def driven(self, graph: Any, config: Any, source: Any) -> Any: ...
    def adriven(self, graph: Any, config: Any, source: Any) -> Any: ...


in_session: Driver | None = None  # of `lockstep_langgraph.insession`

_plain: tuple[Any, Any] | None = None
_installed = 0
_installing = untapped.allocate_lock()


def install() -> None:
    """Wraps `Pregel.stream` and `astream`; as often as it is called, `uninstall` has to be to undo it."""
    global _plain, _installed
    from langgraph.pregel import Pregel

    with _installing:
        _installed += 1
        if _plain is None:
            _plain = Pregel.stream, Pregel.astream
            graph: Any = Pregel
            graph.stream, graph.astream = _stream(Pregel.stream), _astream(Pregel.astream)


def uninstall() -> None:
    global _plain, _installed
    from langgraph.pregel import Pregel

    with _installing:
        _installed = max(0, _installed - 1)
        if _installed == 0 and _plain is not None:
            graph: Any = Pregel
            graph.stream, graph.astream = _plain
            _plain = None


def _stream(plain: Any) -> Any:
    @wraps(plain)
    def stream(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        turn = _begin(self, input, config, options, "stream", sys._getframe(1).f_code)
        source = plain(self, input, config, **options)
        if turn is None:
            return source if in_session is None else in_session.driven(self, config, source)
        return driven(current, turn, source, _Watched(turn, options.get("stream_mode") or self.stream_mode))

    return stream


def _astream(plain: Any) -> Any:
    @wraps(plain)
    def astream(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        turn = _begin(self, input, config, options, "astream", sys._getframe(1).f_code)
        source = plain(self, input, config, **options)
        if turn is None:
            return source if in_session is None else in_session.adriven(self, config, source)
        return adriven(current, turn, source, _Watched(turn, options.get("stream_mode") or self.stream_mode))

    return astream


def _begin(graph: Any, input: Any, config: Any, options: dict[str, Any], entry: str, caller: Any) -> Turn | None:
    """The turn that this invocation is, None where it is none of its own."""
    turn = prepared.get()
    if turn is not None:
        prepared.set(None)
        return turn
    if sessions.session is not None or running() is not None:
        return None
    keeper: Keeper | None = None
    try:
        keeper, thread, effective = _kept(graph, config)
        if keeper is None:
            return None
        entry = asked.entry(entry, caller, effective)
        request = asked.request(keeper.codec, input, effective, options)
        return Turn(keeper, thread, entry, request, seed())
    except Exception as error:
        if keeper is not None:
            keeper.fault("begin of a turn", error)
        return None  # an input that langgraph itself refuses is told by langgraph


def _kept(graph: Any, config: Any) -> tuple[Keeper | None, str, Mapping[str, Any]]:
    """The core of the saver that this invocation will use, if it is ours, with the thread and the whole config."""
    from langgraph._internal._config import ensure_config

    own = graph.checkpointer
    effective: Mapping[str, Any] = ensure_config(graph.config, config)
    configurable = effective.get("configurable") or {}
    saver = configurable.get("__pregel_checkpointer", own) if own is not False else None
    keeper = getattr(saver, "_core", None) if saver is not None and saver is not True else None
    thread = configurable.get("thread_id")
    ours = thread is not None and hasattr(keeper, "branch_for")
    return (keeper if ours else None), str(thread), effective


def seed() -> bytes:
    """A new turn's: the time in ms, in 6 bytes as ids of version 7 begin, and 10 random ones."""
    return (_time_ns() // 1_000_000).to_bytes(6, "big") + _urandom(10)


class _Watched(Watcher):
    """Ends a turn as its source ends."""

    def __init__(self, turn: Turn, mode: Any) -> None:
        self._turn = turn
        self._mode = mode
        self._last: Any = None
        self._count = 0

    def read(self, item: Any) -> None:
        self._last = item
        self._count += 1

    def done(self) -> None:
        self._turn.done(self._last, self._mode)

    def closed(self) -> None:
        self._turn.end(Status.CLOSED, {"read": self._count})

    def failed(self, error: BaseException) -> None:
        self._turn.end(Status.ERROR, error)

    def cancelled(self, error: BaseException) -> None:
        self._turn.end(Status.CANCELLED, str(error))
