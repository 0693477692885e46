"""What stands for a socket, and around one, at the http.client seam.

Recording: `Tee` sits between the client's buffered reader and its socket and records each `recv` as it
passes. Replay: `FakeSocket` takes the request, and `Play` gives the recorded segments to the client's
own reader and parser.
"""

from __future__ import annotations

import io
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from lockstep.errors import Code
from lockstep.log.model import Status, Value
from lockstep.taps.http import streams
from lockstep.taps.http.wire import Body, end_of_head

if TYPE_CHECKING:
    from lockstep.session.surface import Session

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Tee(io.RawIOBase):
    """A live socket's reading end. Segments go to the call; those of the head are kept until it is parsed.

    What is recorded is what came over the wire. All that the client makes of it (chunks, parse errors, a
    missing answer) it makes again in a replay.

    early  what of the answer was read before
    """

    def __init__(self, inner: Any, call: Any, early: bytes = b"") -> None:
        self._inner = inner
        self._early = early
        self._call = call
        self._head: list[Value] | None = []
        self._end: tuple[Status, BaseException | None] | None = None
        self._body: Body | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._early:
            segment, self._early = self._early[: len(buffer)], self._early[len(buffer) :]
            buffer[: len(segment)] = segment
            self._passed(segment)
            return len(segment)
        try:
            with self._call.inside():
                size: int | None = self._inner.readinto(buffer)
        except BaseException as error:
            self._ended(Status.ERROR, error)
            raise
        if size:
            self._passed(bytes(memoryview(buffer)[:size]))
        elif size == 0:
            self._ended(Status.OK)
        return size

    def parsed(self, head: dict[str, Value], length: int | str | None) -> None:
        """The client has read the head: it goes to the log with what came along with it."""
        raw, self._head = self._head or [], None
        self._call.part({**head, "length": length, "raw": raw})
        data = b"".join(segment for segment in raw if isinstance(segment, bytes))
        self._body = Body(length)
        self._follow(data[max(0, end_of_head(data)) :])
        if self._end is not None:
            self._ended(*self._end)

    def unparsed(self) -> None:
        """The client made nothing of what came, and has raised."""
        raw, self._head = self._head, None
        if raw:
            self._call.part({"raw": raw})
        if self._end is not None:
            self._ended(*self._end)

    def _passed(self, segment: bytes) -> None:
        if self._head is not None:
            self._head.append(segment)
        else:
            self._call.part(segment)
            self._follow(segment)

    def _follow(self, data: bytes) -> None:
        # On a kept-alive connection nobody reads an end of file: the last byte is the end.
        if self._body is not None and self._body.feed(data):
            self._call.end(Status.OK)

    def _ended(self, status: Status, error: BaseException | None = None) -> None:
        if self._head is not None:
            self._end = (status, error)
        else:
            self._call.end(status, error)

    def close(self) -> None:
        if not self.closed:
            try:
                self._inner.close()
            finally:
                super().close()
                if self._head is not None:
                    self.unparsed()
                self._call.end(Status.CLOSED)

    def fileno(self) -> int:
        fd: int = self._inner.fileno()
        return fd

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)  # `_sock`, which some dig out to set a timeout


class Play(io.RawIOBase):
    """The reading end in a replay: one recorded segment for one `recv`."""

    def __init__(self, call: Any, accepted: str, descriptor: int, failing: Callable[[Any], None]) -> None:
        """`failing` raises what kept a held request from being sent."""
        self._call = call
        self._accepted = accepted
        self._failing = failing
        self._descriptor = descriptor
        self._waiting: list[bytes] = []
        self._body: Body | None = None
        self._whole = False  # the last byte has been handed out
        self._eof = False
        self._error: BaseException | None = None

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: Any) -> int:
        while not self._waiting:
            if self._eof:
                return 0
            self._take()
        segment = self._waiting[0]
        size = min(len(segment), len(buffer))
        buffer[:size] = segment[:size]
        if size == len(segment):
            del self._waiting[0]
        else:
            self._waiting[0] = segment[size:]
        return size

    def _take(self) -> None:
        if isinstance(self._error, TimeoutError):
            # What socket files say once a read has timed out.
            raise OSError("cannot read from timed out object")
        piece = self._call.take()
        if piece.status is Status.OK:
            if self._whole:
                streams.raise_end(self._call, piece)  # beyond the last byte of a connection that stayed open
            self._eof = True
            return
        if piece.status is not None:
            try:
                streams.raise_end(self._call, piece)
            except Exception as error:
                self._error = error
                raise
        if isinstance(piece.value, bytes):
            self._waiting.append(piece.value)
            self._follow(piece.value)
        elif "connection" in piece.value:
            self._failing(piece)
        else:
            self._head(piece.value)

    def _head(self, head: dict[str, Any]) -> None:
        session: Session = self._call.session
        if head.get("switched"):
            session.diverge(Code.NOT_COVERED, "what followed the protocol switch was not recorded", call=self._call)
        if "headers" in head:
            streams.check_encoding(self._call, head, self._accepted)
        self._waiting.extend(head["raw"])
        if "length" in head:
            self._body = Body(head["length"])
            data = b"".join(head["raw"])
            self._follow(data[max(0, end_of_head(data)) :])

    def _follow(self, data: bytes) -> None:
        # The end was recorded with the last byte, so it is taken with it.
        if self._body is not None and not self._whole and self._body.feed(data):
            self._whole = True
            self._call.take()

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._call.end(Status.CLOSED)


class _Descriptors:
    """Two real descriptors for all fakes of a process: clients poll idle connections. One never has
    anything to read, one always has."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.quiet, self._writer = os.pipe()
        self.ready, writer = os.pipe()
        os.write(writer, b"x")
        os.close(writer)


_descriptors: _Descriptors | None = None
fakes: weakref.WeakSet[FakeSocket] = weakref.WeakSet()


def _fds() -> _Descriptors:
    global _descriptors
    if _descriptors is None:
        _descriptors = _Descriptors()
    return _descriptors


class FakeSocket:
    """Stands in `connection.sock` of a served connection, and of one whose request is held.

    exchange  the one under way
    kept      the real socket that it stands in front of, if any
    flags     of the connection, as they were before
    eager     whether urllib3 connects before it sends
    interim   whether the client has waited for `100 Continue`
    """

    def __init__(self, connection: Any, flags: dict[str, Any], eager: bool) -> None:
        self.connection: weakref.ref[Any] = weakref.ref(connection)
        self.exchange: Any = None
        self.kept: Any = None
        self.flags = flags
        self.eager = eager
        self.interim = False
        self._timeout = getattr(connection, "timeout", None)
        self._set: dict[tuple[Any, ...], tuple[str, tuple[Any, ...]]] = {}
        fakes.add(self)

    def give_back(self) -> None:
        """Puts the real socket back into its place; None where there was none, so that its client connects."""
        connection = self.connection()
        if connection is not None and connection.sock is self:
            connection.sock, self.kept = self.kept, None
            vars(connection).update(self.flags)

    def let_go(self) -> None:
        """Closes the real socket: the record answers."""
        kept, self.kept = self.kept, None
        if kept is not None:
            kept.close()

    def apply(self, sock: Any) -> None:
        """Sets on a real socket what was set on this one."""
        for name, args in self._set.values():
            getattr(sock, name)(*args)

    # What http.client and its users ask of a socket.

    def sendall(self, data: Any, flags: int = 0) -> None:
        if self.exchange is None:
            self._unknown("bytes are sent beneath http.client")
        view = memoryview(data)  # TypeError for an iterable, as a socket says it
        self.exchange.took(view.tobytes())

    def makefile(self, mode: str = "r", buffering: int | None = None, **_: Any) -> Any:
        if self._expecting() and buffering == 0:
            self.interim = True
            return io.BytesIO(_CONTINUE)  # botocore looks for the interim answer by itself
        if self.exchange is None:
            self._unknown("an answer is read beneath http.client")
        return io.BufferedReader(self.exchange.reader(_fds().quiet))

    def fileno(self) -> int:
        return _fds().ready if self._expecting() else _fds().quiet

    def settimeout(self, value: float | None) -> None:
        self._timeout = value
        self._set[("timeout",)] = "settimeout", (value,)

    def gettimeout(self) -> float | None:
        timeout: float | None = self._timeout
        return timeout

    def setsockopt(self, *args: Any) -> None:
        self._set[args[:2]] = "setsockopt", args

    def setblocking(self, flag: bool) -> None:
        self._set[("timeout",)] = "setblocking", (flag,)

    def shutdown(self, how: int = 0) -> None: ...

    def close(self) -> None:
        self.let_go()

    def _expecting(self) -> bool:
        # Else botocore waits a second for `100 Continue` before each upload.
        return self.exchange is not None and bool(self.exchange.expects_continue())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._unknown(f"the connection is used beneath HTTP (.{name})")

    def _unknown(self, what: str) -> NoReturn:
        from lockstep.session import current

        session = current.session
        if session is None:
            raise OSError("a connection of a replay that has ended")
        session.diverge(Code.UNSERVABLE, what, kind="http")
