"""Host facts: names and numbers of the machine and the process that programs print, send and decide by.

Host and user name, kernel, number of processors and process id are noted when a recording begins (what has to
be looked up, at its first use), and told again in a replay wherever they are others. Also noted, and
named where a replay has another: the Python, the system, the locale and the working directory.

Not faked: thread ids, load, memory, what is in `/proc`, and what C code asks.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from lockstep.log.model import Value
from lockstep.session import firsts
from lockstep.taps.host import names, pids, processors
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches

SOURCE = "host"

_patches = Patches()  # for the length of a session
_getcwd = os.getcwd
_uname = getattr(os, "uname", None)


def install() -> None:
    """Patches what is looked up at its first use; inert without a session."""
    when_imported("getpass", names.tap_getpass)
    when_imported("socket", names.tap_socket)


def start(session: Any, facts: Value = None) -> Value:
    """Recording: notes the facts. Replay: tells the recorded ones."""
    install()
    here = _facts()
    if session.recording:
        names.lookups = names.Lookups(firsts.Firsts(session, SOURCE), {})
        names.tap_login(_patches)
        return here
    told: Any = facts if isinstance(facts, dict) else {}
    first = firsts.Firsts(session, SOURCE) if session.resumes else None  # what the tail of a fork asks first
    names.lookups = names.Lookups(first, dict(firsts.recorded(session, SOURCE)))
    names.tap_login(_patches)
    names.tell(_patches, told, here)
    processors.tell(_patches, told, here)
    pids.tell(_patches, told)
    for source, what in _OTHERS.items():
        was, now = told.get(what), here.get(what)
        if was is not None and was != now:
            session.differs[source] = f"{was} when recorded, {now} here"
    return here


def forked(session: Any) -> None:
    """The child has an id of its own; what was looked up is known to it."""
    before = names.lookups
    if before is None:
        return
    if session.recording:
        names.lookups = names.Lookups(firsts.Firsts(session, SOURCE), before.told)
        return
    names.lookups = names.Lookups(None, {**before.told, **firsts.recorded(session, SOURCE)})
    start = session.tape.body(session.tape.start_seq) if session.tape.start is not None else None
    pids.forked(start.get("pid") if isinstance(start, dict) else None)


def stop(session: Any) -> None:
    """The machine tells its own again."""
    names.lookups = None
    pids.forget()
    _patches.undo()
    names.forget_platform()


# What is another where a replay runs elsewhere, and may explain a difference: how it is called -> the fact.
_OTHERS = {"python": "python", "system": "system", "locale": "locale", "working directory": "cwd"}


def _facts() -> dict[str, Any]:
    found: dict[str, Any] = {
        "python": f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}",
        "system": sys.platform,
        "locale": _locale(),
        "cwd": _getcwd(),
        **pids.facts(),
        **processors.facts(),
    }
    if _uname is not None:
        told = _uname()
        found["system"] = f"{told.sysname} {told.machine}"
        found["uname"] = [told.nodename, told.release, told.version]
    return found


def _locale() -> str:
    import _locale as c

    return f"{c.setlocale(c.LC_CTYPE)}, {sys.getfilesystemencoding()}"
