"""What lies behind the wall: connections of a fork that has gone live are passed on to the real network.

Only what the policy has let go comes so far, since every request is held in the browser before.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from lockstep_playwright.serving.line import Clear, Line

_AWAY = b"HTTP/1.1 502 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HOP = ("proxy-", "connection:", "keep-alive:")  # headers of the way to us


async def tunnel(line: Line, target: str, first: bytes) -> None:
    """Takes a tunnel to host and port, of which the first bytes are about to be read."""
    host, _, port = target.rpartition(":")
    await _pass(line, host.strip("[]"), int(port or 443), b"")


async def request(line: Clear, head: bytes) -> None:
    """Makes one request as a proxy does: `head` is that of an absolute address."""
    first, *rest = head.rstrip(b"\r\n").split(b"\r\n")
    method, _, target = first.decode("latin-1").partition(" ")
    url, _, version = target.rpartition(" ")
    parts = urlsplit(url)
    path = parts.path or "/"
    kept = [each for each in rest if not each.decode("latin-1").lower().startswith(_HOP)]
    asked = f"{method} {path}{'?' + parts.query if parts.query else ''} {version}".encode("latin-1")
    # One request a connection: the browser may have the next one go elsewhere.
    head = b"\r\n".join((asked, *kept, b"Connection: close", b"", b""))
    await _pass(line, parts.hostname or "", parts.port or 80, head)


async def _pass(line: Line, host: str, port: int, head: bytes) -> None:
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        await line.write(_AWAY % str(error.strerror or "no connection").encode("ascii", "replace"))
        return
    beyond = Clear(reader, writer)
    there = asyncio.ensure_future(_copy(line, beyond))
    try:
        await beyond.write(head)
        await _copy(beyond, line)
    finally:
        there.cancel()
        with suppress(asyncio.CancelledError):
            await there
        writer.close()


async def _copy(source: Line, sink: Line) -> None:
    with suppress(OSError):
        while data := await source.read():
            await sink.write(data)
        await sink.finish()
