"""A loopback server whose answers are made of what it is asked, and of secrets. Prints its port."""

from __future__ import annotations

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kinds import IN_TEXT, NEIGHBOURS, TOKENS

GIVEN = (
    [f"{'block' if kind == 'private key' else 'before'} {token} after" for kind, token in TOKENS.items()]
    + [text for text, _ in IN_TEXT.values()]
    + [*NEIGHBOURS]
)


class Handler(BaseHTTPRequestHandler):
    """/echo, /cut (in pieces), /login, /whoami, /kinds."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        """Answers."""
        self.do_POST()

    def do_POST(self) -> None:
        """Answers."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path == "/kinds":
            self._whole(json.dumps(GIVEN[: LIMIT or None]).encode())
        elif path == "/login":
            user = json.loads(body)["user"]
            self._whole(json.dumps({"access_token": f"token-of-{user}-0123456789", "expires_in": 3600}).encode())
        elif path == "/whoami":
            token = self.headers.get("authorization", "").removeprefix("Bearer ")
            self._whole(json.dumps({"user": token.split("-")[2], "your": {"token": token}}).encode())
        elif path == "/cut":
            self._pieces(body)
        else:
            self._whole(body)

    def _whole(self, body: bytes) -> None:
        if "gzip" in self.headers.get("accept-encoding", "") and GZIP:
            body = gzip.compress(body)
            self.send_response(200)
            self.send_header("content-encoding", "gzip")
        else:
            self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("set-cookie", "sid=cookie-0123456789abcdef; Path=/")
        self.end_headers()
        self.wfile.write(body)

    def _pieces(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        size = len(body) * 5 // 8 + 1
        for at in range(0, len(body), size):
            piece = body[at : at + size]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


LIMIT = int(sys.argv[1]) if len(sys.argv) > 1 else 0
GZIP = "gzip" in sys.argv

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
