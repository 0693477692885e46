"""An HTTP server for odd answers, in a process of its own: every byte is decided here.

    python server.py        prints its ports (plain, TLS); an empty line on stdin is answered with the counts,
                            "release" lets `/held` go on

What a path answers depends on the request only, so that a bare run, a recording and a replay can be
compared field by field; `/flaky` fails every other time. It is a proxy too (CONNECT and absolute-form).
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import pathlib
import socket
import ssl
import struct
import sys
import threading
import time
from collections import Counter
from typing import Any

CERTIFICATE = pathlib.Path(__file__).with_name("loopback.pem")

counts: Counter[str] = Counter()
flaky: Counter[str] = Counter()
silent: set[Any] = set()  # connections that have said nothing yet
changed = threading.Condition()
released = threading.Event()


class Gone(Exception):
    """The conversation is over."""


class Conversation:
    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.file = sock.makefile("rb")

    def run(self) -> None:
        try:
            while self.one():
                pass
        except (OSError, Gone, ValueError):
            pass
        finally:
            for thing in (self.file, self.sock):
                with contextlib.suppress(OSError):
                    thing.close()

    def one(self) -> bool:
        if self.file.peek(1)[:1] == b"\x16":
            return False  # TLS on the plain port
        line = self.file.readline().decode("latin-1")
        if not line:
            return False
        counts["requests"] += 1
        spoke(self.sock)
        self.method, self.target, _ = line.split()
        self.headers: dict[str, str] = {}
        while (header := self.file.readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            self.headers[name.lower()] = value.strip()
        path, _, query = self.target.partition("?")
        self.query = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
        if self.method == "CONNECT":
            return self.tunnel()
        if "://" in path:
            self.reply({"proxied": path, "credentials": self.headers.get("proxy-authorization")})
            return True
        if path == "/early":
            self.send(b"HTTP/1.1 413 Too Much\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
            self.sock.shutdown(socket.SHUT_WR)
            time.sleep(0.3)
            raise Gone
        self.body = self.read_body()
        if path.startswith("/bucket/"):
            self.reply(self.body if self.method == "GET" else b"", 'ETag: "object"')
            return True
        answer = getattr(self, "at_" + path.strip("/").replace("-", "_"), self.at_echo)
        return answer() is not False

    def read_body(self) -> bytes:
        if self.headers.get("expect") == "100-continue" and "late" not in self.query:
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in self.headers.get("transfer-encoding", ""):
            parts = []
            while size := int(self.file.readline(), 16):
                parts.append(self.file.read(size))
                self.file.readline()
            self.file.readline()
            return b"".join(parts)
        return self.file.read(int(self.headers.get("content-length", 0)))

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def head(self, status: str, *headers: str) -> None:
        self.send("\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1"))

    def reply(self, body: Any, *headers: str, status: str = "200 OK") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = "\r\n".join([f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(data)}", "", ""]).encode("latin-1")
        self.send(head if self.method == "HEAD" else head + data)

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def chunked(self, *headers: str) -> None:
        self.head("200 OK", "Transfer-Encoding: chunked", *headers)

    # What the paths answer.

    def at_echo(self) -> None:
        # The order and case of headers are the client's; what differs from run to run is left out.
        kept = {k: v for k, v in self.headers.items() if k.startswith("x-") or k in ("cookie", "authorization")}
        digest = hashlib.sha256(self.body).hexdigest()
        multipart = self.headers.get("content-type", "").startswith("multipart/")
        self.reply(
            {
                "method": self.method,
                "target": self.target,
                "size": len(self.body),
                "body": self.body.decode("latin-1")[:200] if not multipart else "",
                "digest": digest if not multipart else "",
                "headers": kept,
            },
            "Content-Type: application/json",
            "X-Case: Kept As Sent",
        )

    def at_gzip(self) -> None:
        self.reply(gzip.compress(b'{"packed": true}', mtime=0), "Content-Encoding: gzip")

    def at_cookies(self) -> None:
        self.reply({}, "Set-Cookie: a=1; Path=/", "Set-Cookie: b=2; Path=/", "X-Twice: one", "X-Twice: two")

    def at_redirect(self) -> None:
        self.reply(b"", "Location: /echo?from=redirect", "Set-Cookie: c=3; Path=/", status="302 Found")

    def at_latin1(self) -> None:
        self.reply("café naïve".encode("latin-1"), "Content-Type: text/plain; charset=iso-8859-1")

    def at_binary(self) -> None:
        self.reply(bytes(range(256)) * 64, "Content-Type: application/octet-stream")

    def at_big(self) -> None:
        line = b"x" * 1023 + b"\n"
        size = int(self.query["mb"]) << 20
        self.head("200 OK", f"Content-Length: {size}")
        for _ in range(size >> 18):
            self.send(line * 256)

    def at_empty(self) -> None:
        self.head("204 No Content")

    def at_unmodified(self) -> None:
        self.head("304 Not Modified", "ETag: x")

    def at_until_close(self) -> bool:
        self.head("200 OK", "X-Length: none")
        self.send(b"until ")
        time.sleep(0.01)
        self.send(b"the end")
        raise Gone

    def at_closes_after(self) -> bool:
        self.reply({"then": "closes"})
        raise Gone

    def at_old(self) -> bool:
        self.send(b"HTTP/1.0 200 Fine By Me\r\nContent-Length: 3\r\n\r\nold")
        raise Gone

    def at_sse(self) -> None:
        self.chunked("Content-Type: text/event-stream")
        for number in range(int(self.query.get("n", 5))):
            self.chunk(b"data: event %d\n\n" % number)
            time.sleep(float(self.query.get("gap", 0.005)))
        self.send(b"0\r\n\r\n")

    def at_held(self) -> None:
        """The second event comes when the one who asked has told that it got the first."""
        self.chunked("Content-Type: text/event-stream")
        self.chunk(b"data: first\n\n")
        self.chunk(b"data: released\n\n" if released.wait(10) else b"data: waited for in vain\n\n")
        released.clear()
        self.send(b"0\r\n\r\n")

    def at_gzip_sse(self) -> None:
        self.chunked("Content-Type: text/event-stream", "Content-Encoding: gzip")
        data = gzip.compress(b"data: {}\n\n" * 5, mtime=0)
        for part in (data[:10], data[10:]):
            self.chunk(part)
            time.sleep(0.005)
        self.send(b"0\r\n\r\n")

    def at_trailers(self) -> None:
        self.chunked("Trailer: X-Sum")
        self.chunk(b"body")
        self.send(b"0\r\nX-Sum: 4\r\n\r\n")

    def at_forever(self) -> None:
        self.chunked("Content-Type: text/event-stream")
        while True:
            self.chunk(b"data: tick\n\n")
            time.sleep(0.002)

    def at_broken(self) -> bool:
        self.chunked("Content-Type: text/event-stream")
        for number in range(4):
            self.chunk(b"data: event %d\n\n" % number)
        time.sleep(0.02)
        raise Gone

    def at_short(self) -> bool:
        self.head("200 OK", "Content-Length: 100")
        self.send(b"only this")
        raise Gone

    def at_closed(self) -> bool:
        raise Gone

    def at_reset(self) -> bool:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def at_nonsense(self) -> bool:
        self.send(b"what is this\r\n\r\n")
        raise Gone

    def at_slow(self) -> None:
        time.sleep(float(self.query["s"]))
        self.reply({"late": True})

    def at_stalls(self) -> None:
        self.chunked()
        self.chunk(b"begin")
        time.sleep(float(self.query["s"]))
        self.send(b"0\r\n\r\n")

    def at_flaky(self) -> None:
        flaky[self.target] += 1
        failed = flaky[self.target] % 2 == 1
        self.reply({"failed": failed}, status="503 Unavailable" if failed else "200 OK")

    def at_private(self) -> None:
        if "authorization" in self.headers:
            self.reply({"welcome": self.headers["authorization"]})
        else:
            self.reply({}, 'WWW-Authenticate: Basic realm="here"', status="401 Unauthorized")

    def at_upgrade(self) -> bool:
        self.head("101 Switching Protocols", "Upgrade: echo", "Connection: Upgrade")
        self.send(self.file.read(4).upper())
        raise Gone

    def tunnel(self) -> bool:
        if self.headers.get("proxy-authorization", "") == "Basic bm86bm8=":
            self.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            raise Gone
        host, _, port = self.target.rpartition(":")
        upstream = socket.create_connection((host, int(port)))
        self.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        other = threading.Thread(target=relay, args=(upstream, self.sock), daemon=True)
        other.start()
        relay(self.sock, upstream)
        raise Gone


def spoke(sock: Any) -> None:
    with changed:
        silent.discard(sock)
        changed.notify_all()


def relay(source: Any, target: Any) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def accept(listener: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        sock, _ = listener.accept()
        counts["connections"] += 1
        silent.add(sock)
        threading.Thread(target=converse, args=(sock, context), daemon=True).start()


def converse(sock: Any, context: ssl.SSLContext | None) -> None:
    accepted = sock
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            sock = context.wrap_socket(sock, server_side=True)
            spoke(accepted)
        Conversation(sock).run()
    except OSError:
        sock.close()
    finally:
        spoke(accepted)


def main() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    ports = []
    for tls in (None, context):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        ports.append(listener.getsockname()[1])
        threading.Thread(target=accept, args=(listener, tls), daemon=True).start()
    print(*ports, flush=True)
    for line in sys.stdin:
        if line == "release\n":
            released.set()
            continue
        # A client that gave up may be gone before its request was read: it counts too.
        with changed:
            changed.wait_for(lambda: not silent, timeout=2)
        print(counts["requests"], counts["connections"], flush=True)


if __name__ == "__main__":
    main()
