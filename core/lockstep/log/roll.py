"""The roll of a run: which streams it had, and how far each, when its command was over.

The supervisor puts it into the last event of its own stream, so that the chain covers it: a stream that is taken
away as a whole, or cut off and said to have been interrupted, is missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lockstep.log.model import RunState, StreamInfo, Value
from lockstep.log.store import RunReader

LAUNCH = "launch"  # the supervisor's stream
STREAMS = "streams"  # the roll's key in the body of its FINISH event


def call(reader: RunReader) -> Value:
    """The roll as it is now: `[process, state, events, head]` of each stream that the branch wrote, the head empty for
    an open one."""
    roll: list[Value] = []
    for stream in reader.own:
        end = reader.end(stream.id)
        closed = end.state is not RunState.GROWING
        roll.append([stream.process, end.number, stream.events, end.head if closed else b""])
    return roll


def missing(roll: Any, reader: RunReader, streams: Sequence[StreamInfo]) -> Iterator[tuple[str, str]]:
    """(process, what is wrong) for each stream that is not as the roll has it. `streams`: those that there are now."""
    if not isinstance(roll, list):
        return
    for entry in roll:
        match entry:
            case [str(process), int(state), int(events), bytes(head)]:
                found = [stream for stream in streams if stream.process == process]
                if not found:
                    yield process, "missing: the stream was there when the command ended"
                elif state and not any(_ended(reader, stream.id, state, events, head) for stream in found):
                    yield (
                        process,
                        f"the stream had ended with {events} events when the command ended, and is another one now",
                    )
                elif max(stream.events for stream in found) < events:
                    yield process, f"the stream had {events} events when the command ended, and has fewer now"
            case _:
                yield "", "the roll of streams does not make sense"


def _ended(reader: RunReader, stream: int, state: int, events: int, head: bytes) -> bool:
    end = reader.end(stream)
    return (end.number, end.events, end.head) == (state, events, head)
