"""The audit events by which Python itself tells that something reaches outside, and what each one means.

A reaction names what no tap covers, or stops a replay there (`uncovered`). What belongs to an effect is
the client's own and was recorded with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from lockstep.session import current, lanes, sites
from lockstep.taps.guard import own, symbols, uncovered

type Reaction = Callable[[tuple[Any, ...]], None]

# Libraries whose calls are named by what they connect to, before they open a socket.
_NAMED_ABOVE = frozenset({"websockets", "websocket"})
_SHOWN = 60  # characters of a command
_ASKS_THE_HOST = frozenset({"platform", "ctypes.util", "uuid", "_osx_support"})


def covered() -> bool:
    """Whether what happens is part of an effect that is being recorded, or work of ours (`lanes.ours`): in a
    replay only that."""
    effect = lanes.inside()
    return effect is not None and lanes.COLLECTING.get() is None and (effect is True or _recording())


def _recording() -> bool:
    session = current.session
    return session is not None and session.recording


# Sockets.


def _bind(args: tuple[Any, ...]) -> None:
    sock, address = args
    own.bound(sock)
    # A datagram is received without a word; that a stream's connection was accepted is seen (`serving`).
    if int(sock.type) & 0xF == 2 and isinstance(address, tuple) and address[1] and not covered():
        uncovered.name("datagrams received", f"at {_shown(address)}")


def _connect(args: tuple[Any, ...]) -> None:
    sock, address = args
    own.dialled(sock)
    if covered() or own.reached(sock, address):
        return
    if _recording() and sites.package(2) in _NAMED_ABOVE:
        return
    uncovered.refuse("socket", _shown(address))


def _send(args: tuple[Any, ...]) -> None:
    sock, address = args
    # `sendmsg` on a connected socket: what that is connected to is known.
    if address is not None and not covered() and not own.reached(sock, address):
        own.dialled(sock)
        uncovered.refuse("socket", _shown(address))


def _lookup(args: tuple[Any, ...]) -> None:
    host = args[0][0] if isinstance(args[0], tuple) else args[0]
    if isinstance(host, bytes):
        host = host.decode("latin-1")
    if own.local(host) or _literal(str(host)) or covered():
        return
    uncovered.refuse("host name", str(host))


def _literal(host: str) -> bool:
    """Whether it is an address already: nobody is asked then."""
    import socket

    bare = host.partition("%")[0]
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, bare)
        except (OSError, ValueError):
            continue
        return True
    return False


def _shown(address: Any) -> str:
    if isinstance(address, tuple) and len(address) >= 2:
        host = str(address[0])
        return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
    if isinstance(address, (str, bytes)):
        return os.fsdecode(address).replace("\0", "@")
    return repr(address)


# Processes.


def _process(args: tuple[Any, ...]) -> None:
    if covered() or _host_fact():
        return
    command = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else str(args[0])
    uncovered.refuse("process", command if len(command) <= _SHOWN else f"{command[:_SHOWN]}…")


def _spawn(args: tuple[Any, ...]) -> None:
    _process(args[1:])


def _host_fact() -> bool:
    """Whether a module of Python's own asks the machine what it is (every SDK that tells its platform runs
    `uname -p`): no answer that a replay elsewhere could take for the program's data."""
    frame = sys._getframe(3)
    while frame is not None and frame.f_globals.get("__name__") in ("subprocess", "os", __name__):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_globals.get("__name__") in _ASKS_THE_HOST


WATCHED: dict[str, Reaction] = {
    "socket.bind": _bind,
    "socket.connect": _connect,
    "socket.sendto": _send,
    "socket.sendmsg": _send,
    "socket.getaddrinfo": _lookup,
    "socket.gethostbyname": _lookup,
    "socket.gethostbyaddr": _lookup,
    "socket.getnameinfo": _lookup,
    "subprocess.Popen": _process,
    "os.system": _process,
    "os.posix_spawn": _process,
    "os.spawn": _spawn,
    "os.startfile": _process,
    "ctypes.dlopen": symbols.library,
    "ctypes.dlsym": symbols.function,
}

# What must not happen any more once a replay is over.
LIVE = frozenset(WATCHED) - {"socket.bind", "ctypes.dlopen", "ctypes.dlsym"}
