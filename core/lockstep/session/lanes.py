"""Lanes: the deterministic name of each strand of execution, and what it has read so far.

A lane belongs to the submitted work (a task, a work item, a thread), never to the pool's worker
that happens to run it. Its name is `parent/what.n`: the n-th of that name which the parent began,
counted in the parent's own order, so an added helper task does not renumber the others.

`current()` answers "whose code is running here?" with a lane, or None where the code runs inside
an effect (the client library's own tasks, reads and locks belong to the effect).
"""

from __future__ import annotations

import contextvars
import threading
import zlib
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from lockstep.session import current as _current


class Lane:
    """One strand of one process. Used by its own strand only, so it needs no lock.

    strand  the lane of the OS thread or work item that runs this one (itself, except for tasks)
    thread  the identifier of that OS thread
    taps    what the clock and entropy taps keep for the lane, by source (`lockstep.session.reads`)
    """

    __slots__ = (
        "_children",
        "counts",
        "loop",
        "name",
        "number",
        "parent",
        "session",
        "state",
        "strand",
        "taps",
        "thread",
    )

    def __init__(self, session: Any, name: str, parent: Lane | None, strand: Lane | None) -> None:
        self.session = session
        self.name = name
        self.parent = parent
        self.strand = self if strand is None else strand
        self.thread = get_ident()  # the OS thread it runs on; set again by the hook that starts it
        self.number = zlib.crc32(name.encode())
        self._children: dict[str, int] = {}
        self.counts: dict[str, int] = {}  # ordinals handed out in this lane: timers, sleeps, locks, …
        self.loop: Any = None  # of a loop that the lane is about to run
        self.taps: dict[str, Any] = {}
        self.state: Any = None  # the engine's own record of the lane (replay)

    @property
    def reads(self) -> dict[str, int]:
        """How many values of each source the lane has read, by source name."""
        return {source: count for source, tap in tuple(self.taps.items()) if (count := tap.count)}

    def child_name(self, what: str) -> str:
        """The name of the next child lane of that name."""
        n = self._children.get(what, 0) + 1
        self._children[what] = n
        return f"{self.name}/{what}.{n}"

    def child(self, what: str, *, strand: bool) -> Lane:
        """Begins the next child lane of that name; `strand` says whether it has a thread of its own."""
        return self.session.new_lane(self.child_name(what), self, None if strand else self.strand)  # type: ignore[no-any-return]

    def begin_loop(self, loop: Any) -> bool:
        """Whether a task made for `loop`, which does not run, is the first since it last ran."""
        if loop is self.loop:
            return False
        self.loop = loop
        return True

    def ordinal(self, what: str) -> int:
        """The next number of its kind in this lane, from 1."""
        n = self.counts.get(what, 0) + 1
        self.counts[what] = n
        return n

    def __repr__(self) -> str:
        return f"<Lane {self.name}>"


class Sent:
    """A lane that was named where a callback was sent, and begins where that runs, if it does anything:
    on the strand of the loop that took it."""

    __slots__ = ("name", "parent", "session")

    def __init__(self, parent: Lane, what: str) -> None:
        self.session = parent.session
        self.parent = parent
        self.name = parent.child_name(what)


class _Strand(threading.local):
    """What the hooks know of this OS thread. `item` (a work item's lane) outranks the context. `process`: the
    lane of a process that it is about to start. `feeding`: of a thread that belongs to a library and hands the
    program's messages to other processes, in their order; `naming`: of one that starts processes for it."""

    item: Lane | None = None
    lane: Lane | None = None
    inside: Any = None
    process: Lane | None = None
    feeding: Lane | None = None
    naming: Lane | None = None


strand = _Strand()
LANE: contextvars.ContextVar[Lane | Sent | None] = contextvars.ContextVar("lockstep_lane", default=None)
# The open effect that the running code belongs to; None in the program's own code.
INSIDE: contextvars.ContextVar[Any] = contextvars.ContextVar("lockstep_inside", default=None)
_get_lane = LANE.get
_get_inside = INSIDE.get
# The native lane (`langgraph/t-91`) that the running code works for, "" for none: set by adapters, for as long as the
# framework runs and never while its caller does.
NATIVE: contextvars.ContextVar[str] = contextvars.ContextVar("lockstep_native", default="")
# Set while the garbage collector runs in this context (`lockstep.taps.collector`).
COLLECTING: contextvars.ContextVar[Any] = contextvars.ContextVar("lockstep_collecting", default=None)
_get_collecting = COLLECTING.get


def inside() -> Any:
    """The open effect (`Call`) that the running code belongs to, or None in the program's own code."""
    if _get_collecting() is not None:
        return True
    effect = _get_inside()
    if effect is not None:
        return effect
    if strand.item is None and LANE.get() is None:
        return strand.inside
    return None


def collecting() -> bool:
    """Whether the garbage collector has this code run: a finalizer, or what one has started."""
    return _get_collecting() is not None


def strand_inside() -> bool:
    """Whether this whole thread belongs to an effect (a client's own thread)."""
    return strand.item is None and strand.inside is not None


def own() -> Lane:
    """The lane of this OS thread or work item, whatever task runs in it. Needs a session."""
    found = strand.item or strand.lane
    session = _current.session
    assert session is not None
    if found is None or found.session is not session:
        found = strand.lane = session.adopt()
    return found


def lane() -> Lane:
    """The lane of the running strand, whether or not it is inside an effect. Needs a session."""
    var = LANE.get()
    if var is None or var.session is not _current.session:
        return own()
    if isinstance(var, Sent):
        begun: Lane = var.parent.session.new_lane(var.name, var.parent, own())
        LANE.set(begun)
        return begun
    if var.strand.thread == get_ident():
        return var
    if strand.item is not None:
        return strand.item
    # A context that was carried into another thread (anyio's workers): the task waits meanwhile, so
    # the call is a lane below it with a thread of its own.
    carried = var.child("carried", strand=True)
    LANE.set(carried)
    return carried


def current() -> Lane | None:
    """The lane whose own code is running, or None without a session or inside an effect.

    The same answer as `inside` and `lane` together, in one look at this thread's dict and by methods
    bound before: every clock read asks (150 ns; 350 by the two calls and the thread-local's look-ups).
    """
    session = _current.session
    if session is None or _get_inside() is not None or _get_collecting() is not None:
        return None
    sent = _get_lane()
    if sent is None:
        here: dict[str, Lane | None] = strand.__dict__
        found = here.get("item")
        if found is None:
            if here.get("inside") is not None:
                return None
            found = here.get("lane")
        if found is None or found.session is not session:
            return lane()
        return found
    if isinstance(sent, Sent) or sent.session is not session or sent.strand.thread != get_ident():
        return lane()
    return sent


def leave(token: contextvars.Token[Any]) -> None:
    """Undoes a setting of INSIDE. A coroutine that is dropped half way is closed in another context than the
    one it was set in: there is nothing to undo then."""
    try:  # noqa: SIM105 - suppress takes longer than all the rest
        INSIDE.reset(token)
    except ValueError:
        pass


def ours[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """A function whose work belongs to a client or to us, never to the program: its locks, threads and
    callbacks are not gated."""

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        token = INSIDE.set(INSIDE.get() or True)
        try:
            return function(*args, **kwargs)
        finally:
            INSIDE.reset(token)

    run.__wrapped__ = function  # type: ignore[attr-defined]
    return run


def name_of(function: Any) -> str:
    """The last part of a function's, coroutine's or object's name, for the name of its lane."""
    function = getattr(function, "func", function)  # functools.partial
    found = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(found).rpartition(".")[2].strip("<>") or "call"
