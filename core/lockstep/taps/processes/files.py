"""Output that a process writes into a file of the program's: taken from the file when the process is over, and
written into it in a replay."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from lockstep.session import difference

# Before the taps.
_open = os.open
_close = os.close
_write = os.write

_PIECE = 1 << 20  # bytes of a part
MOST = 64 << 20  # bytes of a file that are kept


class Written:
    """What a process writes into one file from now on. `channel`: how its parts are called."""

    def __init__(self, fd: int, channel: str) -> None:
        self.channel = channel
        self._fd = os.dup(fd)
        self._start = os.lseek(self._fd, 0, os.SEEK_CUR)
        import fcntl

        if fcntl.fcntl(self._fd, fcntl.F_GETFL) & os.O_APPEND:
            self._start = os.fstat(self._fd).st_size

    def take(self) -> Iterator[bytes]:
        """The bytes that it wrote. Raises OSError where they can't be read or are too many."""
        try:
            yield from self._pieces()
        finally:
            _close(self._fd)

    def put(self, data: bytes, followed: bool, differs: Callable[[str, str, str], Any]) -> None:
        """Writes the recorded bytes into the file; those of a followed process are there, and are compared."""
        try:
            if not followed:
                view = memoryview(data)
                while view:
                    view = view[_write(self._fd, view) :]
                return
            now = b"".join(self._pieces())
        finally:
            _close(self._fd)
        if now != data:
            differs("another output into a file than recorded", difference.shown(data), difference.shown(now))

    def _pieces(self) -> Iterator[bytes]:
        size = os.fstat(self._fd).st_size - self._start
        if size > MOST:
            raise OSError(f"{size >> 20} MB of output in a file: {MOST >> 20} are kept")
        # Anew, since the program's descriptor need not be readable.
        reading = _open(f"/proc/self/fd/{self._fd}", os.O_RDONLY)
        try:
            at = self._start
            while piece := os.pread(reading, _PIECE, at):
                at += len(piece)
                yield piece
        finally:
            _close(reading)


def of(streams: dict[str, Any]) -> list[Written]:
    """The files among a process's streams, each once. `streams`: what stdout and stderr were given as."""
    found: list[Written] = []
    seen: set[tuple[int, int]] = set()
    for name, stream in streams.items():
        try:
            fd = stream if isinstance(stream, int) else stream.fileno()
            about = os.fstat(fd)
        except (OSError, ValueError, AttributeError):
            continue
        if fd <= 2 or not stat.S_ISREG(about.st_mode) or (about.st_dev, about.st_ino) in seen:
            continue
        seen.add((about.st_dev, about.st_ino))
        found.append(Written(fd, f"file {name}"))
    return found
