"""The program's ends of the pipes to a process: reads and writes, by file object or by descriptor.

A file object stays the one that `subprocess` made: its lowest layer, a `FileIO`, gets methods of its own (Python's
buffers call them by name). They hold that file weakly, since a pipe that is dropped closes at once, which its
process can tell. A buffer that the garbage collector finds flushes when its file has no weak references any more.
"""

from __future__ import annotations

import errno
import io
import os
import select
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lockstep.log.model import Value
from lockstep.session import difference, exceptions
from lockstep.taps.processes.process import Live, Served

_FileIO: Any = io.FileIO
# Before the taps.
_read = os.read
_write = os.write
_poll = select.poll

_LOOK = 20  # milliseconds between two looks whether a followed process takes more
_PIECE = 1 << 20  # bytes of a part: a program may read everything at once
_UNREAD, _UNWRITTEN = "unread", "unwritten"


class Pipe:
    """One of them. `channel`: stdin, stdout or stderr; `file` and `ino`: whether a descriptor is still this one."""

    def __init__(self, process: Any, channel: str, file: Any) -> None:
        self.process = process
        self.channel = channel
        self.fd: int = file.fileno()
        self.ino = os.fstat(self.fd).st_ino
        self.file = weakref.ref(file)

    @property
    def closed(self) -> bool:
        """Whether the program has closed it, or dropped it."""
        file = self.file()
        return file is None or bool(file.closed)

    def open(self) -> bool:
        """Whether its descriptor is this pipe's, and the session that it belongs to is on."""
        file = self.file()
        return file is not None and not file.closed and self.process.on() and os.fstat(self.fd).st_ino == self.ino


class LivePipe(Pipe):
    """One that is recorded."""

    process: Live

    def read(self, read: Callable[[], bytes | None]) -> bytes | None:
        """One read of the descriptor."""
        got = self._noting(_UNREAD, read)
        if got is not None:
            self.process.part(self.channel, got)
        return got

    def read_into(self, read: Callable[[], int | None], buffer: Any) -> int | None:
        got = self._noting(_UNREAD, read)
        if got is not None:
            self.process.part(self.channel, bytes(memoryview(buffer).cast("B")[:got]))
        return got

    def read_all(self, read: Callable[[], bytes | None]) -> bytes | None:
        got = self._noting(_UNREAD, read)
        if got is None:
            return None
        view = memoryview(got)
        for at in range(0, len(view), _PIECE):
            self.process.part(self.channel, bytes(view[at : at + _PIECE]))
        self.process.part(self.channel, b"")
        return got

    def write(self, write: Callable[[], int | None], data: Any) -> int | None:
        number = self.process.number(_UNWRITTEN)
        try:
            size = write()
        except BaseException as error:
            self.process.cause(_UNWRITTEN, number, exceptions.encode(error))
            raise
        view = memoryview(data).cast("B")
        if size != len(view):
            self.process.cause(_UNWRITTEN, number, size)
        if size:
            self.process.fed(bytes(view[:size]))
        return size

    def _noting[T](self, what: str, operation: Callable[[], T]) -> T:
        # Nothing to read, on a descriptor that does not block, or an error: a signal handler's, Ctrl-C.
        process = self.process
        number = process.number(f"{what} {self.channel} of")
        try:
            got = operation()
        except BaseException as error:
            process.cause(what, f"{self.channel} {number}", exceptions.encode(error))
            raise
        if got is None:
            process.cause(what, f"{self.channel} {number}")
        return got


class ServedPipe(Pipe):
    """One that is recorded, and handed out again."""

    process: Served

    def __init__(self, process: Any, channel: str, file: Any) -> None:
        super().__init__(process, channel, file)
        self._waiting = bytearray()  # for a followed process to take
        self._left = b""  # of a piece that was larger than what is asked for now

    def read(self, size: int) -> bytes | None:
        if not self._left:
            if self._unread():
                return None
            self._left = self._next()
        data, self._left = self._left[:size], self._left[size:]
        return data

    def read_into(self, buffer: Any) -> int | None:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        if data is None:
            return None
        view[: len(data)] = data
        return len(data)

    def read_all(self) -> bytes | None:
        left, self._left = self._left, b""
        if self._unread():
            return left or None
        pieces = [left]
        while piece := self._next():
            pieces.append(piece)
        return b"".join(pieces)

    def write(self, data: Any) -> int | None:
        process = self.process
        found, body = process.cause(_UNWRITTEN, process.number(_UNWRITTEN))
        view = memoryview(data).cast("B")
        if isinstance(body, dict):
            raise exceptions.revive(body, process.call)
        size = len(view) if not found else body if isinstance(body, int) else None
        if size:
            process.fed(bytes(view[:size]))
            if process.followed:
                self._waiting += view[:size]
                self.pour()
        return size

    def pour(self) -> None:
        """Gives a followed process what it takes without keeping anybody waiting. It is served what it reads from
        `sys.stdin`, so that most take nothing; who reads descriptor 0 by other means gets it here."""
        os.set_blocking(self.fd, False)
        with suppress(OSError):
            while self._waiting:
                del self._waiting[: _write(self.fd, self._waiting[:_PIECE])]

    def failing(self) -> int | None:
        """The place where the next write fails, None if it does not."""
        return self.process.coming(_UNWRITTEN)

    def _unread(self) -> bool:
        process = self.process
        number = process.number(f"{_UNREAD} {self.channel} of")
        found, body = process.cause(_UNREAD, f"{self.channel} {number}")
        if found and body is not None:
            raise exceptions.revive(body, process.call)
        return found

    def _next(self) -> bytes:
        data = self.process.next(self.channel)
        if self.process.followed:
            self._compare(data)
        return data

    def _compare(self, recorded: bytes) -> None:
        """Takes as much from the process itself as was recorded: the same, in whatever pieces."""
        now = b""
        wanted = max(1, len(recorded))
        with self.process.session.standstill.blocking():
            while len(now) < wanted and (piece := self._real(wanted - len(now))):
                now += piece
        if now != recorded:
            self.process.differs(
                f"another {self.channel} than recorded", difference.shown(recorded), difference.shown(now)
            )

    def _real(self, size: int) -> bytes:
        stdin = self.process.stdin
        waiting = _poll()
        waiting.register(self.fd, select.POLLIN)
        while not waiting.poll(_LOOK) or self.process.session.stopped:
            if self.process.session.stopped:
                self.process.session.raise_latched()
            if stdin is not None and not stdin.closed:
                stdin.pour()
        return _read(self.fd, size)


def tap(file: Any, pipe: Any) -> None:
    """Puts the seams into a pipe's file object."""
    raw: Any = file
    while not isinstance(raw, _FileIO):
        raw = raw.buffer if hasattr(raw, "buffer") else raw.raw
    ref = weakref.ref(raw)
    if pipe.channel == "stdin":
        raw.write = _writing(ref, pipe)
    else:
        raw.readinto, raw.readall, raw.read = _reading_into(ref, pipe), _reading_all(ref, pipe), _reading(ref, pipe)


def _on(pipe: Pipe) -> bool:
    return bool(pipe.process.on())


def _reading_into(ref: Any, pipe: Any) -> Any:
    def readinto(buffer: Any, /) -> Any:
        """Same as RawIOBase.readinto()."""
        file = ref()
        if not _on(pipe) or file.closed:
            return _FileIO.readinto(file, buffer)
        if pipe.process.live:
            return pipe.read_into(lambda: _FileIO.readinto(file, buffer), buffer)
        return pipe.read_into(buffer)

    return readinto


def _reading(ref: Any, pipe: Any) -> Any:
    def read(size: int | None = -1, /) -> Any:
        """Read at most size bytes, returned as bytes."""
        file = ref()
        if size is None or size < 0:
            return file.readall()
        if not _on(pipe) or file.closed:
            return _FileIO.read(file, size)
        if pipe.process.live:
            return pipe.read(lambda: _FileIO.read(file, size))
        return pipe.read(size)

    return read


def _reading_all(ref: Any, pipe: Any) -> Any:
    def readall() -> Any:
        """Read all data from the file, returned as bytes."""
        file = ref()
        if not _on(pipe) or file.closed:
            return _FileIO.readall(file)
        if pipe.process.live:
            return pipe.read_all(lambda: _FileIO.readall(file))
        return pipe.read_all()

    return readall


def _writing(ref: Any, pipe: Any) -> Any:
    put = _write  # also at the interpreter's end, when no global is left

    def write(data: Any, /) -> Any:
        """Write buffer b to file, return number of bytes written."""
        file = ref()
        if file is None:
            return put(pipe.fd, data)
        if not _on(pipe) or file.closed:
            return _FileIO.write(file, data)
        if pipe.process.live:
            return pipe.write(lambda: _FileIO.write(file, data), data)
        return pipe.write(data)

    return write


def dry(got: Value) -> Any:
    """What `os.read` and `os.write` do where a file object says that there is nothing yet."""
    if got is None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return got
