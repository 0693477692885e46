"""The `Call` of a replay: it serves a recorded effect, piece by piece, where the recording handed them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.errors import Code
from lockstep.log.model import Kind, Status, Value
from lockstep.log.store import UNSTORABLE
from lockstep.session.call import Piece
from lockstep.session.effects import Within
from lockstep.session.gate import Stopped
from lockstep.session.handed import Handed
from lockstep.session.lanes import Lane
from lockstep.session.policy import Declared
from lockstep.session.secrets import Secrets
from lockstep.session.tape import Recorded, Slot
from lockstep.session.ticks import here

if TYPE_CHECKING:
    from lockstep.session.native.calls import Strand


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

    def __init__(self, session: Any, lane: Lane | Strand, kind: str) -> None:
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
        if recorded is not None:
            self.answered_by(recorded, digest)

    def answered_by(self, recorded: Recorded, digest: bytes) -> None:
        """This recorded effect is the one that is handed out; waits for its turn to be asked for."""
        self.recorded = recorded
        self.pos = recorded.begin.pos
        self._handed = Handed(digest, self.pos)
        self.session.log_of(self.lane).append(self._handed)
        self.session.count(self.kind)
        self._wait(recorded.slot)

    def _hide(self, name: str, request: Value, key: Value) -> tuple[str, Value, bytes]:
        """Name and request with their secrets hidden, and the match key: as the recorded call's at this place,
        where only its secrets have other values now."""
        hidden: tuple[str, Value, bytes] = self.session.secrets.asked(self.kind, name, request, key)
        effects, cursor = self.lane.state.effects, self.lane.state.cursor
        expected = effects[cursor] if cursor < len(effects) else None
        if expected is not None and expected.begin.key != hidden[2]:
            return as_recorded(self.session, self.kind, expected, name, request, key) or hidden
        return hidden

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


def as_recorded(
    session: Any, kind: str, expected: Recorded, name: str, request: Value, key: Value
) -> tuple[str, Value, bytes] | None:
    """A call with its secrets hidden as the recorded one's, and the match key that it then has; None where they differ
    in more than the values of their secrets."""
    if expected.begin.kind is not Kind.BEGIN:
        return None
    # Here, since most sessions start, and end, without it.
    from lockstep.session.following import Following

    laid = Following(session.secrets)
    laid.lay([expected.begin.name, session.tape.request(expected).get("request")], [name, request])
    followed: Any = laid.hide([name, request, key])
    again = session.secrets.key(kind, followed[0], followed[2])
    if again != expected.begin.key:
        return None
    laid.accept()
    return followed[0], followed[1], again
