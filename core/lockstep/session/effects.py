"""The `Call` of a recording: an effect that runs for real, and is recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session import exceptions, sites
from lockstep.session.call import Asked, Piece
from lockstep.session.handed import Handed
from lockstep.session.lanes import INSIDE, NATIVE, Lane
from lockstep.session.outcome import Outcome
from lockstep.session.policy import Declared, classify
from lockstep.session.ticks import HERE, Ticks

if TYPE_CHECKING:
    from lockstep.session.native.calls import Strand


class Within(msgspec.Struct, gc=False):
    """Sets whose code is running for the length of a block."""

    value: Any
    token: Any = None

    def __enter__(self) -> None:
        self.token = INSIDE.set(self.value)

    def __exit__(self, *_: object) -> None:
        token, self.token = self.token, None
        try:  # noqa: SIM105 - as `leave`, which each chunk of an answer would call otherwise
            INSIDE.reset(token)
        except ValueError:
            pass


class Ignored:
    """A call made by our own code: nothing is recorded."""

    live = True
    held = False
    nested = True
    __slots__ = ()

    def ask(
        self, name: str, request: Value, key: Value, kind: str | None = None, declared: Declared | None = None
    ) -> None:  # fmt: skip
        pass

    def ask_later(self, make: Callable[[bytes], Asked], body: bytes) -> None:
        pass

    def ready(self) -> None:
        pass

    async def aready(self) -> None:
        pass

    def inside(self) -> Within:
        return Within(True)

    def program(self) -> Within:
        return Within(True)

    def part(self, value: Value) -> None:
        pass

    def end(self, status: str, value: Any = None) -> None:
        pass

    def take(self) -> Piece:
        raise RuntimeError("an unrecorded call has nothing to serve")

    async def atake(self) -> Piece:
        return self.take()


class LiveCall:
    """An effect that runs for real and is recorded. Faults of ours never reach the program."""

    live = True
    held = False
    __slots__ = (
        "_ended",
        "_handed",
        "_kind",
        "_outcomes",
        "_parent",
        "_serial",
        "lane",
        "name",
        "nested",
        "pos",
        "session",
    )

    def __init__(self, session: Any, lane: Lane | Strand, kind: str, parent: Any) -> None:
        self.session = session
        self.lane = lane
        self.name = ""
        self.nested = parent is not None
        self.pos = 0
        self._kind = kind
        self._parent = parent
        self._ended = False
        self._handed: Handed | None = None
        self._outcomes: dict[str, Outcome] | None = None
        ticks = HERE.ticks
        self._serial = ticks.serial if ticks is not None else 0

    def ask(
        self, name: str, request: Value, key: Value, kind: str | None = None, declared: Declared | None = None
    ) -> None:  # fmt: skip
        if not self.pos:
            self.name = name
            if kind is not None:
                self._kind = kind
            finish = partial(self._begun, Asked(name, self._kind, request, key), declared)
            self._begin(request, sites.site(2), finish)

    def ask_later(self, make: Callable[[bytes], Asked], body: bytes) -> None:
        if not self.pos:
            self._begin(body, sites.usual_site(2), partial(self._described, make, body))

    def _begin(self, request: Value, site: str, finish: Callable[[Event], Event]) -> None:
        session = self.session
        self.pos = pos = session.position()
        try:
            session.asked = True
            body: dict[str, Value] = {"request": request, "site": site}
            of = 0
            if self.nested:
                of = self._parent.pos
            elif counts := self.lane.reads:
                body["reads"] = counts  # type: ignore[assignment]
            if native := NATIVE.get():
                body["thread"] = native
            session.emit(Kind.BEGIN, self.lane.name, pos, self._kind, self.name, of, body=body, finish=finish)
        except Exception as error:
            session.fault(f"begin of {self._kind} {self.name}", error)

    def _described(self, make: Callable[[bytes], Asked], body: bytes, event: Event) -> Event:
        asked = make(body)
        self.name, self._kind = asked.name, asked.kind
        return self._begun(asked, None, event)

    def _begun(self, asked: Asked, declared: Declared | None, event: Event) -> Event:
        session, body = self.session, event.body
        kind, request = asked.kind, asked.request
        name, hidden, key = session.secrets.asked(kind, asked.name, request, asked.key)
        self._handed = Handed(key, event.pos)
        stored = {**body, "request": hidden}  # type: ignore[dict-item]
        if not self.nested:
            session.log_of(self.lane).append(self._handed)
            session.count(kind)
        if declared is not None or not self.nested:
            stored["class"] = classify(kind, name, hidden, declared, session.effect_rules)
        return replace(event, what=kind, name=name, key=key, body=stored)

    def ready(self) -> None:
        pass

    async def aready(self) -> None:
        pass

    def resumed(self) -> None:
        """The task was suspended after it asked, before the client was let run: its first piece comes after a
        suspension, whatever the client does."""
        self._serial = -1

    def inside(self) -> Within:
        if self._serial >= 0:
            ticks = HERE.ticks
            self._serial = ticks.serial if ticks is not None else 0
        return Within(self)

    def program(self) -> Within:
        return Within(self._parent)

    def part(self, value: Value, channel: str = "", lane: Lane | None = None) -> None:
        """`channel` names one of several streams of the outcome; `lane` the strand that took this piece of it, where
        that need not be the one that asked: it was not suspended for it."""
        if self._ended or not self.pos:
            return
        session = self.session
        ticks = HERE.ticks
        pos, tick = session.position(), -1 if ticks is None or lane is not None else self._tick(ticks)
        try:
            name = (lane or self.lane).name
            session.emit(Kind.PART, name, pos, channel, "", self.pos, tick, body=value, finish=self._given)
        except Exception as error:
            session.fault(f"part of {self._kind} {self.name}", error)

    def _given(self, event: Event) -> Event:
        body: Any = event.body
        value = self._hide(body() if type(body) is partial else body, event.what)
        if self._handed is not None:
            self._handed.add(value)
        return event if value is body else replace(event, body=value)

    def goes_on(self, name: str, pos: int, handed: Handed | None) -> None:
        """It was asked in the served part of a fork: what follows belongs to that. `handed`: what to count it in."""
        self.name, self.pos, self._handed = name, pos, handed

    def given(self, piece: Piece, how: str) -> None:
        """The program got this without the call being made. `how`: edited, served or reused."""
        if piece.status is None:
            self.part(piece.value)
        else:
            self.end(piece.status, piece.value, how=how)

    def end(self, status: str, value: Any = None, lane: Lane | None = None, how: str = "") -> None:
        """`how`: as in `given`; the value is then what stands in the record."""
        if self._ended or not self.pos:
            return
        self._ended = True
        session = self.session
        ticks = HERE.ticks
        pos, tick = session.position(), -1 if ticks is None or lane is not None else self._tick(ticks)
        try:
            body: Value = value
            if status == Status.ERROR and not how:
                body = exceptions.encode(value) if isinstance(value, BaseException) else value
            elif status == Status.CANCELLED:
                body = exceptions.scope_message(value)
            name = (lane or self.lane).name
            session.emit(Kind.END, name, pos, status, how, self.pos, tick, body=body, finish=self._over)
        except Exception as error:
            session.fault(f"end of {self._kind} {self.name}", error)

    def _over(self, event: Event) -> Event:
        body = self.session.secrets.hide(event.body)
        key = b""
        if self._handed is not None:
            self._handed.end(event.what, body if event.what != Status.CANCELLED else None)
            key = self._handed.digest()
        return replace(event, key=key, body=body)

    def take(self) -> Piece:
        raise RuntimeError("a live call has nothing to serve")

    async def atake(self) -> Piece:
        return self.take()

    def _hide(self, value: Value, channel: str) -> Value:
        """A piece of the outcome with its secrets hidden; the bytes of a channel are pieces of one text."""
        outcomes = self._outcomes
        if outcomes is None:
            outcomes = self._outcomes = {}
        outcome = outcomes.get(channel)
        if outcome is None:
            if type(value) is not bytes and type(value) is not dict:
                return self.session.secrets.hide(value)  # type: ignore[no-any-return]
            outcome = outcomes[channel] = Outcome(self.session.secrets)
        return outcome.hide(value)

    def _tick(self, ticks: Ticks) -> int:
        if not ticks.running or ticks.serial == self._serial:
            return -1
        self._serial = max(self._serial, 0)
        return ticks.count
