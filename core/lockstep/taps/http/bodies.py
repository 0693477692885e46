"""Request bodies of httpcore on their way out: plain bytes, or drawn from the program piece by piece.

A generator body is the program's own code, which the client calls back: it is drawn outside of the
effect, so that what it reads and calls is the program's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from lockstep.taps.http.expected import next_request

# Why a body was not sent to its end: the program's generator raised, or the client stopped drawing.
BROKEN, CUT = "broken", "cut"


def plain(stream: Any) -> bytes | None:
    """The whole body, where it is held as bytes; None where it must be drawn."""
    for name in ("_stream", "_content"):  # httpx's, httpcore's
        body = getattr(stream, name, None)
        if type(body) is bytes and type(stream).__name__ == "ByteStream":
            return body
    return None


class SentStream:
    """Recording: passes a body on. `complete(body)` is called when its last byte was drawn."""

    def __init__(self, stream: Any, call: Any, complete: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._call = call
        self._complete = complete
        self._pieces: list[bytes] = []
        self.partial: str | None = CUT

    def so_far(self) -> bytes:
        return b"".join(self._pieces)

    def __iter__(self) -> Iterator[bytes]:
        self._pieces = []  # a client may send again from the start
        inner: Any = None
        try:
            while True:
                try:
                    with self._call.program():
                        if inner is None:
                            inner = iter(self._stream)
                        piece = next(inner)
                except StopIteration:
                    break
                except BaseException:
                    self.partial = BROKEN
                    raise
                self._pieces.append(bytes(piece))
                yield piece
            self._finish()
        finally:
            close = getattr(inner, "close", None)
            if close is not None:
                with self._call.program():
                    close()

    def _finish(self) -> None:
        self.partial = None
        self._complete(self.so_far())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class AsyncSentStream(SentStream):
    """The same for tasks."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._pieces = []
        inner: Any = None
        try:
            while True:
                try:
                    with self._call.program():
                        if inner is None:
                            inner = self._stream.__aiter__()
                        piece = await inner.__anext__()
                except StopAsyncIteration:
                    break
                except BaseException:
                    self.partial = BROKEN
                    raise
                self._pieces.append(bytes(piece))
                yield piece
            self._finish()
        finally:
            close = getattr(inner, "aclose", None)
            if close is not None:
                with self._call.program():
                    await close()


class Drawn:
    """A body drawn without sending it: in a replay as far as the recording drew it. `error` is what its generator
    raised; `rest` what is left of one that the recording did not draw to its end, where the request is held."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.partial: str | None = None
        self.error: BaseException | None = None
        self.rest: Any = None

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


class Given:
    """A body that was drawn already, on its way out: piece by piece as the program gave it."""

    def __init__(self, stream: Any, drawn: Drawn) -> None:
        self._stream = stream
        self._drawn = drawn

    def __iter__(self) -> Iterator[bytes]:
        yield from self._drawn.pieces
        if self._drawn.error is not None:
            raise self._drawn.error
        if self._drawn.rest is not None:
            yield from self._drawn.rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._drawn.pieces:
            yield piece
        if self._drawn.error is not None:
            raise self._drawn.error
        if self._drawn.rest is not None:
            async for piece in self._drawn.rest:
                yield piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def draw(stream: Any, call: Any) -> Drawn:
    """Draws a body as a real send would."""
    drawn = Drawn()
    body = plain(stream)
    if body is not None:
        drawn.pieces.append(body)
        return drawn
    limit = _limit(call)
    inner = iter(stream)
    try:
        for piece in inner:
            drawn.pieces.append(bytes(piece))
            if limit is not None and sum(map(len, drawn.pieces)) >= limit:
                drawn.partial = CUT
                drawn.rest = inner if call.held else None
                break
    except Exception as error:
        drawn.partial, drawn.error = BROKEN, error
    finally:
        close = getattr(inner, "close", None)
        if close is not None and drawn.rest is None:
            close()
    return drawn


async def adraw(stream: Any, call: Any) -> Drawn:
    """Draws a body as a real send would."""
    drawn = Drawn()
    body = plain(stream)
    if body is not None:
        drawn.pieces.append(body)
        return drawn
    limit = _limit(call)
    inner = stream.__aiter__()
    try:
        async for piece in inner:
            drawn.pieces.append(bytes(piece))
            if limit is not None and sum(map(len, drawn.pieces)) >= limit:
                drawn.partial = CUT
                drawn.rest = inner if call.held else None
                break
    except Exception as error:
        drawn.partial, drawn.error = BROKEN, error
    finally:
        close = getattr(inner, "aclose", None)
        if close is not None and drawn.rest is None:
            await close()
    return drawn


def _limit(call: Any) -> int | None:
    """How many bytes the recorded client drew, where it stopped before the body's end (the server had
    closed its side)."""
    if call.session.recording:
        return None  # held past the served part: what is recorded next need not be this request
    request = next_request(call)
    body = request.get("body")
    return len(body) if request.get("partial") == CUT and isinstance(body, bytes) else None
