"""Steps and the effects in them, and how an effect is gathered from its events."""

from __future__ import annotations

import msgspec

from lockstep.log.model import Event, Status


class Effect(msgspec.Struct, frozen=True):
    """One call to the outside, with what is nested in it.

    number    from 1 in its step, or in its parent
    begin     its BEGIN event without body, `seq` that event's number
    parts     numbers of its PART events
    stream    that of its process
    end       its END event without body, None while in flight; `end_seq` its number
    """

    number: int
    seq: int
    begin: Event
    parts: tuple[int, ...]
    end_seq: int
    end: Event | None
    children: tuple[Effect, ...]
    stream: int = 0

    @property
    def kind(self) -> str:
        return self.begin.what

    @property
    def name(self) -> str:
        return self.begin.name

    @property
    def lane(self) -> str:
        return self.begin.lane

    @property
    def status(self) -> Status | None:
        """How it ended; None while in flight."""
        return Status(self.end.what) if self.end is not None else None

    @property
    def duration(self) -> int | None:
        """Nanoseconds from asking to its end; None while in flight."""
        return self.end.at - self.begin.at if self.end is not None else None


class Step(msgspec.Struct, frozen=True):
    """One step. `kind`: input, end, step (named), or that of the effect that closed it.

    seq   number of the event that closed it; -1 for an end that was never recorded
    lane  of what closed it
    at    nanoseconds since the run began, or of a single process, since that began
    stream  that of its process; `before`: the number of the event that closed the step before in it, -1 for none
    """

    number: int
    kind: str
    name: str
    lane: str
    seq: int
    at: int
    effects: tuple[Effect, ...]
    stream: int = 0
    before: int = -1


class Draft:
    """An effect while its events are gathered."""

    __slots__ = ("begin", "children", "end", "end_seq", "parts", "seq")

    def __init__(self, seq: int, begin: Event) -> None:
        self.seq = seq
        self.begin = begin
        self.parts: list[int] = []
        self.end_seq = -1
        self.end: Event | None = None
        self.children: list[Draft] = []

    def effect(self, number: int, stream: int) -> Effect:
        children = tuple(child.effect(index, stream) for index, child in enumerate(self.children, 1))
        return Effect(number, self.seq, self.begin, tuple(self.parts), self.end_seq, self.end, children, stream)


def numbered(drafts: list[Draft], stream: int) -> tuple[Effect, ...]:
    """Lane by lane, in each in the order asked."""
    drafts.sort(key=lambda draft: (draft.begin.lane, draft.begin.pos))
    return tuple(draft.effect(number, stream) for number, draft in enumerate(drafts, 1))
