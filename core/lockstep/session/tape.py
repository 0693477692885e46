"""The recorded side of a replay: one stream's events, indexed for serving.

Built once from the event heads; bodies (requests, answers) are fetched when they are served.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from lockstep.log.model import Event, Kind, Status, Value

PROCESS = "process"  # a kind of effect
STARTED = "started"  # a cause: the program has its process, and gets what it delivers later
# How a run ends by itself. A fork that was refused a call, or did not get to its cut, is cut off there.
_ENDS = frozenset(("complete", "failed"))


@contextmanager
def _uncollected() -> Iterator[None]:
    """For the making of many objects of which none is garbage: the collector would look at them all, again and
    again, which takes a third of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Slot(msgspec.Struct, eq=False, gc=False):
    """One place in the total order: something that happened to the program, or that it asked for."""

    index: int
    seq: int
    event: Event
    strand: str

    @property
    def lane(self) -> str:
        return self.event.lane

    @property
    def tick(self) -> int:
        return self.event.tick

    @property
    def at(self) -> int:
        return self.event.at


class Run:
    """A lock's turns of one strand in a row. `slot`: where it got the lock from another, None for the first."""

    __slots__ = ("count", "slot", "strand")

    def __init__(self, strand: str, slot: Slot | None, count: int) -> None:
        self.strand = strand
        self.slot = slot
        self.count = count  # 0 for the last run: it is open


class Recorded(msgspec.Struct, eq=False):
    """One recorded effect: its BEGIN and what was handed out, in order.

    output   OUTPUT events printed by the effect itself
    index    its number in the lane
    started  of a process: the program has it, also where nothing was taken of it yet
    """

    seq: int
    begin: Event
    slot: Slot | None
    pieces: list[tuple[int, Event, Slot | None]] = []
    output: list[int] = []
    index: int = 0
    started: bool = False

    @property
    def ended(self) -> bool:
        return bool(self.pieces) and self.pieces[-1][1].kind is Kind.END


class LaneTape:
    """What one lane was given: its effects in the order asked, reads by source, output by channel."""

    __slots__ = ("cursor", "effects", "looks", "output", "reads")

    def __init__(self) -> None:
        self.effects: list[Recorded] = []
        self.cursor = 0
        self.reads: dict[str, list[int]] = {}  # source -> sequence numbers of its READS events
        self.looks: dict[tuple[str, str], list[tuple[int, int]]] = {}  # (source, place) -> (look, sequence number)
        self.output: dict[str, list[tuple[int, int]]] = {}  # channel -> (position, sequence number)


class Tape:
    """A recorded stream.

    slots    everything ordered, by position
    causes   (lane, what, number) -> slot
    turns    lock -> its runs, in order
    finish   the FINISH event, None for an interrupted recording
    """

    def __init__(
        self,
        events: Iterable[tuple[int, Event]],
        body: Callable[[int], Value],
        field: Callable[[int, str], Value] | None = None,
        upto: int | None = None,
        *,
        numbered: Callable[[int | Recorded], int] | None = None,
        ordered: bool = True,
    ) -> None:
        """`upto`: position after which nothing has a place in the order: what a fork serves beyond its cut.
        `numbered`: the step of an effect, or of a position, where steps are not closed by effects. Not `ordered`:
        nothing has a place, since nobody holds up what comes early."""
        self.body = body
        self.numbered = numbered
        self._ordered = ordered
        self._field = field
        self._upto = upto
        self.lanes: dict[str, LaneTape] = {}
        self.causes: dict[tuple[str, str, str], Slot] = {}
        self.turns: dict[str, list[Run]] = {}
        self.start: Event | None = None
        self.start_seq = -1
        self.finish: Event | None = None
        self.finish_seq = -1
        self.strands: dict[str, str] = {}
        self.positions: dict[int, int] = {}  # position of a look -> its sequence number
        self._effects: dict[int, Recorded] = {}
        with _uncollected():
            self.slots = self._indexed(events)

    def _indexed(self, events: Iterable[tuple[int, Event]]) -> list[Slot]:
        # Threads may be stored slightly out of order; by position, a BEGIN comes before its parts.
        heads = sorted(events, key=lambda item: item[1].pos)
        for _, event in heads:
            if event.kind is Kind.LANE:
                self.strands[event.name] = event.what
        ordered: list[Slot] = []
        for seq, event in heads:
            self._add(seq, event, ordered)
        for lane in self.lanes.values():
            for index, effect in enumerate(lane.effects):
                effect.index = index
        return ordered

    def lane(self, name: str) -> LaneTape:
        found = self.lanes.get(name)
        if found is None:
            found = self.lanes[name] = LaneTape()
        return found

    def effect(self, pos: int) -> Recorded | None:
        return self._effects.get(pos)

    @property
    def interrupted(self) -> bool:
        return self.finish is None

    def request(self, effect: Recorded) -> dict[str, Any]:
        """The BEGIN event's body: request, site, reads."""
        found = self.body(effect.seq)
        return found if isinstance(found, dict) else {}

    def counts(self, effect: Recorded) -> Mapping[str, int]:
        """How often its lane had read each source when the effect was asked for."""
        found = self.request(effect).get("reads") if self._field is None else self._field(effect.seq, "reads")
        return found if isinstance(found, dict) else {}  # type: ignore[return-value]

    def _slot(self, seq: int, event: Event, ordered: list[Slot]) -> Slot:
        slot = Slot(len(ordered), seq, event, self.strands.get(event.lane, event.lane))
        ordered.append(slot)
        return slot

    def _add(self, seq: int, event: Event, ordered: list[Slot]) -> None:
        kind = event.kind
        if kind is Kind.BEGIN:
            nested = event.of != 0
            slot = None if nested or not self._ordered else self._slot(seq, event, ordered)
            recorded = Recorded(seq, event, slot)
            self._effects[event.pos] = recorded
            if not nested:
                self.lane(event.lane).effects.append(recorded)
        elif kind in (Kind.PART, Kind.END):
            owner = self._effects.get(event.of)
            if owner is None:
                return
            # Programs also close streams from garbage collection, whose moment is nobody's decision.
            loose = owner.slot is None or event.what == Status.CLOSED or (self._upto or event.pos) < event.pos
            owner.pieces.append((seq, event, None if loose else self._slot(seq, event, ordered)))
        elif kind is Kind.CAUSE:
            # A wake-up is named by the lane that sent it, readiness by what is ready.
            lane = "" if event.what in ("wake", "ready") else event.lane
            self.causes[(lane, event.what, event.name)] = self._slot(seq, event, ordered)
            if event.what == STARTED:
                for effect in reversed(self.lane(event.lane).effects):
                    if effect.begin.what == PROCESS:
                        effect.started = True
                        break
        elif kind is Kind.READS and event.name:
            self.lane(event.lane).looks.setdefault((event.what, event.name), []).append((event.of, seq))
            self.positions[event.pos] = seq
        elif kind is Kind.READS:
            self.lane(event.lane).reads.setdefault(event.what, []).append(seq)
        elif kind is Kind.LOCK:
            runs = self.turns.setdefault(event.name, [])
            if not runs:
                runs.append(Run(event.what, None, 0))
            runs[-1].count = event.of
            runs.append(Run(event.lane, self._slot(seq, event, ordered), 0))
        elif kind is Kind.OUTPUT:
            if event.of:
                owner = self._effects.get(event.of)
                if owner is not None:
                    owner.output.append(seq)
            else:
                self.lane(event.lane).output.setdefault(event.what, []).append((event.pos, seq))
        elif kind is Kind.STEP:
            # A named step is asked for and done at once: an effect without an outcome.
            self.lane(event.lane).effects.append(Recorded(seq, event, self._slot(seq, event, ordered)))
        elif kind is Kind.START:
            self.start = event
            self.start_seq = seq
        elif kind is Kind.FINISH and event.what in _ENDS:
            self.finish = event
            self.finish_seq = seq
