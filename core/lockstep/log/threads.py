"""Native threads in a run: what a framework's thread (a conversation, a workflow) did while a session was on.

Its checkpoints are STEP events of the session's run, in whichever strands they were made, each with its *native lane*:
`langgraph/t-91`, or `langgraph/t-91/search` for those of a part of it. So a thread has a sequence of steps of its own
beside the run's: each checkpoint closes one, the first one is step 0, and an effect belongs to the next checkpoint of
the native lane that it was asked for in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lockstep.log.address import unquote
from lockstep.log.model import Event, Kind

THREAD = "thread"  # field of a BEGIN's body: its native lane


class Native(msgspec.Struct, frozen=True):
    """A native lane: the adapter's name, the thread's id and the part of it, if it is one, quoted as in an address."""

    lane: str

    @property
    def thread(self) -> str:
        """The id of the thread."""
        return unquote(self.lane.split("/", 2)[1])

    def has(self, lane: str) -> bool:
        """Whether a native lane is this one or a part of it."""
        return lane == self.lane or lane.startswith(f"{self.lane}/")


def native(event: Event) -> str:
    """The native lane of a checkpoint, "" for a step that is none: a place in a program has a colon, a lane none."""
    return event.what if event.kind is Kind.STEP and "/" in event.what and ":" not in event.what else ""


def named(lanes: Iterable[str], text: str) -> Native | None:
    """The native lane that an address means: by the id of its thread, or all of its name."""
    found = {"/".join(lane.split("/", 2)[:2]) for lane in lanes}
    whole = [lane for lane in found if unquote(lane) == text or Native(lane).thread == text]
    if len(whole) == 1:
        return Native(whole[0])
    parts = [lane for lane in lanes if text in (unquote(lane), unquote(lane.split("/", 1)[1]))]
    return Native(parts[0]) if len(set(parts)) == 1 else None


def threads(events: Iterable[Event]) -> list[str]:
    """The native lanes of a stream's checkpoints, in the order in which they began."""
    found: dict[str, None] = {}
    for event in events:
        if lane := native(event):
            found[lane] = None
    return list(found)


def within(
    events: Iterable[tuple[int, Event]], asked: Callable[[int], object], of: Native
) -> Iterator[tuple[int, Event]]:
    """The events of a stream that belong to a thread: its checkpoints, and its effects with all that is nested in them.

    asked  the native lane that the effect with this number was asked for in
    """
    theirs: set[int] = set()
    for seq, event in events:
        if event.kind is Kind.STEP:
            if of.has(native(event)):
                yield seq, event
        elif event.kind is Kind.BEGIN:
            if event.of in theirs or (not event.of and of.has(str(asked(seq) or ""))):
                theirs.add(event.pos)
                yield seq, event
        elif event.of in theirs or event.kind is Kind.FINISH:
            yield seq, event
