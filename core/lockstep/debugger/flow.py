"""A run as a flow of values: what gave something, what was asked with it, and in which order.

What gives something: each effect, nested ones too, with its answer; what the run or a turn of it was given; what the
program read of its environment, files and clocks; and the states that its steps left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

from lockstep.debugger import acted, calls, checkpointed, looked, outcomes
from lockstep.debugger.sharing import Source
from lockstep.debugger.tracks import Track, track
from lockstep.log.model import Event, Kind, Value
from lockstep.log.timeline import END, INPUT, STEP, Effect, Step, Timeline
from lockstep.session import reads
from lockstep.session.snapshot import TAG

type Sort = Literal["effect", "step", "input", "read"]

REQUEST, OUTCOME = "request", "outcome"
ALWAYS = 0  # the order of what was there before the run began
_CLOCKS = ("time.time", "datetime.", "date.")
_READINGS = 2000  # of clocks that are looked at
_EARLIEST = 10**17  # ns since 1970: below that, a reading is no time of day


class Node:
    """Something that gave a value.

    sort      effect, step, input or read
    step      number of the step that it belongs to
    asked     its order when it was asked, `answered` when it had answered: values go from what answered before to what
              was asked after
    inner     what was asked on the way to its answer: nested effects
    """

    def __init__(
        self, number: int, address: str, sort: Sort, kind: str, name: str, step: int, asked: int, answered: int | None,
        timeline: Timeline, *, effect: Effect | None = None, values: tuple[Value, Value] = (None, None),
    ) -> None:  # fmt: skip
        self.number, self.address, self.sort, self.kind, self.name, self.step = number, address, sort, kind, name, step
        self.asked, self.answered = asked, answered
        self.inner: list[Node] = []
        self.effect = effect
        self._timeline, self._values = timeline, values

    @cached_property
    def _call(self) -> calls.Call | None:
        return calls.read(self._timeline, self.effect) if self.effect is not None else None

    def value(self, side: str) -> Any:
        """What was asked, or answered, as `show` prints it."""
        if self.sort == "read":
            return self._values[side == OUTCOME]
        if self._call is None:
            return outcomes.to_json(self._values[side == OUTCOME])
        return self._call.request if side == REQUEST else self._call.outcome

    @property
    def is_exchange(self) -> bool:
        return self._call is not None and calls.is_exchange(self.kind, self._call.request)

    @cached_property
    def request(self) -> Track:
        return track(self.value(REQUEST), exchange=self.is_exchange or self.kind == calls.MODEL)

    @cached_property
    def outcome(self) -> Track:
        return track(_joined(self.value(OUTCOME)), exchange=self.is_exchange or self.kind == calls.MODEL)

    def side(self, name: str) -> Track:
        return self.request if name == REQUEST else self.outcome

    def news(self, seen: set[bytes]) -> Track:
        """What of its request no earlier one had, item by item of its lists."""
        return track(self.value(REQUEST), exchange=self.is_exchange or self.kind == calls.MODEL, seen=seen)

    @property
    def gathers(self) -> bool:
        """Whether its answer may be made of many: then each part of it is looked for by itself."""
        return self.kind == calls.MODEL or bool(self.inner) or self.sort == "step"


class Flow:
    """All nodes of a timeline, in the order in which they answered."""

    def __init__(self, run: str, timeline: Timeline) -> None:
        """`run`: its address, without a step."""
        self.run, self.timeline = run, timeline
        self._by_pos = len(timeline.streams) == 1
        self.nodes: list[Node] = []
        self._steps: dict[int, Node] = {}
        self._effects: dict[tuple[int, int], Node] = {}
        for step in timeline.steps:
            self._read(step)
            for effect in step.effects:
                self._effect(f"{run}:{step.number}.{effect.number}", step, effect, None)
            self._step(step)
        for turn in timeline.turns:
            asked = timeline.reader.field(timeline.stream.id, turn.seq, REQUEST)
            self._add(max(turn.first, 0), "input", INPUT, turn.name, 0, self._order(turn.begin), asked)
        self._clocks()

    def of_effect(self, effect: Effect) -> Node:
        return self._effects[effect.stream, effect.seq]

    def of_step(self, step: Step) -> Node | None:
        return self._steps.get(step.number)

    def before(self, order: int) -> list[Source]:
        """All that had answered by then."""
        return [
            Source(node.number, node.answered, node.outcome)
            for node in self.nodes
            if node.answered is not None and (node.answered < order or node.answered == ALWAYS)
        ]

    @cached_property
    def requests(self) -> Sequence[Source]:
        """What each request had that none before it had."""
        seen: set[bytes] = set()
        effects = sorted((node for node in self.nodes if node.effect is not None), key=lambda node: node.asked)
        return [Source(node.number, node.asked, node.news(seen)) for node in effects]

    def _add(
        self, step: int, sort: Sort, kind: str, name: str, asked: int, answered: int | None, value: Value,
        *, request: Value = None, address: str = "",
    ) -> Node:  # fmt: skip
        node = Node(
            len(self.nodes), address or f"{self.run}:{step}", sort, kind, name, step, asked, answered, self.timeline,
            values=(request, value),
        )  # fmt: skip
        self.nodes.append(node)
        return node

    def _effect(self, address: str, step: Step, effect: Effect, parent: Node | None) -> None:
        ended = self._order(effect.end) if effect.end is not None else None
        node = Node(
            len(self.nodes), address, "effect", effect.kind, calls.name(self.timeline, effect), step.number,
            self._order(effect.begin), ended, self.timeline, effect=effect,
        )  # fmt: skip
        self.nodes.append(node)
        self._effects[effect.stream, effect.seq] = node
        if parent is not None:
            parent.inner.append(node)
        for child in effect.children:
            within = f"{address}/{child.number}"
            self._effect(within, step, child, node)

    def _step(self, step: Step) -> None:
        timeline = self.timeline
        order = self._closed(step)
        if step.kind == END:
            end: dict[str, Value] = {}
            self._steps[step.number] = self._add(step.number, "step", END, "", order, None, end)
        elif checkpointed.is_checkpoint(timeline, step):
            done = acted.read(timeline, step)
            if done is not None:
                node = self._add(
                    step.number, "effect", step.kind, step.name, order - 1, order, done.result, request=done.arguments
                )
            else:
                said: dict[str, Value] = {name: value for name, _, value in checkpointed.said(timeline, step)}
                node = self._add(step.number, "step", step.kind, step.name, order, order, said)
            self._steps[step.number] = node
        elif step.kind == INPUT:
            meta = timeline.reader.meta
            command = meta.get("command") if isinstance(meta, dict) else None
            given = {"command": command, "input": timeline.input()}
            self._steps[step.number] = self._add(step.number, "input", INPUT, "", 0, ALWAYS, given)
        elif step.kind == STEP:
            body = timeline.reader.body(step.stream, step.seq)
            self._steps[step.number] = self._add(step.number, "step", STEP, step.name, order, order, body)

    def _read(self, step: Step) -> None:
        for row, found in looked.with_values(self.run, self.timeline, step):
            content = found.get("content", found.get("names")) if isinstance(found, dict) else found
            if content is not None:
                self._add(step.number, "read", row.source, row.name, 0, ALWAYS, content, address=row.address)

    def _clocks(self) -> None:
        """Readings of the time of day. What they were used for is not told, so they are looked at as texts of it."""
        left = _READINGS
        steps = [step for step in self.timeline.steps if step.seq >= 0]
        for stream in self.timeline.streams:
            for seq, event in self.timeline.reader.heads(stream.id):
                source = event.what.removeprefix(reads.SOFT)
                if event.kind is not Kind.READS or event.name or not source.startswith(_CLOCKS) or left <= 0:
                    continue
                body = self.timeline.reader.body(stream.id, seq)
                packed = body.get("values") if isinstance(body, dict) else None
                values = reads.unpack(packed)[:left] if isinstance(packed, bytes) else []
                left -= len(values)
                texts: list[Value] = [text for value in values if value > _EARLIEST for text in _told(value)]
                if texts:
                    step = next((one.number for one in steps if one.stream == stream.id and one.seq > seq), 0)
                    self._add(step, "read", "clock", source, 0, ALWAYS, texts)

    def _closed(self, step: Step) -> int:
        if step.seq < 0 or step.kind == END:
            return 2**63
        if not self._by_pos:
            return step.at
        return next(iter(self.timeline.reader.heads(step.stream, step.seq, step.seq + 1)))[1].pos

    def _order(self, event: Event) -> int:
        return event.pos if self._by_pos else event.at


def _told(value: int) -> Iterator[Value]:
    try:
        moment = datetime.fromtimestamp(value / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return
    yield moment.isoformat()
    yield moment.isoformat(" ")
    yield str(value // 10**9)


def _joined(value: Any) -> Any:
    """An answer in its pieces: those of one text that follow each other are one text."""
    if not isinstance(value, dict) or value.get(TAG) != outcomes.GENERATOR:
        return value
    items: list[Any] = []
    for item in value.get("items") or []:
        if isinstance(item, str) and items and isinstance(items[-1], str):
            items[-1] += item
        else:
            items.append(item)
    return {**value, "items": items}
