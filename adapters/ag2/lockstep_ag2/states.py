"""A conversation's state at a place from which its agent could go on, as a step has it.

    messages     what was said, to read
    variables    of the context, where there are any
    __events__   the history itself, from which AG2 goes on; not shown

A list that grew stores what is new only, and each event is made data once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from ag2.events import ModelRequest, ModelResponse, ToolCallEvent, ToolCallsEvent, ToolResultEvent, ToolResultsEvent

from lockstep.log import canonical, checkpoints
from lockstep.log.checkpoints import State
from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_ag2 import events
from lockstep_ag2.events import Names

EVENTS, MESSAGES, VARIABLES = "__events__", "messages", "variables"
_WHOLE_EACH = 50  # steps: a reader needs no more records than these for a state
_UNKEPT = frozenset({"HumanInputRequest", "ToolApprovalRequest"})  # kept only where nobody answers


_CLOSES = (ToolCallsEvent, ToolResultsEvent, ModelRequest, ModelResponse)  # what ends a batch of tool calls


class _Known(msgspec.Struct, frozen=True):
    """An event as it is stored, with what it says, and its digest."""

    event: Any
    raw: Value
    said: list[Value]
    digest: bytes


class Seen(msgspec.Struct, frozen=True):
    """A state: as channels, and its digest."""

    channels: State
    digest: bytes


class History:
    """A conversation's history as far as it is known, and what was last stored of it.

    hide  hides secrets in what is new
    """

    def __init__(self, hide: Any, names: Names) -> None:
        self._hide = hide
        self._names = names
        self._known: list[_Known] = []
        self._stored: State | None = None
        self._count = 0
        self._above = 0

    def seen(self, found: Sequence[Any], context: Any) -> Seen:
        """The state of these events and this context. Raises StoreError LS207 for what is no data."""
        kept = [event for event in found if not events.is_transient(event) and type(event).__name__ not in _UNKEPT]
        same = 0
        for known, event in zip(self._known, kept, strict=False):
            if known.event is not event:
                break
            same += 1
        del self._known[same:]
        for event in kept[same:]:
            self._names.learn(event)
            self._known.append(self._new(event))
        channels: State = {
            MESSAGES: [one for known in self._known for one in known.said],
            EVENTS: [known.raw for known in self._known],
        }
        parts = [known.digest for known in self._known]
        if variables := _variables(context.variables):
            channels[VARIABLES] = self._hide(self._names.rename(variables))
            parts.append(canonical.digest(channels[VARIABLES]))
        return Seen(channels, blake2b(b"".join(parts), digest_size=32).digest())

    def _new(self, event: Any) -> _Known:
        raw, said = self._hide(self._names.rename([events.dump(event), events.messages([event])]))
        return _Known(event, raw, said, canonical.digest(events.compared(raw)))

    def record(self, state: Seen) -> tuple[dict[str, Value], int]:
        """The state as a step's record, and the position of the step that it is told against, 0 for none."""
        whole = self._stored is None or self._count % _WHOLE_EACH == 0
        self._count += 1
        return checkpoints.record(None if whole else self._stored, state.channels), self._above

    def stored(self, state: Seen, pos: int) -> None:
        """It was, at this position."""
        self._stored, self._above = state.channels, pos

    def begin_after(self, state: State, pos: int) -> None:
        """What is stored next follows this state."""
        self._stored, self._above = state, pos


def in_order(found: Sequence[Any], senders: Mapping[int, str]) -> list[Any]:
    """A history with what came of each batch of tool calls in the order of the batch. AG2 runs the calls at once, and
    its history has what came of them as it came, which says nothing: the model is told of the batch. So it is with the
    tasks of one call. `senders`: by the identity of an event, the call that sent it."""
    told: list[Any] = []
    batch: list[str] = []
    open_: list[Any] = []
    for event in found:
        if batch and not isinstance(event, _CLOSES):
            open_.append(event)
        else:
            told += _sorted(open_, batch, senders)
            open_, batch = [], []
            if isinstance(event, ToolCallsEvent):
                batch = [call.id for call in event.calls]
            told.append(event)
    return told + _sorted(open_, batch, senders)


def _sorted(found: list[Any], batch: list[str], senders: Mapping[int, str]) -> list[Any]:
    def place(event: Any) -> tuple[int, int, str]:
        kind = 0 if isinstance(event, ToolCallEvent) else 2 if isinstance(event, ToolResultEvent) else 1
        of = event.id if kind == 0 else event.parent_id if kind == 2 else senders.get(id(event), "")
        return kind, batch.index(of) if of in batch else len(batch), str(getattr(event, "objective", ""))

    return sorted(found, key=place)


def _variables(variables: Mapping[Any, Any]) -> dict[str, Value]:
    """The context's variables as data; what is none counts by its class."""
    return {str(name): snapshot.taken(value) for name, value in list(variables.items())}
