"""The site that tests of browsers browse, on loopback, and what stands on its ports when it is gone.

with Site() as site:
    site.url + "/all"         # has all that `observing.OBSERVABLES` names
    site.url + "/form/1"      # a form: fill #name, click #send; /form/2 is the next one. Cookie `visits` counts
    site.url + "/prices?bad=17"   # thirty answers, one after another; that one spoils the total
    site.url + "/basket"      # fill #item, click #add, as often as one likes
    site.url + "/load"        # a hundred requests; then `window.loaded`. `?after=`: seconds that each answer takes
    site.hits()               # each request that was made: method, path, host, cookie, body
    with site.gone() as canary:   # the server is killed; from here on somebody else listens there
        canary.connects()     # the first bytes of each connection that was made
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Site:
    """A server in a process of its own. `url` is its origin, `other` that of another site, to a browser."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name, "hits.jsonl")
        server = [sys.executable, str(Path(__file__).with_name("site_server.py")), str(self._log)]
        self._process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.ports: tuple[int, int] = tuple(json.loads(self._process.stdout.readline()))
        self.url = f"http://127.0.0.1:{self.ports[0]}"
        self.other = f"http://localhost:{self.ports[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._folder.cleanup()

    def hits(self) -> list[dict[str, Any]]:
        """What was asked so far, favicons apart."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [line for line in lines if line["path"] != "/favicon.ico"]

    def kill(self) -> None:
        """Ends the server, in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @contextlib.contextmanager
    def gone(self) -> Iterator[Canary]:
        """Kills the server, and listens in its place."""
        self.kill()
        canary = Canary(self.ports)
        try:
            yield canary
        finally:
            canary.close()


class Canary:
    """Listens, and never answers: the system accepts for it, and it looks when it is asked."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        self._listening = [socket.create_server(("127.0.0.1", port), backlog=256) for port in ports]
        for listener in self._listening:
            listener.setblocking(False)
        self._open: list[socket.socket] = []

    def connects(self) -> list[str]:
        """Of each connection until now, what came first: empty for one over which nothing came."""
        for listener in self._listening:
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._open.append(listener.accept()[0])
        return [_first(connection) for connection in self._open]

    def close(self) -> None:
        for each in (*self._open, *self._listening):
            each.close()


def _first(connection: socket.socket) -> str:
    connection.setblocking(False)
    try:
        return connection.recv(200, socket.MSG_PEEK).decode("latin-1")
    except (BlockingIOError, ConnectionError):
        return ""
