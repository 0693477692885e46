"""A small HTTP/1.1 server on loopback, that can also be late, slow and break off.

Own sockets and threads, not `http.server`: it starts in about a millisecond, costs tens of
microseconds a request, and decides over every byte. All of its work is marked as not the
program's, so that a session in the same process neither records it nor waits for it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import BinaryIO

import msgspec

from lockstep.session import lanes


class Raw(msgspec.Struct, frozen=True):
    """A request off the wire, its transfer coding undone."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Reply(msgspec.Struct, frozen=True):
    """What goes out. Bytes have a length, an iterable is sent chunk by chunk. For the times and `cut`
    see `Answer`."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | Iterable[bytes] = b""
    delay: float = 0.0
    lag: float = 0.0
    gap: float = 0.0
    cut: int | None = None


class Server:
    """Serves `respond` on a port of its own, a thread to each connection.

    `respond` is called in the connection's thread. What it raises is the test's mistake: the client
    gets a 500 and the connection's end, and `errors` keeps it.
    """

    def __init__(self, respond: Callable[[Raw], Reply], port: int = 0) -> None:
        self._respond = respond
        self._port = port
        self._accepting: threading.Thread | None = None
        self._conversations: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self.connections = 0
        self.errors: list[Exception] = []

    def start(self) -> int:
        """Listens and returns the port."""
        return lanes.ours(self._start)()

    def stop(self) -> None:
        """Ends every connection, also one in the middle of an answer, and frees the port."""
        lanes.ours(self._stop)()

    def _start(self) -> int:
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        # A pipe to wake the accepting thread: closing a listener under `accept` wakes it on Linux only.
        self._woken, self._waker = socket.socketpair()
        listener = socket.create_server(("127.0.0.1", self._port), backlog=512)
        self._accepting = _spawn(self._accept, listener)
        return int(listener.getsockname()[1])

    def _stop(self) -> None:
        if self._accepting is None:
            return
        self._stopping.set()
        self._waker.close()
        self._accepting.join()
        self._accepting = None
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._conversations:
            thread.join()

    def _accept(self, listener: socket.socket) -> None:
        with listener, self._woken:
            while True:
                ready, _, _ = select.select([listener, self._woken], [], [])
                if self._woken in ready:
                    return
                try:
                    connection, _ = listener.accept()
                except ConnectionError:  # the client was gone before it was accepted
                    continue
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._open.add(connection)
                    self.connections += 1
                self._conversations = [thread for thread in self._conversations if thread.is_alive()]
                self._conversations.append(_spawn(self._converse, connection))

    def _converse(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while (raw := _read(stream, connection)) is not None and self._answer(raw, connection):
                    pass
        except OSError:
            return  # the client went away: its own decision, and what some tests are about
        finally:
            with self._lock:
                self._open.discard(connection)

    def _answer(self, raw: Raw, connection: socket.socket) -> bool:
        try:
            reply = self._respond(raw)
        except Exception as error:
            self.errors.append(error)
            reply = Reply(500, (("content-type", "text/plain"),), f"the test's script failed: {error!r}".encode())
        keep = _header(raw, "connection").lower() != "close"
        if self._send(raw, reply, connection, keep) and keep:
            return True
        # Both directions at once, so that the client sees the end now, also with unread input here.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        return False

    def _send(self, raw: Raw, reply: Reply, connection: socket.socket, keep: bool) -> bool:
        """Whether the connection can go on: the reply is out as a whole."""
        if self._pause(reply.delay) or reply.cut == -1:
            return False
        plain = isinstance(reply.body, bytes)
        empty = raw.method == "HEAD" or reply.status in (204, 304)
        head = [f"HTTP/1.1 {reply.status} {_phrase(reply.status)}"]
        head += [f"{name}: {value}" for name, value in reply.headers]
        if isinstance(reply.body, bytes):
            if reply.status != 204:
                head.append(f"content-length: {len(reply.body)}")
        else:
            head.append("transfer-encoding: chunked")
        if not keep:
            head.append("connection: close")
        start = "\r\n".join([*head, "", ""]).encode("latin-1")
        if empty:
            connection.sendall(start)
            return True
        parts = [reply.body] if isinstance(reply.body, bytes) else reply.body
        if plain and not reply.lag and reply.cut is None:
            connection.sendall(start + b"".join(parts))
            return True
        connection.sendall(start)
        for number, part in enumerate(parts):
            if reply.cut == number or self._pause(reply.gap if number else reply.lag):
                return False
            connection.sendall(part if plain else b"%x\r\n%b\r\n" % (len(part), part))
        if not plain:
            connection.sendall(b"0\r\n\r\n")
        return True

    def _pause(self, seconds: float) -> bool:
        """Waits, and says whether the server is stopping."""
        return self._stopping.wait(seconds) if seconds > 0 else self._stopping.is_set()


def _spawn(function: Callable[[socket.socket], None], connection: socket.socket) -> threading.Thread:
    thread = threading.Thread(target=lanes.ours(function), args=(connection,), name="lockstep-provider", daemon=True)
    thread.start()
    return thread


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _header(raw: Raw, name: str) -> str:
    return next((value for key, value in raw.headers if key.lower() == name), "")


def _read(stream: BinaryIO, connection: socket.socket) -> Raw | None:
    """The next request of a connection, None at its end."""
    line = stream.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = tuple(_headers(stream))
    raw = Raw(method, target, headers, b"")
    if _header(raw, "expect").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if _header(raw, "transfer-encoding").lower() == "chunked":
        body = b"".join(_chunks(stream))
    else:
        length = int(_header(raw, "content-length") or 0)
        body = stream.read(length)
        if len(body) < length:
            return None
    return Raw(method, target, headers, body)


def _headers(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    while line := stream.readline().rstrip(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(":")
        yield name, value.strip()


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while True:
        size = int(stream.readline().split(b";")[0], 16)
        if size == 0:
            for _ in _headers(stream):  # trailers
                pass
            return
        chunk = stream.read(size)
        if len(chunk) < size:
            raise ConnectionResetError("the client left in the middle of a chunk")
        stream.readline()
        yield chunk
