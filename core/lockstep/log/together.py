"""The steps of several processes of a run as one list, in the order in which they completed.

Each process stores its own stream, with times since its own start; where that lies on the system's clock is
in its START event. A step is of one process, with what that process did since its step before; what none of
its steps has closed is in the closing step of the run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from lockstep.log.model import Event, Kind, StreamInfo
from lockstep.log.store import RunReader

if TYPE_CHECKING:
    from lockstep.log.timeline import Effect, Step

type Heads = Iterator[tuple[int, Event]]
type Assemble = Callable[[Heads, int], Iterator["Step"]]


def merged(
    reader: RunReader, streams: Sequence[StreamInfo], assemble: Assemble, opening: str, end: str
) -> Iterator[Step]:
    """Steps from 0, of all streams; `assemble` makes those of one. The first is the run's first process. `opening`
    and `end`: the kinds of a process's first and last step."""
    offsets = _offsets(reader, streams)

    def steps(index: int) -> Iterator[Step]:
        later = offsets[index]
        heads = sorted(reader.heads(streams[index].id), key=lambda pair: pair[1].pos)
        shifted = ((seq, _later(event, later)) for seq, event in heads)
        for step in assemble(shifted, streams[index].id):
            if step.kind == end:
                last[index] = step
            elif step.kind != opening or index == 0:
                yield step

    last: dict[int, Step] = {}
    number = -1
    for step in heapq.merge(*[steps(index) for index in range(len(streams))], key=lambda step: step.at):
        number += 1
        yield msgspec.structs.replace(step, number=number)
    left = [effect for index in sorted(last) for effect in last[index].effects]
    left.sort(key=lambda effect: effect.begin.lane)
    yield msgspec.structs.replace(last[0], number=number + 1, effects=tuple(_numbered(left)))


def _numbered(effects: Sequence[Effect]) -> Iterator[Effect]:
    for number, effect in enumerate(effects, 1):
        yield msgspec.structs.replace(effect, number=number)


def _later(event: Event, by: int) -> Event:
    return msgspec.structs.replace(event, at=event.at + by) if by else event


def _offsets(reader: RunReader, streams: Sequence[StreamInfo]) -> list[int]:
    """How many nanoseconds after the first process each one began, 0 where the record does not tell."""
    began = [_clock(reader, stream) for stream in streams]
    offsets = [clock - began[0] if clock and began[0] else 0 for clock in began]
    own = {stream.id for stream in reader.own} if reader.fork is not None else set()
    if not own.isdisjoint(stream.id for stream in streams[1:]):
        # The clocks of a branch are not those of what it shares: its processes began where their lanes did.
        lanes = {
            event.name: event.at for _, event in reader.heads(streams[0].id) if event.kind is Kind.LANE
        }  # fmt: skip
        outermost = sorted((stream.process for stream in streams[1:] if stream.id in own), key=len)
        clocks = {stream.process: clock for stream, clock in zip(streams, began, strict=True)}
        for index, stream in enumerate(streams):
            if index and stream.id in own:
                name = stream.process
                first = next(one for one in outermost if name == one or name.startswith(f"{one}/"))
                offsets[index] = lanes.get(first, 0) + began[index] - clocks[first]
    return offsets


def _clock(reader: RunReader, stream: StreamInfo) -> int:
    """When the process began, on the system's monotonic clock in ns; 0 where the record does not tell."""
    for seq, event in reader.heads(stream.id):
        if event.kind is Kind.START:
            body = reader.body(stream.id, seq)
            clock = body.get("clock") if isinstance(body, dict) else None
            return clock if isinstance(clock, int) else 0
        if event.kind not in (Kind.LANE, Kind.READS):  # what was read while the taps were put on
            return 0
    return 0
