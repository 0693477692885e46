"""What stands between a replayed browser and the network: a proxy that lets nothing through.

    wall = Wall(sockets)
    await wall.start()
    launch(args=wall.switches())            # or new_context(proxy=wall.proxy()), for a browser that runs already
    url = wall.stream(play)                 # an address here, for a request whose answer comes in pieces
    wall.turned_away                        # {"updates.example:443": 3}
    await wall.stop()

Requests that are answered in the browser never come here. What does: answers in pieces, which only a server can give;
WebSockets, which nothing in the browser lets us answer, and which so are the browser's own, in workers too; and what
is to be kept from leaving: a browser connects ahead to where it may want to go, and asks its maker for updates.

Local Network Access counts what comes over a proxy as of no network, so a page may have both from the loopback.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from lockstep_playwright.serving import beyond
from lockstep_playwright.serving.certificate import Certificate
from lockstep_playwright.serving.line import Clear, Line, Secured

# Answers one request on a line: whatever it writes is the whole answer.
type Play = Callable[[Line], Awaitable[None]]
# Takes a line on which a client has begun to talk as to the origin ("ws://host:80" or "wss://host:443"): whether it is
# a WebSocket's is seen then, and returned.
type Converse = Callable[[Line, str], Awaitable[bool]]
type Fault = Callable[[str, BaseException], object]

_HOST = "127.0.0.1"
_STREAM = "/lockstep/stream/"
_HEAD = 1 << 18  # bytes of the head of a request
_TLS = 0x16  # the first byte of a handshake
_H2 = b"\x02h2\x08http/1.1"  # what a browser offers to speak for requests; for a WebSocket, only the second
_UPGRADE = b"upgrade: websocket"
_HELLO = b"HTTP/1.1 200 Connection established\r\n\r\n"
_AWAY = b"HTTP/1.1 502 Nothing leaves a replay\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_GONE = b"HTTP/1.1 404 Not here\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Wall:
    """See above. Runs in the loop that it was started in.

    port         where it listens, on the loopback
    turned_away  connections that it let go nowhere: "host:port" -> how many
    is_open      False: nothing leaves. Of a fork that has gone live: what comes here is passed on
    """

    def __init__(self, converse: Converse, fault: Fault, certificate: Certificate | None = None) -> None:
        """`converse` has the WebSockets; `fault` is told what goes wrong here. Without a certificate, secure WebSockets
        are turned away."""
        self.port = 0
        self.turned_away: dict[str, int] = {}
        self.is_open = False
        self._converse = converse
        self._fault = fault
        self._certificate = certificate
        self._streams: dict[str, Play] = {}
        self._tokens = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._came, _HOST, 0, limit=_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Ends every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def switches(self) -> tuple[str, ...]:
        """The command line of a browser that reaches nothing but this. A browser leaves its proxy out for the loopback
        unless it is told otherwise."""
        taken = (f"--ignore-certificate-errors-spki-list={self._certificate.key}",) if self._certificate else ()
        return (f"--proxy-server={_HOST}:{self.port}", "--proxy-bypass-list=<-loopback>", *taken)

    def proxy(self) -> dict[str, str]:
        """The same for one context of a browser that runs already, as Playwright's `new_context` takes it. Secure
        WebSockets also need `ignore_https_errors`."""
        return {"server": f"http://{_HOST}:{self.port}", "bypass": "<-loopback>"}

    def stream(self, play: Play) -> str:
        """An address whose next request is answered by `play`."""
        token = str(next(self._tokens))
        self._streams[token] = play
        return f"http://{_HOST}:{self.port}{_STREAM}{token}"

    # Connections.

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._take(reader, writer)
        except asyncio.CancelledError:
            pass  # `stop`: the server of asyncio would tell of it as of an error
        except Exception as error:
            self._fault("an answer to the browser", error)
        finally:
            self._open.discard(task)
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target = rest.rpartition(" ")[0]
        clear = Clear(reader, writer)
        if method == "CONNECT":
            await self._tunnel(clear, target)
            return
        path = target.partition(f"{_HOST}:{self.port}")[2] or target
        if path.startswith(_STREAM):
            await self._play(clear, path.removeprefix(_STREAM))
        elif self.is_open:
            await beyond.request(clear, head)
        else:
            self._turn_away(_authority(target))
            await clear.write(_AWAY)

    async def _play(self, line: Line, token: str) -> None:
        play = self._streams.pop(token, None)
        if play is None:
            await line.write(_GONE)
            return
        playing = asyncio.ensure_future(play(line))
        gone = asyncio.ensure_future(_until_gone(line))
        try:
            await asyncio.wait((playing, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing

    async def _tunnel(self, clear: Clear, target: str) -> None:
        # What it is for, only its first bytes tell. One that was opened ahead has none, and is nobody's request.
        await clear.write(_HELLO)
        first = await clear.read()
        if not first:
            return
        if first[0] == _TLS:
            first = await _hello(clear, first)
        clear.unread(first)
        if first[0] == _TLS and self.is_open and (self._certificate is None or _H2 in first):
            await beyond.tunnel(clear, target, first)
        elif first[0] != _TLS and _UPGRADE not in first.lower():
            # A request of the program's own: with a context's proxy, Playwright's driver sends it here too.
            if self.is_open:
                await beyond.tunnel(clear, target, first)
            else:
                self._turn_away(target)
        elif first[0] != _TLS:
            await self._talk(clear, "ws", target)
        elif self._certificate is None:
            self._turn_away(target)
        else:
            await self._secure(clear, target, self._certificate.server)

    async def _secure(self, clear: Clear, target: str, tls: ssl.SSLContext) -> None:
        line = Secured(clear, tls)
        try:
            await line.shake_hands()
        except OSError:
            self._turn_away(target)
            return
        await self._talk(line, "wss", target)

    async def _talk(self, line: Line, scheme: str, target: str) -> None:
        if not await self._converse(line, f"{scheme}://{target}"):
            self._turn_away(target)

    def _turn_away(self, authority: str) -> None:
        self.turned_away[authority] = self.turned_away.get(authority, 0) + 1


def _authority(target: str) -> str:
    """Host and port of an absolute address."""
    host = target.partition("://")[2].partition("/")[0]
    return host if ":" in host else f"{host}:80"


async def _hello(line: Line, first: bytes) -> bytes:
    """All of the message that begins a TLS connection."""
    while len(first) < 5 or len(first) < 5 + int.from_bytes(first[3:5]):
        data = await line.read()
        if not data:
            break
        first += data
    return first


async def _until_gone(line: Line) -> None:
    """Returns once the browser wants no more; what it sends meanwhile is the body of its request."""
    with suppress(OSError):
        while await line.read():
            pass
