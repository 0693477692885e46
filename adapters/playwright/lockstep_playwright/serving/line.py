"""A connection that the browser made to us: bytes in, bytes out, in clear or inside TLS."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Protocol

_MOST = 1 << 16


class Line(Protocol):
    """One end of a connection."""

    async def read(self) -> bytes:
        """What came, b"" once the other side is done. Raises OSError."""
        ...

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. Raises OSError."""
        ...

    async def finish(self) -> None:
        """Nothing more is written."""
        ...

    def abort(self) -> None:
        """Drops the connection: the other side finds it reset."""
        ...


class Clear:
    """As it is on the wire."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ahead = b""

    def unread(self, data: bytes) -> None:
        """It was only looked at: `read` gives it again."""
        self._ahead = data + self._ahead

    async def read(self) -> bytes:
        ahead, self._ahead = self._ahead, b""
        return ahead or await self._reader.read(_MOST)

    async def write(self, data: bytes) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def finish(self) -> None:
        with suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    def abort(self) -> None:
        self._writer.transport.abort()


class Secured:
    """The same inside TLS, of which we are the server. By hand, since its first bytes have been looked at: what a
    connection is for, only they tell."""

    def __init__(self, clear: Clear, context: ssl.SSLContext) -> None:
        self._clear = clear
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    async def shake_hands(self) -> None:
        """Raises OSError (ssl.SSLError among them) where the other side does not take our certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._clear.write(self._out.read())
                await self._feed()
                continue
            await self._clear.write(self._out.read())
            return

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(_MOST)
            except ssl.SSLWantReadError:
                await self._clear.write(self._out.read())
                await self._feed()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def write(self, data: bytes) -> None:
        if data:
            self._tls.write(data)
            await self._clear.write(self._out.read())

    async def finish(self) -> None:
        with suppress(OSError):
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._clear.write(self._out.read())
        await self._clear.finish()

    def abort(self) -> None:
        self._clear.abort()

    async def _feed(self) -> None:
        data = await self._clear.read()
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()
