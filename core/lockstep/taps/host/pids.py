"""Process ids: the program's own code is told the recorded one, so that it prints and sends the same.

Libraries and the standard library are told the real one, since they look for forks and at `/proc` by it
(`logging`, which prints it, is told the recorded one). What the program does to the recorded id
(`os.kill(os.getpid(), …)`) is done to this process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from lockstep.session import sites
from lockstep.session.lanes import current
from lockstep.taps.patches import Patches, stand_in

_getpid = os.getpid
_getppid = os.getppid
_TAKES_A_PID = ("kill", "killpg", "getpgid", "getsid", "pidfd_open", "sched_getaffinity", "sched_setaffinity")
_GIVES_A_PID = frozenset({"getpgid", "getsid"})

_told: dict[str, int] = {}  # replay: what `getpid` and `getppid` are to say
_real: dict[int, int] = {}  # recorded id -> the one that stands for it here
_owner = 0  # the process that these are of: a forked child has its own


def facts() -> dict[str, Any]:
    return {"getpid": _getpid(), "getppid": _getppid()}


def tell(patches: Patches, told: dict[str, Any]) -> None:
    """Replay: `os.getpid` and `os.getppid` as recorded."""
    _set(told.get("getpid"), told.get("getppid"))
    for real in (_getpid, _getppid):
        patches.set(os, real.__name__, stand_in(_telling(real), real, "os"))
    for name in _TAKES_A_PID:
        found = getattr(os, name, None)
        if found is not None:
            patches.set(os, name, stand_in(_taking(found), found, "os"))


def forked(recorded: Any) -> None:
    """In a forked child, which was `recorded`: what its parent was called is its parent's name now."""
    _set(recorded, _told.get("getpid"))


def _set(pid: Any, parent: Any) -> None:
    global _owner
    forget()
    _owner = _getpid()
    for recorded, real in ((parent, _getppid), (pid, _getpid)):
        if isinstance(recorded, int):
            _told[real.__name__] = recorded
            _real[recorded] = real()


def stands_for(recorded: int, real: int) -> None:
    """Replay: what the program does to the process `recorded` is done to `real`."""
    _real[recorded] = real


def forget() -> None:
    _told.clear()
    _real.clear()


def here(pid: Any) -> Any:
    """The process that the program means by a recorded id."""
    return _real.get(pid, pid) if type(pid) is int and _owner == _getpid() else pid


def in_proc(path: str) -> str:
    """A path below `/proc` with this process's id in the place of the recorded one."""
    _, _, pid, *rest = path.split("/", 3)
    return "/".join(("", "proc", str(here(int(pid))), *rest)) if pid.isdigit() else path


def _telling(real: Callable[[], int]) -> Callable[[object], int]:
    name = real.__name__

    def told(_: object) -> int:
        caller = sys._getframe(1)
        for_program = sites.users(caller.f_code.co_filename) or caller.f_globals.get("__name__") == "logging"
        served = for_program and current() is not None and _owner == _getpid()
        return _told.get(name) or real() if served else real()

    return told


def _taking(real: Callable[..., Any]) -> Callable[..., Any]:
    def take(_: object, pid: Any, /, *args: Any, **options: Any) -> Any:
        found = real(here(pid), *args, **options)
        return _recorded(found) if real.__name__ in _GIVES_A_PID else found

    return take


def _recorded(real: int) -> int:
    """What a process's group or session is called, if its leader is one that the program knows by a recorded id."""
    return next((recorded for recorded, stands in _real.items() if stands == real), real)
