"""Answers the requests of a browser from a record, or, past the cut of a fork, as its policy has it.

    answering = Answering(calls, wall, pace, note)
    intercept = Intercept(transport, targets, answering, fault)

An exchange is given to the page as it was recorded: whole, in its pieces, as a failure, or not at all where its page
had left before it was answered. A redirect is answered as such and the browser asks for where it leads by itself, so
every hop is one request. What is not recorded fails in the page, and is latched as the difference that it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

from lockstep.errors import Cut, Stop
from lockstep.log import untapped
from lockstep.log.model import Kind, Status, Value
from lockstep.session.call import Call, Piece
from lockstep.session.native.calls import Calls
from lockstep_playwright.network import errors, requests
from lockstep_playwright.network.exchange import Asked, Decision, Fail, Fulfil, Go, Head, Hold
from lockstep_playwright.network.running import Running
from lockstep_playwright.network.sockets import Told
from lockstep_playwright.serving import cookies, outcome, streams
from lockstep_playwright.serving.lasting import Kept
from lockstep_playwright.serving.line import Line
from lockstep_playwright.serving.matching import Match, Note, is_once_more, is_recorded, match
from lockstep_playwright.serving.outcome import Shape
from lockstep_playwright.serving.pace import Pace
from lockstep_playwright.serving.wall import Wall

_APART = 0.02  # seconds between the pieces of a stream, at most


class Answering:
    """Is an `Answerer`.

    recording  False: what goes wrong here fails the request, and nothing leaves by accident
    """

    recording = False
    sockets: Told | None = None  # the wall has them

    def __init__(self, calls: Calls, wall: Wall, pace: Pace | None, note: Note) -> None:
        """`pace`: of the calls that are served; None: answers go out as they are asked for. `note` is told what goes
        out of its order."""
        self._calls = calls
        self._wall = wall
        self._pace = pace
        self._note = note
        self.jar: cookies.Jar | None = None  # once the browser is connected to
        self._kept = Kept()
        self._streams: dict[str, Call] = {}
        self._live = Running()
        self._waiting: dict[str, tuple[asyncio.Task[Any], Call]] = {}

    async def asked(self, asked: Asked) -> Decision:
        told = requests.told(asked)
        kept = self._kept.find(told.key)
        if (kept is not None or requests.is_icon(asked)) and not is_recorded(self._calls, told):
            return kept or Fail()
        if requests.is_of_events(asked) and is_once_more(self._calls, told):
            return Hold()  # how often a browser comes back is a race with what it is given meanwhile
        try:
            found = await match(self._calls, asked.lane, told, self._note)
        except Cut:
            return Hold()  # nobody knows what came of it
        except Stop:
            return Fail()
        if found.call.live:
            self._live.begin(asked, found.call)
            return Go()
        task = asyncio.current_task()
        assert task is not None
        self._waiting[asked.id] = task, found.call
        try:
            decision = await self._answer(found, asked)
        except Stop:
            return Fail()
        finally:
            self._waiting.pop(asked.id, None)
        if isinstance(decision, Fulfil):
            self._kept.keep(asked.method, told.key, decision)
        return decision

    async def _answer(self, found: Match, asked: Asked) -> Decision:
        if found.recorded is None:
            return _whole(_given(found))
        match outcome.shape(found.recorded):
            case Shape.HELD:
                found.call.end(Status.CANCELLED)
                return Hold()
            case Shape.STREAM:
                return await self._stream(found, asked)
            case _:
                pieces = await self._at_once(found)
        if outcome.error_of(pieces[-1]) == outcome.EMPTY_RESPONSE:
            return Go(url=self._wall.stream(streams.drop))
        return _whole(pieces)

    async def _at_once(self, found: Match) -> list[Piece]:
        """The pieces of an answer that came whole, or failed: one after the other, with nothing between them."""
        assert found.recorded is not None
        begin, events = found.recorded.begin, found.events()
        if self._pace is not None:
            await self._pace.turn(begin, begin.at, events[0])
        return [found.now() for _ in events]

    async def _paced(self, found: Match, *, late: bool = False) -> AsyncGenerator[Piece]:
        """The pieces of a recorded answer, each when its turn comes, up to where its page left it."""
        assert found.recorded is not None
        begin = found.recorded.begin
        since = begin.at
        for event in found.events():
            if event.kind is Kind.END and event.what in outcome.LEFT:
                found.call.end(event.what)
                return
            if self._pace is not None:
                await self._pace.turn(begin, since, event, late=late)
            since = event.at
            yield found.now()

    async def _stream(self, found: Match, asked: Asked) -> Decision:
        """Of an answer that comes in pieces, where it comes from."""
        pieces = self._paced(found, late=True)
        head = _head((await anext(pieces)).value)
        sets = cookies.told(head, asked.url, untapped.time_ns() / 1e9)
        if sets and self.jar is not None:
            await self.jar.put(sets)
        self._streams[asked.id] = found.call
        return Go(url=self._wall.stream(partial(self._play, found, head, pieces)))

    async def _play(self, found: Match, head: Head, pieces: AsyncGenerator[Piece], line: Line) -> None:
        """Sends an answer that comes in pieces."""
        try:
            await streams.play(line, head, self._bodies(found, pieces))
        except Stop:
            line.abort()
        finally:
            await pieces.aclose()
            found.call.end(Status.CLOSED)

    async def _bodies(self, found: Match, pieces: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
        times = [event.at for event in found.events()]
        number = 0
        async for piece in pieces:
            number += 1
            if piece.status is None:
                # What comes at once is one piece to a page, and what came apart was not.
                await asyncio.sleep(min(_APART, (times[number] - times[number - 1]) / 1e9))
                yield _bytes(piece.value)
            elif piece.status is Status.ERROR:
                raise streams.Broken(outcome.error_of(piece))
        if found.recorded is not None and outcome.leaves_off(found.recorded):
            await asyncio.Event().wait()  # until the browser wants no more of it

    # Of what runs for real, past the cut of a fork.

    def answered(self, asked: Asked, head: Head) -> None:
        self._live.answered(asked, head)

    def part(self, asked: Asked, data: bytes, when: int = 0) -> None:
        self._live.part(asked, data)

    def over(self, asked: Asked, error: str = "", *, cancelled: bool = False) -> None:
        """Also of one that is served: its page has given it up, so nobody waits for its answer."""
        self._live.over(asked, error, cancelled=cancelled)
        stream = self._streams.pop(asked.id, None)
        if stream is not None:
            stream.end(Status.CANCELLED)
        task, call = self._waiting.pop(asked.id, (None, None))
        if task is not None and call is not None:
            call.end(Status.CANCELLED)
            task.cancel()


def _given(found: Match) -> list[Piece]:
    """The pieces of an edited answer, or of a recorded one past the cut."""
    pieces = [found.now()]
    while pieces[-1].status is None:
        pieces.append(found.now())
    return pieces


def _whole(pieces: list[Piece]) -> Decision:
    """An answer that is given at once."""
    last = pieces[-1]
    if last.status is Status.ERROR:
        return Fail(errors.reason(outcome.error_of(last)))
    head, *body = [piece.value for piece in pieces if piece.status is None]
    return Fulfil(_head(head), b"".join(map(_bytes, body)))


def _head(value: Value) -> Head:
    return Head.of(value)


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
