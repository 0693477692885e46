"""Where a replay or a fork stops: who makes a call then never hears of it again.

A team swallows what is raised in it: a tool that raises leaves its agent waiting for ever, a manager makes a text of an
exception, and agents catch what they like. So nothing is raised. A call that has to stop the team waits, in its own
task, until whoever drives the team has seen it and cancels all of its tasks (`lockstep_autogen.driving`).

    halt = Halt()                          # in the loop in which the team runs
    calls = Halting(server.turn(turn), halt)
    …
    await halt.heard()
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lockstep.errors import Stop
from lockstep.log.model import Value
from lockstep.session.call import Call, Piece
from lockstep.session.native.calls import Calls
from lockstep.session.policy import Declared


class Halt:
    """Usable from any thread. `moved` grows with whatever a call asks or gets."""

    def __init__(self) -> None:
        self.stopped = False
        self.moved = 0
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()

    def stop(self) -> None:
        """It stops here."""
        self.stopped = True
        self._loop.call_soon_threadsafe(self._bell.set)

    async def heard(self) -> None:
        """Returns once it stops."""
        await self._bell.wait()

    async def never(self, error: BaseException | None) -> BaseException:
        """Of a task in the team's loop: waits until it is cancelled. In any other loop there is nobody who would do
        that, so it gets what stopped it, to be raised there."""
        if asyncio.get_running_loop() is self._loop:
            await self._loop.create_future()
        assert error is not None
        return error


class Halting:
    """Is `Calls`: those of another one, which stop by waiting."""

    def __init__(self, calls: Calls, halt: Halt) -> None:
        self.calls = calls
        self.halt = halt

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`. Never raises."""
        if within is not None:
            return self.calls.call(lane, kind, within)
        return cast("Call", Halted(self, lane, kind))


class Halted:
    """A call that stops by waiting. Held, so that whoever makes it waits before doing anything with it."""

    held = True
    nested = False
    __slots__ = ("_call", "_error", "_halt", "kind")

    def __init__(self, calls: Halting, lane: str, kind: str) -> None:
        self.kind = kind
        self._halt = calls.halt
        self._call: Any = None
        self._error: Stop | None = None
        try:
            self._call = calls.calls.call(lane, kind)
        except Stop as error:
            self._stops(error)

    def ask(
        self, name: str, request: Value, key: Value, kind: str | None = None, declared: Declared | None = None
    ) -> None:  # fmt: skip
        self._halt.moved += 1
        if self._error is not None:
            return
        try:
            self._call.ask(name, request, key, kind, declared)
        except Stop as error:
            self._stops(error)

    def ready(self) -> None:
        if self._error is not None:
            raise self._error
        try:
            self._call.ready()
        except Stop as error:
            self._stops(error)
            raise

    async def aready(self) -> None:
        if self._error is None:
            try:
                await self._call.aready()
            except Stop as error:
                self._stops(error)
            else:
                return
        raise await self._halt.never(self._error)

    def take(self) -> Piece:
        if self._error is not None:
            raise self._error
        try:
            piece: Piece = self._call.take()
        except Stop as error:
            self._stops(error)
            raise
        self._halt.moved += 1
        return piece

    async def atake(self) -> Piece:
        if self._error is None:
            try:
                piece: Piece = await self._call.atake()
            except Stop as error:
                self._stops(error)
            else:
                self._halt.moved += 1
                return piece
        raise await self._halt.never(self._error)

    def _stops(self, error: Stop) -> None:
        self._error = error
        self._halt.stop()

    # What is known of it.

    @property
    def live(self) -> bool:
        return self._call is not None and bool(self._call.live)

    @property
    def session(self) -> Any:
        return self._call.session

    @property
    def lane(self) -> Any:
        return self._call.lane

    @property
    def name(self) -> str:
        return str(self._call.name) if self._call is not None else ""

    @property
    def pos(self) -> int:
        return int(self._call.pos) if self._call is not None else 0

    @property
    def recorded(self) -> Any:
        return self._call.recorded if self._call is not None else None

    def inside(self) -> Any:
        return self._call.inside()

    def program(self) -> Any:
        return self._call.program()

    def part(self, value: Value) -> None:
        self._halt.moved += 1
        self._call.part(value)

    def end(self, status: str, value: Any = None) -> None:
        self._halt.moved += 1
        if self._call is not None and self._error is None:
            self._call.end(status, value)
