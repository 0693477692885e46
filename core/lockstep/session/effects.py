"""The two implementations of `Call`: one that records a live effect, one that serves a recorded one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from lockstep.errors import Code
from lockstep.log import canonical
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import UNSTORABLE
from lockstep.session import exceptions, sites
from lockstep.session.call import Asked, Piece
from lockstep.session.gate import Stopped
from lockstep.session.lanes import INSIDE, Lane
from lockstep.session.outcome import Outcome
from lockstep.session.policy import Declared, classify
from lockstep.session.secrets import Secrets
from lockstep.session.tape import Recorded, Slot
from lockstep.session.ticks import HERE, Ticks, here


class Handed:
    """What one effect handed to the program so far, as a digest. Pieces of bytes are one text: how a
    network cut them up is not part of it."""

    __slots__ = ("_digest", "_hash", "key", "pos")

    def __init__(self, key: bytes, pos: int) -> None:
        self.key = key
        self.pos = pos
        self._hash: Any = None
        self._digest: bytes | None = None

    def add(self, value: Value) -> None:
        if self._digest is None:
            self._so_far().update(value if isinstance(value, bytes) else canonical.digest(value))

    def end(self, status: str, value: Value) -> None:
        if self._digest is not None:
            return
        # A stream that was closed and one that was left open got the same answer.
        if status != Status.CLOSED:
            self._so_far().update(b"\0" + status.encode())
            if value is not None:
                self._hash.update(canonical.digest(value))
        self._digest = self.digest()
        self._hash = None  # a run has many effects, and the state of a hash takes 360 bytes

    @property
    def ended(self) -> bool:
        return self._digest is not None

    def digest(self) -> bytes:
        found: bytes = self._so_far().digest() if self._digest is None else self._digest
        return found

    def _so_far(self) -> Any:
        if self._hash is None:
            self._hash = blake2b(digest_size=16, person=b"lockstep outcome")
        return self._hash


def served(recorded: Recorded, body: Callable[[int], Value]) -> bytes:
    """The digest of all that is recorded of an effect's outcome, as `Handed` has it of what was handed out."""
    if recorded.ended and (key := recorded.pieces[-1][1].key):
        return key
    handed = Handed(recorded.begin.key, recorded.begin.pos)
    for seq, event, _ in recorded.pieces:
        if event.kind is Kind.PART:
            handed.add(body(seq))
    return handed.digest()


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

    def __init__(self, session: Any, lane: Lane, kind: str, parent: Any) -> None:
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
                body = exceptions.encode(value)
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


class ServedCall:
    """A recorded effect that is handed out again."""

    live = False
    held = False
    nested = False
    __slots__ = (
        "_begun",
        "_closed",
        "_fitted",
        "_handed",
        "_index",
        "kind",
        "lane",
        "name",
        "pos",
        "recorded",
        "session",
    )

    def __init__(self, session: Any, lane: Lane, kind: str) -> None:
        self.session = session
        self.lane = lane
        self.name = ""
        self.pos = 0
        self.kind = kind
        self.recorded: Recorded | None = None
        self._handed: Handed | None = None
        self._index = 0
        self._fitted: list[Value] | None = None
        self._begun: set[str] = set()
        self._closed = False

    def ask(
        self, name: str, request: Value, key: Value, kind: str | None = None, declared: Declared | None = None
    ) -> None:  # fmt: skip
        if kind is not None:
            self.kind = kind
        name, request, digest = self._hide(name, request, key)
        self.name = name
        # None: past the cut of an interrupted recording, where nothing will ever be handed out.
        recorded = self.session.match(self.lane, self.kind, name, digest, request)
        self.recorded = recorded
        if recorded is None:
            return
        self.pos = recorded.begin.pos
        self._handed = Handed(digest, self.pos)
        self.session.log_of(self.lane).append(self._handed)
        self.session.count(self.kind)
        self._wait(recorded.slot)

    def _hide(self, name: str, request: Value, key: Value) -> tuple[str, Value, bytes]:
        """Name and request with their secrets hidden, and the match key: as the recorded call's at this place,
        where only its secrets have other values now."""
        session = self.session
        hidden = session.secrets.asked(self.kind, name, request, key)
        effects, cursor = self.lane.state.effects, self.lane.state.cursor
        begin = effects[cursor].begin if cursor < len(effects) else None
        if begin is not None and begin.kind is Kind.BEGIN and begin.key != hidden[2]:
            # Here, as below: most sessions start, and end, without it.
            from lockstep.session.following import Following

            recorded = session.tape.request(effects[cursor]).get("request")
            laid = Following(session.secrets)
            laid.lay([begin.name, recorded], [name, request])
            followed: Any = laid.hide([name, request, key])
            again = session.secrets.key(self.kind, followed[0], followed[2])
            if again == begin.key:
                laid.accept()
                return followed[0], followed[1], again
        return hidden  # type: ignore[no-any-return]

    @property
    def given(self) -> bool:
        """Whether what is handed out was never taken by this program, as an edited answer: it may close it early."""
        recorded = self.recorded
        return recorded is not None and recorded.ended and recorded.pieces[-1][1].name != ""

    def ready(self) -> None:
        pass

    async def aready(self) -> None:
        pass

    def inside(self) -> Within:
        return Within(None)

    def program(self) -> Within:
        return Within(None)

    def part(self, value: Value) -> None:
        pass

    def end(self, status: str, value: Any = None) -> None:
        self._closed = True

    def take(self) -> Piece:
        """The next piece, when its turn comes. Divergence, Cut."""
        found = self._next()
        if found is None:
            return self._never()
        seq, event, slot = found
        if slot is not None:
            self._wait(slot)
        return self._hand(seq, event)

    async def atake(self) -> Piece:
        """As `take`, for tasks: suspends exactly where the recording suspended."""
        found = self._next()
        ticks = here()
        if found is None:
            if ticks is None:
                return self._never()
            from lockstep.session import suspend

            await suspend.forever(self, ticks)
        seq, event, slot = found
        if slot is None or slot.tick < 0 or ticks is None:
            self._wait(slot)
        else:
            # Here, since asyncio costs 60 ms to import and sync programs never need it.
            from lockstep.session import suspend

            cancelled, told = event.what == Status.CANCELLED, None
            if cancelled:
                self._finish(Status.CANCELLED, None)
                told = self.session.secrets.reveal(self.session.tape.body(seq))
            await suspend.until(self, slot, cancelled, ticks, told)
        return self._hand(seq, event)

    def hand(self, piece: tuple[int, Any, Slot | None]) -> Piece:
        """One of the recorded pieces, when its turn comes: for an outcome that several strands take, each its own.
        Divergence, Cut."""
        seq, event, slot = piece
        gate = self.session.gate
        if slot is not None:
            self._wait(slot, perform=False)
        handed = self._hand(seq, event)  # before another strand may take the next
        if slot is not None:
            gate.perform(slot)
        return handed

    def _never(self) -> Piece:
        # The recording has nothing more of this answer, and no end of it either.
        if not self.session.interrupted and self.lane.strand is self.session.root and self._index:
            return Piece(None, Status.CLOSED)
        self.session.never(self.lane, self.kind)
        raise AssertionError("unreachable")

    def _next(self) -> tuple[int, Any, Slot | None] | None:
        recorded = self.recorded
        if recorded is None:
            return None
        if self._index < len(recorded.pieces):
            found = recorded.pieces[self._index]
            self._index += 1
            return found
        if recorded.ended:
            return recorded.pieces[-1]
        return None

    def _hand(self, seq: int, event: Any) -> Piece:
        if event.kind is Kind.PART:
            value = self._stored(seq)
            if self._handed is not None:
                self._handed.add(value)
            return Piece(self._revealed(value))
        status = Status(event.what)
        value = self.session.tape.body(seq) if status is not Status.CANCELLED else None
        self._finish(status, value)
        recorded = self.recorded
        if recorded is not None and recorded.output:
            self.session.replay_output(recorded)
        return Piece(self.session.secrets.reveal(value), status)

    def _revealed(self, value: Value) -> Value:
        """A part as the program gets it. Where the bytes of an answer as they came over the wire have other
        secrets than recorded, all of them are made to fit together."""
        secrets: Secrets = self.session.secrets
        if self._index == 1 and type(value) is dict and self.recorded is not None:
            from lockstep.log import frames
            from lockstep.session import coded

            body = self.session.tape.body
            parts = [body(seq) for seq, event, _ in self.recorded.pieces if event.kind is Kind.PART]
            if any(map(coded.is_coded, parts)):
                self._fitted = coded.answer(parts, secrets)
            elif frames.is_framed(value) and secrets.other(parts):
                self._fitted = [secrets.reveal(part) for part in frames.refit(parts, secrets.given)]
        if self._fitted is not None:
            return self._fitted[self._index - 1]
        return secrets.reveal_piece(value, self._begun)

    def _stored(self, seq: int) -> Value:
        value: Value = self.session.tape.body(seq)
        if isinstance(value, dict) and UNSTORABLE in value:
            self.session.diverge(
                Code.UNSERVABLE, f"this answer could not be stored: {value[UNSTORABLE]!s}", call=self
            )  # fmt: skip
        return value

    def _finish(self, status: Status, value: Value) -> None:
        if not self._closed and self._handed is not None:
            self._closed = True
            self._handed.end(status, value)

    def _wait(self, slot: Slot | None, perform: bool = True) -> None:
        if slot is None:
            return
        try:
            self.session.gate.wait(slot, perform)
        except Stopped:
            self.session.raise_latched()
