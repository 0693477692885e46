"""The calls of a fork: served up to the cut, and past it whatever the tail says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.log import frames
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.placeholders import Placeholder
from lockstep.session import coded, lanes
from lockstep.session.call import Piece
from lockstep.session.effects import LiveCall, Within
from lockstep.session.handed import Handed
from lockstep.session.lanes import Lane
from lockstep.session.served import ServedCall
from lockstep.session.tail import Answer, Live
from lockstep.session.tape import Recorded
from lockstep.session.ticks import here

if TYPE_CHECKING:
    from lockstep.session.native.calls import Strand


class ForkedCall:
    """A call of a fork. What it is, is known when `ready` returns; see "Held calls" in `lockstep.session.call`."""

    held = True
    nested = False
    __slots__ = ("_asked", "_served", "_to", "kind", "lane", "live", "session")

    def __init__(self, session: Any, lane: Lane | Strand, kind: str) -> None:
        self.session = session
        self.lane = lane
        self.kind = kind
        self.live = False
        self._to: Any = None  # the call that it turned out to be
        self._served: Continued | None = None  # where the part served has it
        self._asked: tuple[Any, ...] | None = None

    def ask(self, name: str, request: Value, key: Value, kind: str | None = None, declared: Any = None) -> None:
        session = self.session
        if session.stopped:
            session.raise_latched()
        if kind is not None:
            self.kind = kind
        self._asked = name, request, key, declared
        if not session.serves(self.lane):
            return
        served = Continued(session, self.lane, self.kind)
        served.ask(name, request, key)
        if served.recorded is not None:
            self._served = served
            if served.recorded.pieces or served.recorded.started:
                self._to = served

    def ready(self) -> None:
        if self._to is None:
            self.session.until_live()
            self._decide()

    async def aready(self) -> None:
        if self._to is not None:
            return
        session, ticks, suspended = self.session, here(), False
        if not session.recording:
            if ticks is None:
                session.until_live()
            else:
                # Here, since asyncio costs 60 ms to import and sync programs never need it.
                from asyncio import CancelledError

                from lockstep.session import suspend

                try:
                    suspended = await suspend.until_live(self, ticks)
                except CancelledError as error:
                    self._given_up(error)
                    raise
        self._decide(suspended)

    def _given_up(self, error: BaseException) -> None:
        """The program cancelled it before it was made. That it was asked is part of the branch; where it ended is too
        once the session is live: the task may have been resumed already, and is then told later than at once."""
        assert self._asked is not None
        name, request, key, declared = self._asked
        record = LiveCall(self.session, self.lane, self.kind, None)
        if self._served is not None:
            record.goes_on(self._served.name, self._served.pos, self._served.handed)
        else:
            record.ask(name, request, key, declared=declared)
        if self.session.recording:
            record.resumed()
            record.end(Status.CANCELLED, error)

    def _decide(self, suspended: bool = False) -> None:
        session = self.session
        if session.stopped:
            session.raise_latched()
        assert self._asked is not None
        name, request, key, declared = self._asked
        record = LiveCall(session, self.lane, self.kind, None)
        served = self._served
        hidden_name, told, digest = session.secrets.asked(self.kind, name, request, key)
        at = 0
        if served is not None and served.recorded is not None:
            at, digest = served.pos, served.recorded.begin.key
        verdict = session.tail.decide(self.lane.name, self.kind, hidden_name, digest, told, declared, at)
        if served is not None:
            record.goes_on(hidden_name, served.pos, served.handed)
        else:
            record.ask(name, request, key, declared=declared)
        if suspended:
            record.resumed()
        if isinstance(verdict, Live):
            session.lived += 1
            self._to, self.live = record, True
        elif isinstance(verdict, Answer):
            session.answered(verdict.how)
            edit, effect = verdict.edit, verdict.effect
            pieces = iter(revealed(session, edit.pieces)) if edit is not None else given(session, effect)  # type: ignore[arg-type]
            self._to = Answered(record, self.kind, pieces, verdict.how)
        else:
            session.refuse(self, verdict, hidden_name, told)

    # What is known of it from then on.

    @property
    def name(self) -> str:
        return str(self._to.name) if self._to is not None else ""

    @property
    def pos(self) -> int:
        return int(self._to.pos) if self._to is not None else 0

    @property
    def recorded(self) -> Recorded | None:
        return self._to.recorded if isinstance(self._to, ServedCall) else None

    def inside(self) -> Any:
        return self._to.inside()

    def program(self) -> Any:
        return Within(None) if self._to is None else self._to.program()

    def part(self, value: Value, *args: Any, **kwargs: Any) -> None:
        self._to.part(value, *args, **kwargs)

    def end(self, status: str, value: Any = None, *args: Any, **kwargs: Any) -> None:
        if self._to is not None:
            self._to.end(status, value, *args, **kwargs)

    def take(self) -> Piece:
        piece: Piece = self._to.take()
        return piece

    async def atake(self) -> Piece:
        piece: Piece = await self._to.atake()
        return piece

    def hand(self, piece: Any) -> Piece:
        handed: Piece = self._to.hand(piece)
        return handed


class Continued(ServedCall):
    """A recorded effect. Of one that was in flight at the cut, what comes after it is the branch's own."""

    __slots__ = ("_record",)

    def __init__(self, session: Any, lane: Lane | Strand, kind: str) -> None:
        super().__init__(session, lane, kind)
        self._record: LiveCall | None = None

    @property
    def handed(self) -> Handed | None:
        return self._handed

    def take(self) -> Piece:
        if self._beyond():
            self.session.until_live()
            return self._recording(super().take())
        return super().take()

    async def atake(self) -> Piece:
        ticks = here()
        if ticks is None:
            return self.take()
        if not self._beyond() and not self._leaves_off():
            return await super().atake()
        from asyncio import CancelledError

        from lockstep.session import suspend

        suspended = False
        try:
            if not self.session.recording:
                suspended = await suspend.until_live(self, ticks)
            if self._leaves_off():
                await suspend.until_stopped(self, ticks)
        except CancelledError as error:
            if self.session.recording:
                self._recorded(True, ends=True).end(Status.CANCELLED, error)
            raise
        return self._recording(super().take(), suspended)

    def hand(self, piece: tuple[int, Any, Any]) -> Piece:
        if piece[1].pos <= self.session.upto:
            return super().hand(piece)
        self.session.until_live()
        return self._recording(super().hand(piece), of=piece[1])

    def end(self, status: str, value: Any = None) -> None:
        super().end(status, value)
        if self._record is not None:
            self._record.end(status, value)

    def _coming(self) -> Event | None:
        """What is recorded of it next."""
        recorded = self.recorded
        if recorded is None or self._index >= len(recorded.pieces):
            return None
        event: Event = recorded.pieces[self._index][1]
        return event

    def _beyond(self) -> bool:
        """Whether the next piece lies after the cut."""
        coming = self._coming()
        return coming is not None and coming.pos > int(self.session.upto)

    def _leaves_off(self) -> bool:
        """Whether nobody knows what comes next: the parent gave it up after the cut, or was cut off itself."""
        coming = self._coming()
        if coming is None:
            return self.recorded is not None and not self.recorded.ended
        return coming.what == Status.CANCELLED and coming.pos > int(self.session.upto)

    def _recorded(self, suspended: bool, *, ends: bool) -> LiveCall:
        """The branch's own record of it. `ends`: what it says next is the end."""
        if self._record is None:
            self._record = LiveCall(self.session, self.lane, self.kind, None)
        # What is handed out counts here already, so that only the end needs the digest of it all.
        self._record.goes_on(self.name, self.pos, self._handed if ends else None)
        if suspended:
            self._record.resumed()
        return self._record

    def _recording(self, piece: Piece, suspended: bool = False, of: Event | None = None) -> Piece:
        """`of`: what the running strand, which need not be the one that asked, has taken of several streams."""
        record = self._recorded(suspended, ends=piece.status is not None)
        if of is None:
            record.given(piece, "served")
        elif piece.status is None:
            record.part(piece.value, of.what, lanes.lane())
        else:
            record.end(piece.status, piece.value, lanes.lane(), "served")
        return piece


class Answered:
    """A call that gets its answer without being made; what it gets is recorded."""

    live = False
    held = False
    nested = False
    recorded = None
    __slots__ = ("_how", "_last", "_pieces", "_record", "kind", "lane", "name", "pos", "session")

    def __init__(self, record: LiveCall, kind: str, pieces: Iterator[Piece], how: str) -> None:
        self.session = record.session
        self.lane = record.lane
        self.kind = kind
        self.name = record.name
        self.pos = record.pos
        self._record = record
        self._pieces = pieces
        self._how = how
        self._last: Piece | None = None

    def inside(self) -> Any:
        return self._record.program()

    def program(self) -> Any:
        return self._record.program()

    def part(self, value: Value) -> None:
        pass

    def end(self, status: str, value: Any = None) -> None:
        self._record.end(status, value, how=self._how)

    def take(self) -> Piece:
        piece = next(self._pieces, None)
        if piece is None:
            return self._last or Piece(None, Status.CLOSED)
        self._record.given(piece, self._how)
        self._last = piece
        return piece

    async def atake(self) -> Piece:
        return self.take()


def _stand(secrets: Any, piece: Placeholder) -> bytes:
    whole = Placeholder(piece.name, piece.form) if frames.is_uncounted(piece) else piece
    found: bytes = secrets.given(whole)
    return found


def revealed(session: Any, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces of an edited answer as its caller gets them: in the record's words, a placeholder is a secret."""
    secrets = session.secrets
    parts = [piece.value for piece in pieces if piece.status is None]
    if any(map(coded.is_coded, parts)):
        parts = coded.answer(parts, secrets)
    elif any(map(frames.is_framed, parts)):
        parts = [secrets.reveal(part) for part in frames.refit(parts, lambda piece: _stand(secrets, piece))]
    else:
        begun: set[str] = set()
        parts = [secrets.reveal_piece(part, begun) for part in parts]
    yield from map(Piece, parts)
    yield from (Piece(secrets.reveal(piece.value), piece.status) for piece in pieces if piece.status is not None)


def given(session: Any, effect: Recorded) -> Iterator[Piece]:
    """The recorded pieces of an effect, as its caller gets them."""
    secrets, body = session.secrets, session.tape.body
    served = ServedCall(session, session.root, effect.begin.what)
    served.recorded = effect
    while (found := served._next()) is not None:
        seq, event, _ = found
        if event.kind is Kind.PART:
            yield Piece(served._revealed(served._stored(seq)))
        else:
            status = Status(event.what)
            yield Piece(secrets.reveal(body(seq)) if status is not Status.CANCELLED else None, status)
            return
