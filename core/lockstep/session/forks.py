"""`os.fork`: the child goes on as a process of the same run, in a session and a stream of its own.

The parent names the child's lane before it forks, in its own order; the place of the fork among what its
other threads do is kept, since the child has a copy of their memory. The child has no writer thread, and
must not use the parent's connection: it opens one of its own, once it has something to store.

A fork inside an effect (a client's, a live tool's) belongs to that effect: its child is not followed.
"""

from __future__ import annotations

import os
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from lockstep.session import current, lanes, reads
from lockstep.session.lanes import Lane, strand

_installed = False

# In a child: (the parent's session, its own or None, its lane or None), for who ends sessions and reports.
# Without a lane it belongs to an effect; with one but no session, it should have been followed.
on_fork: Callable[[Any, Any, Lane | None], None] | None = None

# By thread that forks: the lane of its child, None where that is not followed; and how to undo INSIDE.
_forking: dict[int, tuple[Lane | None, Any]] = {}


def install() -> None:
    """Registers the hooks, once."""
    global _installed
    if not _installed and hasattr(os, "register_at_fork"):
        _installed = True
        os.register_at_fork(before=_before, after_in_parent=_parent, after_in_child=_child)
        for name in ("fork", "forkpty"):
            if hasattr(os, name):
                setattr(os, name, _in_turn(getattr(os, name)))


def _in_turn(fork: Any) -> Any:
    """Names the child, and waits for the fork's place among what other threads do, before anything of the fork: what
    others do then (`logging` takes its lock) would keep the thread waiting whose place it is."""

    def forking() -> Any:
        session: Any = current.session
        if session is None or (strand.process is None and lanes.inside() is not None):
            return fork()
        before, strand.process = strand.process, _name(session)
        try:
            return fork()
        finally:
            strand.process = before

    forking.__name__ = forking.__qualname__ = fork.__name__
    forking.__module__, forking.__doc__ = fork.__module__, fork.__doc__
    return forking


def _before() -> None:
    session: Any = current.session
    if session is None:
        return
    lane = strand.process
    try:
        session.meet()
        if lane is None and lanes.inside() is None:
            lane = lanes.lane().child("fork", strand=True)  # by who took `os.fork` before us
    except Exception as error:
        session.fault("fork", error)
    # What others do around a fork is not the program's: threading makes itself a new lock in the child.
    _forking[get_ident()] = lane, lanes.INSIDE.set(lanes.INSIDE.get() or True)
    session.before_fork()


def _name(session: Any) -> Lane:
    parent = lanes.lane()
    given: Lane | None = strand.process
    lane = parent.child("fork", strand=True) if given is None else given
    if strand.naming is not None:
        return lane
    number = parent.ordinal("fork")
    if session.recording:
        session.cause(parent, "fork", number)
    elif lane.name not in session.tape.strands and not session.interrupted:
        session.never_began(lane.name)
        session.raise_latched()
    else:
        slot = session.cause(parent, "fork", number)
        if slot is not None:
            session.wait(slot)
    return lane


def _parent() -> None:
    session: Any = current.session
    _over()
    if session is not None:
        session.after_in_parent()


def _over() -> Lane | None:
    lane, token = _forking.pop(get_ident(), (None, None))
    if token is not None:
        lanes.leave(token)
    return lane


def _child() -> None:
    before: Any = current.session
    lane = _over()
    _forking.clear()
    if before is None:
        return
    strand.process = strand.feeding = strand.naming = None
    reads.forget()
    before.after_in_child()
    session: Any = None
    if lane is not None:
        from lockstep.session.session import fork

        try:
            session = fork(before, lane.name)
        except BaseException as error:
            if not before.recording:
                os._exit(2)  # nothing of a replay may run for real
            before.fault("fork", error)
    current.session = session
    if on_fork is not None:
        lanes.ours(on_fork)(before, session, lane)
