"""A small site for what goes wrong, hangs, breaks off or comes late; it knows when it was left."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BLANK = b"<!doctype html><title>edge</title>"
_TALKING = b"""<!doctype html><script>
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/socket");
    socket.onopen = () => socket.send("server");
</script>"""
_NESTED = b"<!doctype html><iframe src=/frame?one></iframe><iframe src=/frame?two></iframe>"


class EdgeSite(ThreadingHTTPServer):
    """`url` and `other` are two sites to a browser. `hits`: methods and paths, in order; `go`: what waits is let on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hits: list[str] = []
        self.go = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.other = f"http://localhost:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that has left is no error here."""


@contextmanager
def edge_site() -> Iterator[EdgeSite]:
    with EdgeSite() as site:
        threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield site
        finally:
            site.go.set()
            site.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EdgeSite

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.hits.append(f"{self.command} {self.path}")
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        answer = _PAGES.get(self.path.partition("?")[0])
        if answer is not None:
            answer(self)
        else:
            self.answer(f"{self.command} {self.path} {self.body.decode('latin-1')}".encode())

    do_POST = do_GET  # noqa: N815 - as http.server calls it

    def answer(self, body: bytes, kind: str = "text/plain", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def pieces(self, kind: str, *pieces: bytes, whole: bool = True) -> None:
        """Each but the first waits for `go`."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
            if number:
                self.server.go.wait()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def late(self) -> None:
        self.server.go.wait()
        self.answer(b"late")

    def socket(self) -> None:
        """Answers one message with the same and its bytes doubled; closes as the message says: "page" does not."""
        key = base64.b64encode(hashlib.sha1(self.headers["sec-websocket-key"].encode() + _GUID).digest()).decode()
        self.close_connection = True
        self.send_response(101)
        for name, value in {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": key}.items():
            self.send_header(name, value)
        self.end_headers()
        said = self.frame()
        if said == b"drop":
            return
        self.wfile.write(bytes([0x81, len(said)]) + said + bytes([0x82, 2 * len(said)]) + said * 2)
        if said != b"page":
            self.wfile.write(bytes([0x88, 2 + len(said)]) + (4000).to_bytes(2, "big") + said)
            self.frame()
        else:
            closing = self.frame()
            self.wfile.write(bytes([0x88, len(closing)]) + closing)

    def frame(self) -> bytes:
        size = self.rfile.read(2)[1] & 127
        mask, masked = self.rfile.read(4), self.rfile.read(size)
        return bytes(byte ^ mask[n % 4] for n, byte in enumerate(masked))

    def reset(self) -> None:
        self.close_connection = True


_PAGES: dict[str, Callable[[_Handler], None]] = {
    "/": lambda self: self.answer(_BLANK, "text/html"),
    "/frame": lambda self: self.answer(_BLANK + b"<script>fetch('/framed' + location.search)</script>", "text/html"),
    "/nested": lambda self: self.answer(_NESTED, "text/html"),
    "/talking": lambda self: self.answer(_TALKING, "text/html"),
    "/late": _Handler.late,
    "/refused": lambda self: self.answer(b"no", status=403),
    "/empty": _Handler.reset,
    "/moved": lambda self: self.answer(b"", status=302, location="/set", set_cookie="hop=1; HttpOnly"),
    "/set": lambda self: self.answer(b"set", set_cookie="there=2"),
    "/pieces": lambda self: self.pieces("text/plain", b"one ", b"two ", b"three"),
    "/broken": lambda self: self.pieces("text/plain", b"one ", b"two", whole=False),
    "/events": lambda self: self.pieces("text/event-stream", b"data: one\n\n", b"data: two\n\n"),
    "/socket": _Handler.socket,
    "/kept": lambda self: self.answer(b"kept", cache_control="max-age=600"),
}
