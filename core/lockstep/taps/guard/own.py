"""The program's traffic with itself: its own server and its own client, in this process or a followed child.

That is code of the program at both ends, which a replay runs again, so it is no source. It has to be
proven, though: by the sockets that were seen to be bound and connected here, or by the kernel's tables,
which say whose a socket is. What cannot be proven counts as outside.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from lockstep.taps.guard import kernel

type Address = Any

family: Callable[[], Iterable[int]] = tuple
"""The processes of this run, beside this one, that are recorded and replayed too. Set by the launcher."""

_bound: weakref.WeakSet[Any] = weakref.WeakSet()
_dialled: weakref.WeakSet[Any] = weakref.WeakSet()
seen: set[int] = set()
"""Inodes of the sockets that Python code connected: what else is connected at the end, nobody saw."""

_apart: set[tuple[str, int]] = set()
"""Where connections of native clients lead whose work an adapter keeps in other runs, as the kernel says it."""

_WILDCARDS = ("0.0.0.0", "::", "")
_STREAM = 1  # socket.SOCK_STREAM, everywhere; importing socket takes 6 ms, and many programs never do


def began() -> None:
    """A session begins: what is connected already is not its business."""
    seen.clear()
    _apart.clear()
    seen.update(kernel.own_sockets().values())


def bound(sock: Any) -> None:
    """The program gives a socket an address."""
    _keep(_bound, sock)


def dialled(sock: Any) -> None:
    """A socket is about to be connected, by the program or in an effect."""
    _keep(_dialled, sock)
    noticed(sock)


def noticed(sock: Any) -> None:
    """What this socket is connected to is known."""
    try:
        seen.add(os.fstat(sock.fileno()).st_ino)
    except OSError:
        return


def _keep(sockets: weakref.WeakSet[Any], sock: Any) -> None:
    try:
        sockets.add(sock)
    except TypeError:
        return  # `_socket.socket` itself takes no weak references: the kernel has to prove it


def apart(port: int) -> None:
    """A native client whose work is recorded apart has just connected to this port of some machine: what is connected
    there is known, also when that client connects again."""
    mine = set(kernel.own_sockets().values()) - seen
    _apart.update((row.remote, port) for row in kernel.internet("tcp") if row.inode in mine and row.remote_port == port)


def reached(sock: Any, address: Address) -> bool:
    """Whether what listens at this address is the program's own."""
    if isinstance(address, (str, bytes)):
        return _unix(address)
    if not (isinstance(address, tuple) and len(address) >= 2 and local(address[0])):
        return False
    port, kind = address[1], _kind(sock)
    for listener in list(_bound):
        if _kind(listener) == kind and _listens(listener, kind) and _name(listener)[1:2] == (port,):
            return True
    wanted = kernel.LISTENING if kind == _STREAM else kernel.UNCONNECTED
    protocol = "tcp" if kind == _STREAM else "udp"
    found = {row.inode for row in kernel.internet(protocol) if row.local_port == port and row.state == wanted}
    return kernel.owned(found, _family())


def answered(sock: Any, peer: Address) -> bool:
    """Whether a connection that this socket has accepted comes from the program itself."""
    if not (isinstance(peer, tuple) and len(peer) >= 2 and local(peer[0])):
        return False
    if any(_name(client)[:2] == peer[:2] for client in list(_dialled)):
        return True
    port = _name(sock)[1:2]
    found = {
        row.inode for row in kernel.internet("tcp") if (row.local_port,) == peer[1:2] and (row.remote_port,) == port
    }
    return kernel.owned(found, _family())


def local(host: Any) -> bool:
    """Whether a host is this machine by its very name."""
    if isinstance(host, bytes):
        host = host.decode("latin-1")
    if not isinstance(host, str):
        return host is None
    return (
        host in _WILDCARDS or host == "::1" or host.lower() == "localhost" or host.removeprefix("::ffff:")[:4] == "127."
    )


def unseen() -> list[str]:
    """Where the connections go that are open now and that no Python code has opened."""
    mine = set(kernel.own_sockets().values())
    new = mine - seen
    if not new:
        return []
    rows = [
        row
        for protocol in ("tcp", "udp")
        for row in kernel.internet(protocol)
        if row.inode in new and row.remote_port and (row.remote, row.remote_port) not in _apart
    ]
    # What came in is told by who accepts it (`serving`), or before the session by nobody.
    ports = {row.local_port for row in kernel.internet("tcp") if row.state == kernel.LISTENING and row.inode in mine}
    return sorted({kernel.shown(row.remote, row.remote_port) for row in rows if row.local_port not in ports})


def _unix(path: str | bytes) -> bool:
    for listener in list(_bound):
        name = _name(listener)
        if name and name in (path, os.fsencode(path), os.fsdecode(path)):
            return True
    shown = os.fsdecode(path)
    inodes = set(kernel.unix("@" + shown[1:] if shown.startswith("\0") else shown))
    return kernel.owned(inodes, _family())


def _family() -> list[int]:
    return [os.getpid(), *family()]


def _kind(sock: Any) -> int:
    return int(sock.type) & 0xF


def _listens(sock: Any, kind: int) -> bool:
    import socket

    try:
        return kind != _STREAM or bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False  # closed


def _name(sock: Any) -> Any:
    try:
        return sock.getsockname()
    except OSError:
        return ()  # closed, or no address yet
