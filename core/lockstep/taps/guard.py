"""The guard: what no tap covers is at least named, while recording and in a replay.

An audit hook sees every connection and child process that Python itself makes. One that belongs to an
effect is a client's own; any other is the program's, and live. A run with such a thing is not called
identical. Clients with sockets of their own in C are not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current, lanes, sites

_installed = False
_ASKS_THE_HOST = frozenset({"platform", "ctypes.util", "uuid", "_osx_support"})


def install() -> None:
    """Nothing yet: a hook can't be removed, and costs every audited event 0.2 µs. `start` sets it."""


def start(session: Any, facts: Value = None) -> Value:
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)
    return None


def stop(session: Any) -> None:
    pass


def _hook(event: str, args: tuple[Any, ...]) -> None:
    named = _NAMED.get(event)
    if named is None or current.session is None or lanes.inside() is not None or _host_fact():
        return
    session = current.session
    try:
        source, what = named(args)
        session.note(source, f"{what} ({sites.site(2) or 'a library'})")
    except Exception as error:
        session.fault(f"guard, {event}", error)


def _host_fact() -> bool:
    """Whether a module of Python's own asks the machine what it is (every SDK that tells its platform runs
    `uname -p`): no answer that a replay elsewhere could take for the program's data."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in ("subprocess", "os"):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_globals.get("__name__") in _ASKS_THE_HOST


def _connect(args: tuple[Any, ...]) -> tuple[str, str]:
    address = args[1]
    if isinstance(address, tuple):
        return "socket", f"{address[0]}:{address[1]}"
    return "socket", str(address) if isinstance(address, str) else repr(address)


def _process(args: tuple[Any, ...]) -> tuple[str, str]:
    path = args[0]
    return "process", path.decode(errors="replace") if isinstance(path, bytes) else str(path)


def _spawn(args: tuple[Any, ...]) -> tuple[str, str]:
    return _process(args[1:])


_NAMED: dict[str, Callable[[tuple[Any, ...]], tuple[str, str]]] = {
    "socket.connect": _connect,
    "socket.sendto": _connect,
    "subprocess.Popen": _process,
    "os.system": _process,
    "os.posix_spawn": _process,
    "os.spawn": _spawn,
}
