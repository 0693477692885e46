"""Reading a run as people see it: steps, and in each the effects that completed in it.

In plain Python step 0 is the input; each outermost model, tool or HTTP effect and each named step closes
a step, numbered in recorded completion order; what follows the last one is a closing step of kind `end`,
which also holds effects that were in flight when the recording was cut. An effect belongs to the step in
which it completed and is numbered lane by lane: `7.1`, its nested calls `7.1/1`, `7.1/2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code
from lockstep.log import address as addresses
from lockstep.log import native, threads
from lockstep.log.drafts import Draft, Effect, Step, numbered
from lockstep.log.model import Event, Kind, RunState, StreamInfo, Value
from lockstep.log.roll import LAUNCH
from lockstep.log.steps import CLOSING, is_native
from lockstep.log.store import ROOT, RunReader, Store
from lockstep.log.together import merged

__all__ = ["CHECKPOINT", "END", "INPUT", "ROOT", "STEP", "Effect", "Place", "Step", "Timeline", "resolve"]

# A process begins with START, or with the lane that START is in, and what was read while the taps were put on.
BEFORE_START = (Kind.LANE, Kind.READS)

INPUT = "input"
END = native.END
STEP = "step"
CHECKPOINT = native.CHECKPOINT
_MOST_NAMES = 12  # that an error lists


class Timeline:
    """The steps of a branch of a run, or of one of its processes. Reads heads when first asked, and bodies one by one.

    stream   that of the process, of a whole run that of the first
    native   the native thread that it is of, None where it is of processes
    streams  all that it is made of
    """

    def __init__(self, reader: RunReader, thread: str = "") -> None:
        """`thread`: a process of the run, as its lane is called, with or without the leading `main/`, or a native
        thread (`lockstep.log.threads`) by its id; "" for all."""
        self.reader = reader
        self.stream, self.native = _stream(reader, thread)
        self.streams = (self.stream,) if thread else _processes(reader, self.stream)
        self.is_native = is_native(reader.meta)

    @property
    def state(self) -> RunState:
        """That of the run, or of the branch that is read."""
        return self.reader.info.state

    @property
    def name(self) -> str:
        """The run's, with its branch where that is not main."""
        return addresses.called(self.reader.info.name, self.reader.branch)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All steps, from the input to the end. Reads all heads."""
        return tuple(self.walk())

    def walk(self, seen: Callable[[int, Event], None] | None = None) -> Iterator[Step]:
        """The steps one by one, from the input to the end: of a run that is read this way, only what is kept of
        it takes memory. `seen` is told of each event with its number, before the step that it closes; only for a
        single process."""
        if self.native is not None:
            yield from self._of_thread(self.native)
            return
        if len(self.streams) > 1:
            yield from merged(self.reader, self.streams, _assemble, INPUT, END)
            return
        heads = self.reader.heads(self.stream.id)
        if self.is_native:
            yield from native.steps(heads if seen is None else _told(heads, seen), self.stream.id)
            return
        if self.reader.find_step(self.stream.id, 1) is None:
            # Threads that wrote at once may be stored slightly out of order.
            heads = iter(sorted(heads, key=lambda pair: pair[1].pos))
        yield from _assemble(heads if seen is None else _told(heads, seen), self.stream.id)

    def step(self, number: int) -> Step:
        """One step, found by index where it can be. Raises AddressError LS206."""
        seeks = number > 0 and len(self.streams) == 1 and self.native is None and not self.is_native
        if seeks and "steps" not in self.__dict__:
            found = self._seek(number)
            if found is not None:
                return found
        if not 0 <= number < len(self.steps):
            last = len(self.steps) - 1
            raise AddressError(Code.NO_ADDRESS, f"{self.name} has no step {number}: its steps are 0 to {last}")
        return self.steps[number]

    def effect(self, step: int, number: int, child: tuple[int, ...] = ()) -> Effect:
        """One effect. Raises AddressError LS206."""
        found = self.step(step).effects
        name = f"{self.name}:{step}"
        for depth, index in enumerate((number, *child)):
            if not 1 <= index <= len(found):
                what = "effect" if depth == 0 else "nested call"
                raise AddressError(Code.NO_ADDRESS, f"{name} has no {what} {index}: there are {len(found)}")
            effect = found[index - 1]
            name += f".{index}" if depth == 0 else f"/{index}"
            found = effect.children
        return effect

    def call(self, name: str, nth: int) -> tuple[int, int]:
        """Step and number of the n-th effect of a name, from 1, in the order in which they were asked for. Raises
        AddressError LS206."""
        effects = [(effect, step.number) for step in self.steps for effect in step.effects]
        found = sorted((each for each in effects if each[0].name == name), key=lambda each: each[0].begin.pos)
        if nth <= len(found):
            return found[nth - 1][1], found[nth - 1][0].number
        if found:
            raise AddressError(Code.NO_ADDRESS, f"{self.name} has no {name}#{nth}: there are {len(found)} of that name")
        known = ", ".join(sorted({addresses.quote(effect.name) for effect, _ in effects if effect.name})[:_MOST_NAMES])
        raise AddressError(Code.NO_ADDRESS, f"{self.name} has no call named {name}. It has: {known or 'none'}")

    @cached_property
    def turns(self) -> tuple[native.Turn, ...]:
        """The native invocations of a native run, in order; none of another run, which is one turn itself."""
        return native.turns(self.reader.heads(self.stream.id)) if self.is_native else ()

    def request(self, effect: Effect) -> Value:
        """What was asked."""
        return self._asked(effect).get("request")

    def site(self, effect: Effect) -> str:
        """Where in the program it was asked, as `file:line in function`; "" if not known."""
        return str(self._asked(effect).get("site") or "")

    def effect_class(self, effect: Effect) -> str:
        """What it may do to the outside, as it was judged when it was asked; "" where nothing is stored of that."""
        return str(self.reader.field(effect.stream, effect.seq, "class") or "")

    def parts(self, effect: Effect) -> Iterator[Value]:
        """The pieces of its outcome, in order."""
        for seq in effect.parts:
            yield self.reader.body(effect.stream, seq)

    def pieces(self, effect: Effect) -> Iterator[tuple[str, Value]]:
        """As `parts`, each with the channel that brought it."""
        for seq in effect.parts:
            _, event = next(iter(self.reader.heads(effect.stream, seq, seq + 1)))
            yield event.what, self.reader.body(effect.stream, seq)

    def outcome(self, effect: Effect) -> Value:
        """Its value, or encoded error; None where the parts were all of it, or while in flight."""
        return self.reader.body(effect.stream, effect.end_seq) if effect.end is not None else None

    def input(self) -> Value:
        """What the process began with: the body of its START event."""
        seq = self.step(0).seq
        return self.reader.body(self.stream.id, seq) if seq >= 0 else None

    def _asked(self, effect: Effect) -> dict[str, Any]:
        body = self.reader.body(effect.stream, effect.seq)
        return body if isinstance(body, dict) else {}

    def _of_thread(self, thread: threads.Native) -> Iterator[Step]:
        stream = self.stream.id

        def asked(seq: int) -> str:
            return str(self.reader.field(stream, seq, threads.THREAD) or "")

        heads = sorted(self.reader.heads(stream), key=lambda pair: pair[1].pos)
        theirs = threads.within(heads, asked, thread)
        yield from _checkpointed(theirs, stream, lambda seq, event: threads.native(event) or asked(seq))

    def _seek(self, number: int) -> Step | None:
        """The step, read from around it. None: it must be looked for in the whole stream."""
        # From the row where the step before closes: effects that close no step may have ended in between.
        found = self.reader.find_step(self.stream.id, number - 1)
        if found is None:
            return None
        since, closed = found
        start = since
        while True:
            try:
                for step in _assemble(self.reader.heads(self.stream.id, start), self.stream.id, since, closed):
                    if step.number == number:
                        # Of an end, what was in flight may have begun anywhere.
                        return step if step.kind != END else None
            except _BegunBefore as before:
                earlier = self._seq(before.pos, start)
                if earlier is None:
                    return None
                start = earlier
            else:
                return None

    def _seq(self, pos: int, stop: int) -> int | None:
        """Number of the event at a position, before number `stop`, in a stream stored in their order."""
        low, high = 0, stop
        while low < high:
            middle = (low + high) // 2
            # Of a branch, some numbers below its base may be missing.
            seq, event = next(self.reader.heads(self.stream.id, middle, high), (high, None))
            if event is not None and event.pos == pos:
                return seq
            low, high = (seq + 1, high) if event is not None and event.pos < pos else (low, middle)
        return None


class Place(msgspec.Struct, frozen=True):
    """What an address names. `step` and `effect` are None where it names none."""

    address: addresses.Address
    timeline: Timeline
    step: Step | None
    effect: Effect | None


def resolve(store: Store, text: str) -> Place:
    """What an address names in a store. Raises AddressError LS205 (no such run), LS206 (no such place)."""
    address = addresses.parse(text)
    run, thread = find(store, address)
    if not thread:
        address = msgspec.structs.replace(address, path=run)
    timeline = Timeline(store.run(run, address.branch), thread)
    if address.call:
        step_number, effect_number = timeline.call(*addresses.named(address.call))
        address = msgspec.structs.replace(address, step=step_number, effect=effect_number, call="")
    if address.step is None:
        return Place(address, timeline, None, None)
    step = timeline.step(address.step)
    if address.effect is None:
        return Place(address, timeline, step, None)
    return Place(address, timeline, step, timeline.effect(address.step, address.effect, address.child))


def find(store: Store, address: addresses.Address) -> tuple[str, str]:
    """The run's name and the thread's ("" for none). Where no run is called so, the one native run whose thread is.
    Raises AddressError LS205."""
    try:
        return addresses.split(address, store.has_run)
    except AddressError:
        thread = addresses.unquote(address.path)
        meant = [name for name in store.names() if "/" in name and _thread_of(name) == thread]
        if len(meant) == 1:
            return meant[0], ""
        if meant:
            names = ", ".join(meant[:5]) + (", …" if len(meant) > 5 else "")
            raise AddressError(Code.NO_RUN, f"{address.path} may mean any of these runs: {names}") from None
        raise


def _thread_of(name: str) -> str:
    """The id of the thread that a native run's name has."""
    return addresses.unquote(name.partition("/")[2])


def branch_of(store: Store, text: str) -> RunReader:
    """What `RUN` or `RUN@BRANCH` names. Raises AddressError LS205, LS206."""
    address = addresses.parse(text)
    run, thread = find(store, address)
    if thread or address.step is not None or address.call:
        raise AddressError(Code.NO_ADDRESS, f"a whole run or branch is meant here, as {run}, and not {text}")
    return store.run(run, address.branch)


def _stream(reader: RunReader, thread: str) -> tuple[StreamInfo, threads.Native | None]:
    if not thread:
        if reader.streams:
            return reader.streams[0], None
        name = addresses.called(reader.info.name, reader.branch)
        raise AddressError(Code.NO_ADDRESS, f"run {name} holds nothing: it was cut before it began")
    for stream in reader.streams:
        if stream.process in (thread, f"{ROOT}/{thread}"):
            return stream, None
    known = [stream.process for stream in reader.streams]
    for stream in reader.streams:
        lanes = threads.threads(event for _, event in reader.heads(stream.id))
        if (found := threads.named(lanes, thread)) is not None:
            return stream, found
        known += lanes
    raise AddressError(Code.NO_ADDRESS, f"run {reader.info.name} has no thread {thread}. It has: {', '.join(known)}")


def _processes(reader: RunReader, first: StreamInfo) -> tuple[StreamInfo, ...]:
    """The streams of a run's processes, its first process's first. The last of one that began anew."""
    last = {stream.process: stream for stream in reader.streams if stream.process != LAUNCH}
    return (first, *(stream for process, stream in last.items() if process != first.process and stream.events))


class _BegunBefore(Exception):
    """An effect ended that began before the events at hand."""

    def __init__(self, pos: int) -> None:
        super().__init__(pos)
        self.pos = pos


def _told(heads: Iterable[tuple[int, Event]], seen: Callable[[int, Event], None]) -> Iterator[tuple[int, Event]]:
    for seq, event in heads:
        seen(seq, event)
        yield seq, event


def _assemble(
    events: Iterable[tuple[int, Event]], stream: int, since: int | None = None, closed: int = 0
) -> Iterator[Step]:
    """Steps from events of a stream, in the order of positions. With `since` they may begin anywhere: steps are
    closed from that number on, after `closed` others. Without, they are all events of a stream."""
    drafts: dict[int, Draft] = {}
    done: list[Draft] = []
    number = closed
    opened = closed > 0
    last = (-1, 0)
    before = -1
    for seq, event in events:
        kind = event.kind
        if not opened and kind not in BEFORE_START:
            opened = True
            started = kind is Kind.START
            yield Step(0, INPUT, "", event.lane, seq if started else -1, event.at if started else 0, (), stream)
            before = seq if started else -1
        if kind is Kind.BEGIN:
            draft = drafts[event.pos] = Draft(seq, event)
            if event.of in drafts:
                drafts[event.of].children.append(draft)
        elif kind is Kind.PART:
            if event.of in drafts:
                drafts[event.of].parts.append(seq)
        elif kind is Kind.END:
            ended = drafts.get(event.of)
            if ended is None:
                if since is not None and seq >= since:
                    raise _BegunBefore(event.of)
                continue
            del drafts[event.of]
            ended.end, ended.end_seq = event, seq
            begin = ended.begin
            if not begin.of and (since is None or seq >= since):
                done.append(ended)
                if begin.what in CLOSING:
                    number += 1
                    yield Step(number, begin.what, begin.name, begin.lane, seq, event.at, numbered(done, stream),
                               stream, before)  # fmt: skip
                    done, before = [], seq
        elif kind is Kind.STEP and (since is None or seq >= since):
            number += 1
            yield Step(number, STEP, event.name, event.lane, seq, event.at, numbered(done, stream), stream, before)
            done, before = [], seq
        elif kind is Kind.FINISH:
            last = seq, event.at
    flying = [draft for draft in drafts.values() if not draft.begin.of and draft.end is None]
    if not opened:
        yield Step(0, INPUT, "", "", -1, 0, (), stream)
    yield Step(number + 1, END, "", "", last[0], last[1], numbered(done + flying, stream), stream, before)


def _checkpointed(
    events: Iterable[tuple[int, Event]], stream: int, lane_of: Callable[[int, Event], str]
) -> Iterator[Step]:
    """Steps that close at checkpoints only, the first of which is step 0. An effect belongs to the next checkpoint of
    its native lane, or of one that has this among its parts. `lane_of` tells that of a checkpoint or effect."""
    drafts: dict[int, Draft] = {}
    done: list[tuple[str, Draft]] = []
    number, before, last = 0, -1, (-1, 0)
    for seq, event in events:
        kind = event.kind
        if kind is Kind.BEGIN:
            draft = drafts[event.pos] = Draft(seq, event)
            if event.of in drafts:
                drafts[event.of].children.append(draft)
        elif kind is Kind.PART and event.of in drafts:
            drafts[event.of].parts.append(seq)
        elif kind is Kind.END and event.of in drafts:
            ended = drafts[event.of]
            ended.end, ended.end_seq = event, seq
            if not ended.begin.of:
                done.append((lane_of(ended.seq, ended.begin), ended))
        elif kind is Kind.STEP:
            lane = lane_of(seq, event)
            theirs = [draft for of, draft in done if of == lane or of.startswith(f"{lane}/")]
            done = [(of, draft) for of, draft in done if draft not in theirs]
            yield Step(number, CHECKPOINT, event.name, lane, seq, event.at, numbered(theirs, stream), stream, before)
            number, before = number + 1, seq
        elif kind is Kind.FINISH:
            last = seq, event.at
    left = [draft for draft in drafts.values() if draft.end is None and not draft.begin.of]
    left += [draft for _, draft in done]
    if left or not number:
        yield Step(number, END, "", "", last[0], last[1], numbered(left, stream), stream, before)
