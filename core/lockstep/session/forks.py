"""`os.fork`: the child has no writer thread, and must not use the parent's connection.

A forked child is not followed: recording, it runs on without a session, and the run says so; in a
replay its calls diverge, since going live would be worse.
"""

from __future__ import annotations

import os
from typing import Any

from lockstep.session import current, lanes, reads
from lockstep.session.recording import Recording
from lockstep.session.replaying import Replaying

_installed = False


def install() -> None:
    """Registers the hooks, once."""
    global _installed
    if not _installed and hasattr(os, "register_at_fork"):
        _installed = True
        os.register_at_fork(before=_before, after_in_parent=_parent, after_in_child=_child)


def _before() -> None:
    session: Any = current.session
    if session is None:
        return
    if lanes.inside() is None:
        session.note("child process", "os.fork")
    if isinstance(session, Recording):
        session.writer.before_fork()


def _parent() -> None:
    session = current.session
    if isinstance(session, Recording):
        session.writer.after_in_parent()


def _child() -> None:
    session = current.session
    if isinstance(session, Recording):
        session.writer.after_in_child()
        reads.forget()
        current.session = None
    elif isinstance(session, Replaying):
        session.refuse("a forked child process is not replayed")
