"""One side of a comparison: the calls of a run by lane, read from the heads of its events.

No payload is read here; the digests in the heads say which ones have to be. What is kept of a call is small, so
that a long run fits; `Side` reads a call's payloads when they are asked for.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from lockstep.debugger import acted, channels, ending
from lockstep.errors import AddressError, Code
from lockstep.log import address as addresses
from lockstep.log import checkpoints
from lockstep.log.model import Event, Kind, Status, StreamInfo, Value
from lockstep.log.store import RunReader, Store
from lockstep.log.timeline import END, ROOT, STEP, Effect, Place, Step, Timeline, find, resolve


class Call(msgspec.Struct, frozen=True, gc=False):
    """An outermost effect, or a named step (kind `step`).

    key, digest   of the request and of the outcome; digest b"" where it is not known
    status        how it ended; None while in flight, "" for a named step
    parts         numbers of the PART events of its outcome
    pos, end_pos  its places in the order of its process; end_pos is sys.maxsize while in flight
    stream        index in `Side.streams`; step, number: its place there, number 0 where it is alone in its step
    """

    kind: str
    name: str
    lane: str
    key: bytes
    digest: bytes
    status: str | None
    seq: int
    parts: Sequence[int]
    end_seq: int
    pos: int
    end_pos: int
    at: int
    end_at: int
    stream: int
    step: int
    number: int


class Lane:
    """One strand: its calls in the order asked, a workflow's in the order answered, and what it printed."""

    __slots__ = ("calls", "children", "name", "output", "pos", "stream")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Call] = []
        self.output: dict[str, list[tuple[int, int]]] = {}  # by channel: number and position of the event
        self.children: list[Lane] = []
        self.stream = 0
        self.pos = 0

    @property
    def idle(self) -> bool:
        """Whether it neither called nor printed anything itself."""
        return not self.calls and not self.output


class Stream(msgspec.Struct):
    """One process of the side."""

    info: StreamInfo
    address: str
    timeline: Timeline
    start: int = -1  # number of its START event
    finish: int = -1  # and of its FINISH, -1 where it was cut
    ended: int = 0  # time of its last event, since it began
    steps: int = 0
    closed: list[int] = []  # positions at which its steps closed, from step 0


class Side:
    """A run as it is compared; of an address with a thread, that process alone."""

    def __init__(self, place: Place, store: Store) -> None:
        self.place = place
        self.reader: RunReader = place.timeline.reader
        self.address = str(msgspec.structs.replace(place.address, step=None, effect=None, child=()))
        self.lanes: dict[str, Lane] = {}
        self._words: dict[str, str] = {}
        self._states: checkpoints.States | None = None
        self._pages: dict[int, str] | None = None
        # A threadless address means all of the run's processes, but not what its supervisor wrote.
        thread = find(store, place.address)[1]
        infos = (
            [place.timeline.stream] if thread else [one for one in self.reader.streams if one.process != ending.PROCESS]
        )
        self.streams = [self._stream(info, alone=bool(thread)) for info in infos]
        self.whole = not thread
        for index in range(len(self.streams)):
            self._read(index)
        for lane in self.lanes.values():
            lane.calls.sort(key=lambda call: (call.stream, call.pos))
        self.roots = self._rooted()

    # Payloads.

    def body(self, stream: int, seq: int) -> Any:
        return self.reader.body(self.streams[stream].info.id, seq)

    def _state(self, call: Call) -> dict[str, Value]:
        """The state at a checkpoint of a native run: those channels that its user declared. Of a workflow's step, what
        its code asked for then; of an action, what was done and what the page was then."""
        commands = self.reader.field(self.reader.main, call.seq, checkpoints.COMMANDS)
        if isinstance(commands, list):
            return {"commands": commands}
        if acted.is_action(self.reader, self.reader.main, call.seq):
            if self._pages is None:
                self._pages = acted.pages(self.reader, self.reader.main)
            return acted.state(self.reader, self.reader.main, call.seq, self._pages.get(call.pos))
        if self._states is None:
            self._states = checkpoints.States(self.reader)
        at = self._states.at(call.pos)
        return {"state": {name: value for name, value in at.items() if channels.is_users(name)}}

    def asked(self, call: Call) -> tuple[Value, str]:
        """What was asked, and where in the program."""
        body = self.body(call.stream, call.seq)
        if call.kind == STEP:
            native = self.streams[call.stream].timeline.is_native
            return self._state(call) if native else {"state": body}, ""
        if not isinstance(body, dict):
            return None, ""
        return body.get("request"), str(body.get("site") or "")

    def effect_class(self, call: Call) -> str:
        """What the call may do to the outside, as it was judged when it was asked; "" where nothing is stored."""
        return str(self.reader.field(self.streams[call.stream].info.id, call.seq, "class") or "")

    def parts(self, call: Call) -> Iterator[Value]:
        for seq in call.parts:
            yield self.body(call.stream, seq)

    def channels(self, call: Call) -> Iterator[tuple[str, Value]]:
        """The same, each with the name of the stream that brought it."""
        if call.parts:
            wanted = set(call.parts) if not isinstance(call.parts, range) else call.parts
            stream = self.streams[call.stream].info.id
            for seq, event in self.reader.heads(stream, call.parts[0], call.parts[-1] + 1):
                if seq in wanted:
                    yield event.what, self.reader.body(stream, seq)

    def outcome(self, call: Call) -> Value:
        value: Value = self.body(call.stream, call.end_seq) if call.end_seq >= 0 else None
        return value

    def finish(self, stream: int) -> dict[str, Any]:
        """What the process said at its end; empty where it was cut."""
        if self.streams[stream].timeline.is_native:
            return {"end": self._rest(self.streams[stream])}
        seq = self.streams[stream].finish
        body = self.body(stream, seq) if seq >= 0 else None
        return body if isinstance(body, dict) else {}

    def _rest(self, stream: Stream) -> dict[str, Value]:
        """How the last turn of a native run ended. What it returned is its last state, but of a workflow."""
        turns = stream.timeline.turns
        end = turns[-1].end if turns else None
        if end is None or not (end.what == Status.ERROR or self.is_workflow):
            return {}
        value = self.reader.body(stream.info.id, turns[-1].end_seq)
        return {"error" if end.what == Status.ERROR else "result": value}

    def start(self, stream: int) -> dict[str, Any]:
        seq = self.streams[stream].start
        body = self.body(stream, seq) if seq >= 0 else None
        return body if isinstance(body, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.reader.meta
        return meta if isinstance(meta, dict) else {}

    def heads(self, kind: Kind) -> Iterator[tuple[int, int, Event]]:
        """All events of a kind: stream, number and head."""
        for index, stream in enumerate(self.streams):
            for seq, event in self.reader.heads(stream.info.id):
                if event.kind is kind:
                    yield index, seq, event

    # Addresses.

    def at_call(self, call: Call) -> str:
        number = f".{call.number}" if call.number else ""
        return f"{self.streams[call.stream].address}:{call.step}{number}"

    def at_pos(self, stream: int, pos: int) -> str:
        """The step in which a position falls."""
        found = self.streams[stream]
        return f"{found.address}:{bisect_left(found.closed, pos)}"

    def at_start(self) -> str:
        return f"{self.streams[0].address}:0"

    def at_end(self, stream: int = 0) -> str:
        found = self.streams[stream]
        return f"{found.address}:{found.steps}"

    @property
    def is_native(self) -> bool:
        """Whether a framework keeps the run."""
        return self.place.timeline.is_native

    @cached_property
    def is_workflow(self) -> bool:
        """Whether its steps say what was commanded, and no state."""
        return self.is_native and checkpoints.are_commanded(self.reader)

    def turns(self) -> list[Value]:
        """Of a workflow, what each of its executions was given. A branch goes on with one that its parent has begun."""
        if not self.is_workflow:
            return []
        stream = self.streams[0]
        given: list[Value] = []
        left: Value = None
        for turn in stream.timeline.turns:
            body = self.reader.field(stream.info.id, turn.seq, "request")
            if not isinstance(body, dict):
                continue
            arguments = body.get("arguments")
            if left is None or arguments != left:
                given.append({"name": turn.name, "arguments": arguments, "cause": body.get("cause")})
            left = arguments if turn.left else None
        return given

    @property
    def numbered(self) -> int:
        """Steps between the input and the end, over all processes."""
        return sum(max(0, stream.steps - 1) if not stream.timeline.is_native else len(stream.closed)
                   for stream in self.streams)  # fmt: skip

    # Reading.

    def _stream(self, info: StreamInfo, *, alone: bool) -> Stream:
        if alone:
            return Stream(info, self.address, self.place.timeline)
        if len(self.place.timeline.streams) == 1 and info.process == self.place.timeline.stream.process:
            return Stream(info, self.address, self.place.timeline)
        # Of several processes each has steps of its own here, numbered as in `RUN/PROCESS:k`.
        name = info.process.removeprefix(f"{ROOT}/")
        path = "/".join([self.place.address.path, *(addresses.quote(part) for part in name.split("/"))])
        address = addresses.Address(path, self.place.address.branch)
        return Stream(info, str(address), Timeline(self.reader, info.process))

    def _read(self, index: int) -> None:
        stream = self.streams[index]
        stream.closed = []
        named: dict[int, Event] = {}

        def seen(seq: int, event: Event) -> None:
            kind = event.kind
            stream.ended = max(stream.ended, event.at)
            if kind is Kind.LANE:
                lane = self._lane(event.name)
                lane.stream, lane.pos = index, event.pos
            elif kind is Kind.OUTPUT:
                self._lane(event.lane).output.setdefault(event.what, []).append((seq, event.pos))
            elif kind is Kind.STEP:
                named[seq] = event
            elif kind is Kind.START:
                stream.start = seq
            elif kind is Kind.FINISH:
                stream.finish = seq

        for step in stream.timeline.walk(seen):
            stream.steps = step.number
            pos = sys.maxsize
            if step.kind == STEP or (stream.timeline.is_native and step.kind != END):
                event = named.pop(step.seq)
                pos = event.pos
                self._add(
                    Call(STEP, self._word(step.name), self._word(step.lane), event.key, b"", "", step.seq, (), -1, pos,
                         pos, step.at, step.at, index, step.number, 0)
                )  # fmt: skip
            alone = len(step.effects) == 1 and step.effects[0].end_seq == step.seq
            for effect in step.effects:
                self._add(self._call(effect, index, step, 0 if alone else effect.number))
                if effect.end is not None and effect.end_seq == step.seq:
                    pos = effect.end.pos
            stream.closed.append(pos if step.number else 0)

    def _call(self, effect: Effect, stream: int, step: Step, number: int) -> Call:
        begin, end = effect.begin, effect.end
        # A branch begins what was on at its fork anew; what a workflow does follows from when it is told.
        pos = end.pos if end is not None and self.is_workflow else begin.pos
        parts: Sequence[int] = effect.parts
        if parts and parts[-1] - parts[0] == len(parts) - 1:
            parts = range(parts[0], parts[-1] + 1)
        return Call(
            self._word(begin.what), self._word(begin.name), self._word(begin.lane), begin.key,
            end.key if end is not None else b"", Status(end.what).value if end is not None else None, effect.seq, parts,
            effect.end_seq, pos, end.pos if end is not None else sys.maxsize, begin.at,
            end.at if end is not None else begin.at, stream, step.number, number,
        )  # fmt: skip

    def _add(self, call: Call) -> None:
        self._lane(call.lane).calls.append(call)

    def _lane(self, name: str) -> Lane:
        found = self.lanes.get(name)
        if found is None:
            found = self.lanes[self._word(name)] = Lane(self._word(name))
        return found

    def _word(self, text: str) -> str:
        # Names repeat; each is kept once.
        return self._words.setdefault(text, text)

    def _rooted(self) -> list[Lane]:
        roots: list[Lane] = []
        for name, lane in self.lanes.items():
            parent = self.lanes.get(name.rpartition("/")[0])
            (roots if parent is None else parent.children).append(lane)
        return roots


def read(store: Store, text: str) -> Place:
    """What one of two addresses to compare names: a run, a step or an effect of it. Raises AddressError."""
    place = resolve(store, text)
    if place.address.child:
        raise AddressError(
            Code.NO_ADDRESS, f"{text} is nested in another call and not compared by itself: compare {_outer(place)}"
        )
    return place


def _outer(place: Place) -> str:
    return str(msgspec.structs.replace(place.address, child=()))
