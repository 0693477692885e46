"""What is in a file: read, compared and, where a replay needs other bytes than are there, put in its place."""

from __future__ import annotations

import os
import stat
from hashlib import blake2b
from typing import Any

from lockstep.log import untapped

LIMIT = 4 << 20  # bytes of a file that are stored; of a bigger one its size and hash are
_HASHED = 64 << 20  # bytes of a bigger file that are hashed: its beginning and its end, half of it each
_CHUNK = 1 << 20
# A file that was written within the tick of the system's clock may be written again unseen.
_SETTLED = 50_000_000  # ns

_fstat = os.fstat
_open = os.open
_close = os.close

type Signature = tuple[int, int, int, int, int]


def signature(found: os.stat_result) -> Signature:
    """What changes when a file is written."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def settled(found: os.stat_result) -> bool:
    """Whether the signature tells the content for good."""
    return untapped.time_ns() - found.st_ctime_ns > _SETTLED


def regular(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode)


def read(fd: int, size: int) -> bytes:
    """The bytes of an open file, without moving its position."""
    pieces = []
    at = 0
    while piece := os.pread(fd, max(_CHUNK, size - at), at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=20).digest()


def digest_of_big(fd: int, size: int) -> bytes:
    """The identity of a file too big to store."""
    found = blake2b(str(size).encode(), digest_size=20)
    for first, last in ((0, min(size, _HASHED // 2)), (max(_HASHED // 2, size - _HASHED // 2), size)):
        at = first
        while at < last and (piece := os.pread(fd, min(_CHUNK, last - at), at)):
            found.update(piece)
            at += len(piece)
    return found.digest()


def present(path: Any) -> int | None:
    """A descriptor of the file as it is now; None where it cannot be read."""
    try:
        return _open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None


def standing_in(data: bytes) -> int:
    """A descriptor of a nameless file with these bytes, at its beginning."""
    memory = getattr(os, "memfd_create", None)
    if memory is not None:
        fd: int = memory("lockstep", os.MFD_CLOEXEC)
    else:
        import tempfile  # 8 ms, where memory will not do

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        _close(fd)
        raise
    return fd
