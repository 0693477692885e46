"""What the code of a framework may not do in a replay: reach outside past what its adapter serves.

In such a replay that code runs, and only the calls that the adapter sees are served. What opens a connection of its
own, or starts a process, would do for real what it did when it was recorded, and nobody has recorded what came of it.

    guard.watch(lambda: the replay whose code is running, or None)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from lockstep.session import current as sessions
from lockstep.session import sites

# By audit event: what it is, and which of its arguments names what is reached.
_WATCHED = {
    "socket.connect": ("socket", 1),
    "socket.sendto": ("socket", 1),
    "socket.sendmsg": ("socket", 1),
    "socket.getaddrinfo": ("host name", 0),
    "socket.gethostbyname": ("host name", 0),
    "socket.gethostbyaddr": ("host name", 0),
    "subprocess.Popen": ("process", 0),
    "os.system": ("process", 0),
    "os.posix_spawn": ("process", 0),
    "os.spawn": ("process", 1),
    "os.fork": ("process", -1),
    "os.forkpty": ("process", -1),
    "os.exec": ("process", 0),
}
_DEEP = 8  # frames between the start of a process and who wants it


class Watched(Protocol):
    """A replay whose code is watched."""

    def reached(self, kind: str, name: str, source: str) -> None:
        """The code is about to reach a socket, host name or process, at a line of the user's. What this raises, it
        gets."""
        ...


_watching: list[Callable[[], Watched | None]] = []


def watch(whose: Callable[[], Watched | None]) -> None:
    """Begins to watch: `whose` tells whose code is running. An audit hook can't be removed: without a replay it costs a
    look-up for each audited event."""
    if not _watching:
        sys.addaudithook(_hook)
    if whose not in _watching:
        _watching.append(whose)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    watched = _WATCHED.get(event)
    if watched is None:
        return
    replay = next((found for whose in _watching if (found := whose()) is not None), None)
    if replay is None or sessions.session is not None:
        return
    kind, place = watched
    if kind == "process" and _by_ctypes():
        return
    reached = _shown(args[place]) if 0 <= place < len(args) else event
    if reached is not None and not (kind == "host name" and _literal(reached)):
        replay.reached(kind, reached, sites.site(2))


def _by_ctypes() -> bool:
    """Whether `ctypes` looks where a library of C is, as clients do when they are first made: by `ldconfig`."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_DEEP):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") == "ctypes.util":
            return True
        frame = frame.f_back
    return False


def _shown(reached: Any) -> str | None:
    if reached is None:
        return None  # a look-up of this host, or a datagram on a socket that is connected
    if isinstance(reached, tuple) and len(reached) >= 2:
        return f"{reached[0]}:{reached[1]}"
    if isinstance(reached, bytes):
        return reached.decode("utf-8", "backslashreplace")
    return str(reached)


def _literal(host: str) -> bool:
    """Whether it is an address already: nobody is asked for it then."""
    import ipaddress

    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
