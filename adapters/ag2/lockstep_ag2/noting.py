"""What a turn notes of its agent while it is on, whoever records or replays it: its history, and where steps are.

A step is made of each answer of the model, once the history has it, and of what has come between two of its calls: the
question, and a batch of tool results. At each the agent could go on from its history alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.log.model import Status, Value
from lockstep.session.call import status_of
from lockstep.session.lanes import ours
from lockstep.session.native import Calls
from lockstep_ag2 import events as told
from lockstep_ag2 import responses, strands
from lockstep_ag2.events import Names
from lockstep_ag2.states import History, Seen, in_order

INPUT = "input"  # the source of a turn's first step
_RESULTS = "ToolResultsEvent"
_COMPACTED = "CompactionCompleted"


class Noting:
    """A turn that is on. Is `strands.Turn`.

    native   the native lane that it runs in, of a session; "" for none
    speaker  the agent's name
    events   its history, as far as it is known
    resumes  what it goes on from, where it is no question
    """

    calls: Calls | None = None
    native = ""

    def __init__(self, speaker: str, history: History, names: Names) -> None:
        self.speaker = speaker
        self.names = names
        self.over = False
        self.events: list[Any] = []
        self.resumes: list[Any] = []
        self.compacted = False  # whether its history was made anew since the last step
        self.senders: dict[int, str] = {}  # events of its history that tool calls sent -> the call's id
        self._history = history
        self._steps = 0
        self._at: list[Any] = []  # the history at the last step

    def begin(self, agent: Any, event: Any, context: Any) -> None:
        """It is about to be driven, of a replay or a fork."""

    def heard(self, event: Any) -> None:
        """An event was sent on the stream."""
        if not told.is_transient(event):
            self.events.append(event)
            if (used := strands.using.get()) is not None:
                self.senders[id(event)] = used.id
        elif type(event).__name__ == _COMPACTED:
            self.compacted = True

    async def asking(self, events: list[Any], context: Any) -> None:
        """The model is about to be asked with this history."""
        self.events = events
        new = _new(self._at, events)
        if self._steps and not new:
            return
        names = [one.name for event in new if type(event).__name__ == _RESULTS for one in event.results]
        await self.cut(", ".join(dict.fromkeys(map(str, names))), events, context)

    async def cut(self, name: str, events: Sequence[Any], context: Any) -> None:
        """See `Turn.cut`."""
        first, self.compacted = not self._steps, False
        self._steps += 1
        self._at = list(events)
        try:
            state = self._history.seen(in_order(events, self.senders), context)
        except Exception as error:
            self._unseen(error)
            return
        self.step(INPUT if first else "", "" if first else name, state)

    async def follows(self, event: Any) -> None:
        """See `Turn.follows`."""

    def _unseen(self, error: Exception) -> None:
        self.fault("the state of a step", error)

    def step(self, source: str, name: str, state: Seen) -> None:
        """There is a step with this state."""
        raise NotImplementedError

    def fault(self, where: str, error: BaseException) -> None:
        raise NotImplementedError

    def done(self, result: Any) -> None:
        """Its agent has answered."""
        self.over = True
        self.end(Status.OK, answered(result))

    def failed(self, error: BaseException) -> None:
        """It has raised."""
        self.over = True
        self.end(status_of(error), error)

    def stopped(self) -> BaseException | None:
        """See `Turn.stopped`."""
        return None

    def end(self, status: Status, value: Any) -> None:
        raise NotImplementedError


def answered(result: Any) -> Value:
    """What a turn came to: the text of its answer; the whole answer where it asks for something yet."""
    if result is None:
        return None
    if not result.tool_calls.calls:
        content: Value = result.content
        return content
    try:
        return ours(responses.told)(result)
    except Exception:  # a fault of ours, or what is no data: its text is what is left
        return str(result.content or "")


def _new(before: Sequence[Any], events: Sequence[Any]) -> list[Any]:
    """What of a history is new to the model."""
    same = 0
    for one, other in zip(before, events, strict=False):
        if one is not other:
            break
        same += 1
    if same < len(before):
        return list(events)  # it was made anew, as by a compaction
    return [event for event in events[same:] if not told.is_telemetry(event)]
