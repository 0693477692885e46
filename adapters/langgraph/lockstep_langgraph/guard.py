"""What a replay at call depth may not do: reach outside past LangChain.

Nodes run in such a replay, and only the calls that LangChain makes are served. A node that opens a connection of its
own, or starts a process, would do for real what it did when it was recorded, and nobody has recorded what came of it.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from lockstep.errors import Code
from lockstep.session import current as sessions
from lockstep.session import sites
from lockstep_langgraph import turns

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
_HINT = (
    "nodes run in a replay at call depth, and what they do outside of LangChain's models and tools is not recorded "
    "without a session: replay at node depth, or record with lockstep record"
)
_DEEP = 8  # frames between the start of a process and who wants it
_hooked = False


def install() -> None:
    """Begins to watch. An audit hook can't be removed: without a replay it costs a look-up for each audited event."""
    global _hooked
    if not _hooked:
        _hooked = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    watched = _WATCHED.get(event)
    if watched is None:
        return
    replay = getattr(turns.running(), "replay", None)
    if replay is None or sessions.session is not None:
        return
    kind, place = watched
    if kind == "process" and _by_ctypes():
        return
    reached = _shown(args[place]) if 0 <= place < len(args) else event
    if reached is not None and not (kind == "host name" and _literal(reached)):
        reason = f"not covered: {kind} {reached} would be reached for real; {_HINT}"
        replay.stops(Code.NOT_COVERED, reason, kind, reached, sites.site(2))


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
