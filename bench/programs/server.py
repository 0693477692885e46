"""The outside world of the random programs: a loopback HTTP server that is never the same twice.

It answers with a number that counts arrivals, so siblings that ask the same get different answers;
it takes a random time, fails now and then, and breaks off connections and streams. Addresses are
`/SPACE/answer` and `/SPACE/stream`: each space has a count of its own, so that several programs can
share the server. Query parameters: `latency` (`quantised`: whole milliseconds, ties on purpose;
`bursty`: everything due is released together every 1.2 ms; `continuous`) and `fail` (per cent).
`/SPACE/hits` and `/SPACE/reset` are for the runner and are not counted.

    python -m programs.server        prints its port, serves until its stdin is closed
"""

from __future__ import annotations

import asyncio
import collections
import random
import selectors
import sys
import urllib.parse

LATENCIES = ("quantised", "bursty", "continuous")
_BURST = 0.0012


def _delay(latency: str, now: float, chance: random.Random) -> float:
    """Seconds until an answer or a chunk leaves, always drawn anew."""
    if latency == "quantised":
        return chance.choice((0.001, 0.001, 0.002, 0.003))
    if latency == "bursty":
        return (chance.choice((1, 1, 2)) * _BURST) - now % _BURST
    return chance.uniform(0.0, 0.004)


class _Connection(asyncio.Protocol):
    """One client connection: requests one after the other, as HTTP/1.1 clients send them."""

    def __init__(self, arrivals: collections.Counter[str], chance: random.Random) -> None:
        self._arrivals = arrivals
        self._chance = chance
        self._buffer = b""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1").split("\r\n")
            length = next((int(line[15:]) for line in head if line.lower().startswith("content-length:")), 0)
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._request(head[0].split(" ")[1])

    def _request(self, target: str) -> None:
        parts = urllib.parse.urlsplit(target)
        space, _, action = parts.path.strip("/").rpartition("/")
        if action == "hits":
            self._send(_plain(200, str(self._arrivals[space])))
        elif action == "reset":
            del self._arrivals[space]
            self._send(_plain(200, "0"))
        else:
            self._answer(space, action, parts.query)

    def _answer(self, space: str, action: str, asked: str) -> None:
        query = dict(urllib.parse.parse_qsl(asked))
        self._arrivals[space] += 1
        number = self._arrivals[space]
        latency = query.get("latency", "continuous")
        fails = self._chance.random() * 100 < float(query.get("fail", "12"))
        delay = _delay(latency, self._loop.time(), self._chance)
        if action == "stream":
            self._loop.call_later(delay, self._stream, number, latency, fails)
        elif fails and self._chance.random() < 0.5:
            self._loop.call_later(delay, self._drop)
        else:
            text = f"{query.get('q', '')}-{number}"
            self._loop.call_later(delay, self._send, _plain(500 if fails else 200, text))

    def _stream(self, number: int, latency: str, fails: bool) -> None:
        if fails and self._chance.random() < 0.3:
            self._send(_plain(500, f"s-{number}"))
            return
        lines = self._chance.randint(2, 4)
        broken = self._chance.randint(1, lines) if fails else 0
        self._send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        self._chunk(number, 1, lines, broken, latency)

    def _chunk(self, number: int, line: int, lines: int, broken: int, latency: str) -> None:
        if line == broken:
            self._drop()
            return
        if line > lines:
            self._send(b"0\r\n\r\n")
            return
        text = f"s-{number}.{line}\n".encode()
        self._send(b"%x\r\n%s\r\n" % (len(text), text))
        delay = _delay(latency, self._loop.time(), self._chance)
        self._loop.call_later(delay, self._chunk, number, line + 1, lines, broken, latency)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _drop(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _plain(status: int, text: str) -> bytes:
    body = text.encode()
    reason = "OK" if status == 200 else "Internal Server Error"
    return b"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        reason.encode(),
        len(body),
        body,
    )


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    arrivals: collections.Counter[str] = collections.Counter()
    chance = random.Random()
    server = await loop.create_server(lambda: _Connection(arrivals, chance), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)
    await closed.wait()


def main() -> None:
    # select(2) waits in microseconds, epoll in whole milliseconds, which would quantise everything.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_serve())


if __name__ == "__main__":
    main()
