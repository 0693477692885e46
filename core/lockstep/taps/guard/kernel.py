"""The kernel's own tables of sockets: whose is the other end of a connection, and what did nobody see open.

Linux only; elsewhere nothing is known, and nothing is proven.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

LISTENING = 0x0A
UNCONNECTED = 0x07  # a datagram socket that is only bound

# Taps replace those of `os`.
_system: Any = sys.modules.get("posix") or os
_open, _read, _close = _system.open, _system.read, _system.close
_listdir, _readlink = _system.listdir, _system.readlink


class Entry(msgspec.Struct, frozen=True):
    """A row of /proc/net/tcp, tcp6, udp or udp6. Addresses as the kernel prints them, in hexadecimal."""

    local: str
    local_port: int
    remote: str
    remote_port: int
    state: int
    inode: int


def internet(protocol: str) -> Iterator[Entry]:
    """All sockets of this network, `protocol` being tcp or udp, for both versions of IP."""
    for version in ("", "6"):
        for line in _lines(f"/proc/self/net/{protocol}{version}"):
            fields = line.split()
            local, _, port = fields[1].partition(":")
            remote, _, far = fields[2].partition(":")
            yield Entry(local, int(port, 16), remote, int(far, 16), int(fields[3], 16), int(fields[9]))


def unix(path: str) -> Iterator[int]:
    """The inodes of the local sockets that are bound to this path; `@name` for an abstract one."""
    for line in _lines("/proc/self/net/unix"):
        fields = line.split(" ", 7)
        if len(fields) == 8 and fields[7].strip() == path:
            yield int(fields[6])


def owned(inodes: Collection[int], processes: Iterable[int]) -> bool:
    """Whether one of these processes has one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return any(not wanted.isdisjoint(_links(process).values()) for process in processes) if wanted else False


def own_sockets() -> dict[int, int]:
    """The sockets that this process has open: their inodes, by descriptor."""
    return {fd: int(link[8:-1]) for fd, link in _links(os.getpid()).items() if link.startswith("socket:[")}


def shown(address: str, port: int) -> str:
    """`10.0.0.7:443`, from the kernel's hexadecimal."""
    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
    packed = b"".join(words)
    if len(packed) == 16 and packed[:12] == b"\0" * 10 + b"\xff\xff":
        packed = packed[12:]
    if len(packed) == 4:
        return f"{'.'.join(map(str, packed))}:{port}"
    groups = ":".join(f"{packed[at] << 8 | packed[at + 1]:x}" for at in range(0, 16, 2))
    return f"[{groups}]:{port}"


def _links(process: int) -> dict[int, str]:
    found = {}
    try:
        names = _listdir(f"/proc/{process}/fd")
    except OSError:
        return {}  # gone, or not ours to look at
    for name in names:
        try:
            found[int(name)] = _readlink(f"/proc/{process}/fd/{name}")
        except OSError:
            continue  # closed meanwhile
    return found


def _lines(path: str) -> list[str]:
    try:
        fd = _open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []  # another system, or no such protocol here
    try:
        pieces = []
        while piece := _read(fd, 65536):
            pieces.append(piece)
    finally:
        _close(fd)
    return b"".join(pieces).decode("utf-8", "replace").splitlines()[1:]
