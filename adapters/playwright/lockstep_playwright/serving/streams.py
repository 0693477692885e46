"""An answer that came in pieces, as a server sends it: each piece when its turn comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from lockstep_playwright.network.exchange import Head
from lockstep_playwright.serving.line import Line
from lockstep_playwright.serving.recoding import coder

# Of the connection that it came over, and not of the answer; cookies would be kept for our address.
_HOPS = frozenset(
    {"set-cookie", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade", "trailer"}
)
_LAST = b"0\r\n\r\n"
_RESET = "net::ERR_CONNECTION_RESET"
_READ = 0.05  # seconds in which a page reads what came: it finds the error before what it has not read


class Broken(Exception):
    """The answer breaks off here, with an error as the browser says it."""


async def play(line: Line, head: Head, pieces: AsyncIterator[bytes]) -> None:
    """Sends an answer, until the pieces end, break off (`Broken`), or the browser wants no more of them. An encoding
    that was taken off is put back where we have one like it."""
    coded = coder(head.decoded) if head.decoded else None
    headers = [pair for pair in head.headers if pair[0].lower() not in _HOPS]
    if coded is not None:
        headers = [pair for pair in headers if pair[0].lower() != "content-length"]
        headers.append(("content-encoding", head.decoded))
    whole = any(name.lower() == "content-length" for name, _ in headers)
    lines = [f"HTTP/1.1 {head.status} {head.reason}".rstrip(), *(f"{name}: {value}" for name, value in headers)]
    lines += ["connection: close"] if whole else ["transfer-encoding: chunked", "connection: close"]
    await line.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape"))
    try:
        async for data in pieces:
            sent = coded.piece(data) if coded is not None else data
            await line.write(sent if whole else _chunk(sent))
        last = coded.last() if coded is not None else b""
        await line.write(last if whole else _chunk(last) + _LAST)
    except Broken as broken:
        await asyncio.sleep(_READ)
        if str(broken) == _RESET:
            line.abort()


async def drop(line: Line) -> None:
    """No answer at all: the browser says that it was empty."""
    await line.finish()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
