"""The guard: what no tap covers is named while recording, and stops a replay before it reaches outside.

An audit hook sees each connection, look-up and child process that Python itself makes (`events`), and
libraries that are loaded by hand (`symbols`). Clients with sockets of their own in C or Rust make no
such event: those that are known are met at their Python surface (`clients`), and a look at the
kernel's tables at the end names the connections that nobody saw being made (`own.unseen`).

The program's traffic with itself is left alone where it can be proven to be that (`own`).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from lockstep.errors import Code, Cut, Stop
from lockstep.log.model import Value
from lockstep.session import current
from lockstep.taps.guard import clients, entries, own, serving, uncovered
from lockstep.taps.guard.events import LIVE, WATCHED
from lockstep.taps.imports import when_imported

_hooked = False
_sealed = 0  # the process whose replay is over
_ATTACH = {client.module: entries.attach(client) for client in clients.CLIENTS}


def install() -> None:
    """Watches for clients that make no audit events. The hook comes with the first session, since one
    can't be removed and costs every audited event 0.2 µs."""
    when_imported("socket", serving.patch)
    entries.late = True
    for module, attach in _ATTACH.items():
        when_imported(module, attach)
    entries.late = False


def start(session: Any, facts: Value = None) -> Value:
    global _hooked
    own.began()
    serving.began(session)
    entries.began()
    if not _hooked:
        _hooked = True
        sys.addaudithook(_hook)
    return None


def check(session: Any) -> None:
    """The program is over, its report not yet written."""
    for client in entries.unused():
        session.watched[client] = "loaded, not used"
    for address in own.unseen():
        session.note("socket", f"{address} (open at the end, by code in C or Rust that makes its own connections)")


def stop(session: Any) -> None:
    pass


def seal() -> None:
    """The replay of this process is over, and it is about to end: what still runs in it reaches nothing."""
    global _sealed
    _sealed = os.getpid()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in WATCHED:
        return
    session = current.session
    if session is None:
        if _sealed and event in LIVE and _sealed == os.getpid():
            raise Cut("the replay is over")
        return
    if session.stopped and event in LIVE:
        session.raise_latched()
    try:
        WATCHED[event](args)
    except Stop:
        raise
    except Exception as error:
        if session.recording:
            session.fault(f"guard, {event}", error)
            return
        session.diverge(Code.NOT_COVERED, f"not covered: {event}, which could not be judged ({error!r})", kind=event)


__all__ = ["check", "install", "seal", "start", "stop", "uncovered"]
