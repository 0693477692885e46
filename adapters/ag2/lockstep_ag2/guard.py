"""What a replay may not do: reach outside past the agent's model, tools and human.

Middleware, prompts and observers run in a replay. One that opens a connection of its own, or starts a process, would do
for real what it did when it was recorded, and nobody has recorded what came of it. So would a toolkit that asks its
server for the tools that it has.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

from lockstep.session import current as sessions
from lockstep.session import sites
from lockstep_ag2 import strands

# By audit event: what it is, and which of its arguments names what is reached.
_WATCHED = {
    "socket.connect": ("socket", 1),
    "socket.sendto": ("socket", 1),
    "socket.getaddrinfo": ("host name", 0),
    "socket.gethostbyname": ("host name", 0),
    "subprocess.Popen": ("process", 0),
    "os.system": ("process", 0),
    "os.posix_spawn": ("process", 0),
}
_HINT = (
    "what an agent does past its model, tools and human is not recorded without a session: record the program with "
    "lockstep record"
)
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
    strand = strands.running()
    turn: Any = strand.turn if strand is not None else strands.prepared.get()
    if turn is None or not turn.serves or sessions.session is not None:
        return
    kind, place = watched
    reached = _shown(args[place] if place < len(args) else event)
    if reached is not None and not (kind == "host name" and _is_address(reached)):
        reason = f"not covered: {kind} {reached} would be reached for real; {_HINT}"
        turn.stops(reason, kind, reached, sites.site(2))


def _shown(reached: Any) -> str | None:
    if reached is None:
        return None  # a look-up of this host, or a datagram on a socket that is connected
    if isinstance(reached, tuple) and len(reached) >= 2:
        return f"{reached[0]}:{reached[1]}"
    return reached.decode("utf-8", "backslashreplace") if isinstance(reached, bytes) else str(reached)


def _is_address(host: str) -> bool:
    """Whether it is an address already: nobody is asked for it then."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
