"""What a model's call is heard to say while it runs: its events on CrewAI's bus, the chunks of a stream, the tokens it
counts, and the hooks that it calls itself. What says it again when the call is served is `lockstep_crewai.voice`.

Heard, in the order in which it came, as pieces of the call (`Call.part`):

    "text"                                  a chunk of the answer
    {"chunk": text, "response_id": id}      the first chunk of an answer that has an id; those after it have the same
    {"chunk": text, "tool_call": {…}}       a chunk of the arguments of a tool call: its "id", "name" and "index", which
                                            add up to its arguments ("arguments" where they do not)
    {"thinking": text}                      a chunk of what the model thinks, with such an id too
    {"failed": text}                        it said that it failed
    {"usage": {…}}                          it counted tokens, and did so again later
    {"event": "started"}                    it said that it began, as CrewAI's own models always do first
    {"event": "completed", …}               it was over, and something else was said after that
    {"event": "completed", …, "ahead": true}  it was over: in a session, where who listens has places of its own
    {"event": "ToolUsage…Event", "of": {…}} it ran a function that it was given
    {"hooks": "before"}                     it had the program's hooks look at its request …
    {"hooks": "after", "said": text}        … and at this answer

What usually is said is no piece, but part of the outcome: that it began, what tokens it used, and that it is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

from crewai.events.event_bus import CrewAIEventsBus
from crewai.events.types import mcp_events, tool_usage_events
from crewai.events.types.llm_events import (
    LLMCallCompletedEvent,
    LLMCallFailedEvent,
    LLMCallStartedEvent,
    LLMCallType,
    LLMStreamChunkEvent,
    LLMThinkingChunkEvent,
)
from crewai.hooks.dispatch import InterceptionPoint, get_hooks, get_scoped_hooks
from crewai.llms.base_llm import BaseLLM

from lockstep.log.model import Value
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep.session.call import Call, Inside
from lockstep.session.effects import Within
from lockstep_crewai import classes
from lockstep_crewai.canonical import inert

STARTED, COMPLETED = "started", "completed"
AHEAD = "ahead"  # of a piece that says it was over: it is the last word, unless the outcome says that it was silent

# Whether an agent has had hooks look at the request that its model is about to make: before 1.15.20 nobody says so.
_looked_at = classes.there("crewai.hooks.llm_hooks:model_call_hooks_already_dispatched") or (lambda: False)

# The model's call whose own code is running, where one listens to it.
hearing: ContextVar[Listener | None] = ContextVar("lockstep_crewai_heard", default=None)


def install() -> None:
    """Listens to CrewAI's bus, and to the tokens and hooks of models. Once."""
    classes.wrap(CrewAIEventsBus, "emit", _emitting)
    classes.each(BaseLLM, _listen)


def _listen(cls: type) -> None:
    classes.wrap(cls, "_track_token_usage_internal", _tracking)
    classes.wrap(cls, "_invoke_before_llm_call_hooks", _before)
    classes.wrap(cls, "_invoke_after_llm_call_hooks", _after)


def _emitting(plain: Any) -> Any:
    # Whoever listens is the program, also where it is a call that has the bus told: in a session its code is gated, and
    # its threads have lanes, while the call runs and when it is served.
    @wraps(plain)
    def emit(self: Any, source: Any, event: Any) -> Any:
        heard, outer = hearing.get(), _outer.get()
        if heard is not None:
            heard.event(event)
            if sessions.session is not None and heard.says_again(event):
                with heard.program():
                    return plain(self, source, event)
        elif outer and _is_said(event):
            with Within(outer[0]):
                return plain(self, source, event)
        return plain(self, source, event)

    return emit


# Of a call that is served, and of which something is said again: whose code has made it. Else nothing.
_outer: ContextVar[tuple[Any, ...]] = ContextVar("lockstep_crewai_outer", default=())


@contextmanager
def as_inside() -> Iterator[None]:
    """What is done in this block is done for a call that is served, and was a part of it when that ran: the clocks that
    it reads are none of the program's."""
    if sessions.session is None:
        yield
        return
    token = _outer.set((lanes.INSIDE.get(),))
    try:
        with Within(True):
            yield
    finally:
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            _outer.reset(token)


def _tracking(plain: Any) -> Any:
    @wraps(plain)
    def track(self: Any, usage_data: Any) -> Any:
        heard = hearing.get()
        if heard is not None:
            heard.used(usage_data)
            with listening(None):  # one that overrides another may call that
                return plain(self, usage_data)
        return plain(self, usage_data)

    return track


def _before(plain: Any) -> Any:
    @wraps(plain)
    def before(self: Any, *args: Any, **options: Any) -> Any:
        heard = hearing.get()
        if heard is not None and _looks(InterceptionPoint.PRE_MODEL_CALL):
            heard.part({"hooks": "before"})
        return plain(self, *args, **options)

    return before


def _after(plain: Any) -> Any:
    @wraps(plain)
    def after(self: Any, messages: Any, response: Any, *args: Any, **options: Any) -> Any:
        heard = hearing.get()
        if heard is not None and isinstance(response, str) and _looks(InterceptionPoint.POST_MODEL_CALL):
            heard.part({"hooks": "after", "said": response})
        return plain(self, messages, response, *args, **options)

    return after


def _looks(point: InterceptionPoint) -> bool:
    """Whether a model's call is about to have hooks look at it: its agent has not done so, and there are some."""
    return not _looked_at() and bool(get_hooks(point) or get_scoped_hooks(point))


@contextmanager
def listening(heard: Listener | None) -> Iterator[None]:
    """In this block this one listens, or nobody."""
    token = hearing.set(heard)
    try:
        yield
    finally:
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            hearing.reset(token)


def is_own(llm: Any, method: str) -> bool:
    """Whether a model's call is CrewAI's own code, which says that it begins, and that it is over."""
    defining = next((cls for cls in type(llm).__mro__ if method in vars(cls)), BaseLLM)
    return defining is not BaseLLM and defining.__module__.startswith("crewai.")


class Listener:
    """Listens to a call, and makes nothing of it."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def part(self, value: Value) -> None:
        """What is heard, as a piece of the call."""

    def event(self, event: Any) -> None:
        """What goes to the bus while the call runs."""

    def used(self, usage: Any) -> None:
        """Tokens that a model counts."""

    def says_again(self, event: Any) -> bool:
        """Whether the bus is told of it again when the call is served."""
        return False

    def program(self) -> Inside:
        """What runs in this block is the program's that the call is made by."""
        return self._call.program()


class Overheard(Listener):
    """Listens to a tool: to what its connection to an MCP server says on the bus. Anything else is said by agents and
    models that the tool has, and is not said again when it is served."""

    def event(self, event: Any) -> None:
        if type(event).__module__ == mcp_events.__name__:
            self._call.part(_told(event))

    def says_again(self, event: Any) -> bool:
        return bool(type(event).__module__ == mcp_events.__name__)


def _told(event: Any) -> Value:
    data = inert(event.model_dump(mode="json", exclude=_DRAWN, exclude_none=True))
    return {"event": type(event).__name__, "of": data}


# What the bus puts on an event, anew each time, and what tells whose it is by ids.
_DRAWN = frozenset({
    "event_id", "parent_event_id", "previous_event_id", "triggered_by_event_id", "started_event_id",
    "emission_sequence", "timestamp", "source_fingerprint", "fingerprint_metadata", "agent_id", "agent_role", "task_id",
    "task_name", "agent", "from_agent", "from_task",
})  # fmt: skip


class Heard(Listener):
    """Listens to one call of a model that runs for real."""

    def __init__(self, call: Call, *, own: bool) -> None:
        """`own`: see `is_own`."""
        super().__init__(call)
        self._own = own
        self._began = False
        self._over: LLMCallCompletedEvent | None = None  # said, and nothing after it
        self._told = False  # whether that is a piece already
        self._usage: Value = None
        self._id: str | None = None
        self._arguments: dict[int, str] = {}

    def part(self, value: Value) -> None:
        """One piece. What was held back since it usually is the last is one now, too."""
        self._flush()
        self._call.part(value)

    def event(self, event: Any) -> None:
        """What goes to the bus while the call runs."""
        kind = type(event)
        if kind is LLMStreamChunkEvent:
            self.part(self._chunk(event))
        elif kind is LLMCallStartedEvent:
            if self._own and not self._began:
                self._began = True
            else:
                self.part({"event": STARTED})
        elif kind is LLMCallCompletedEvent:
            self._flush()
            self._over = event
            if sessions.session is not None:
                # Whoever listens runs on a thread whose places in the record may lie before the end of the call.
                self._call.part({**_completed(event), AHEAD: True})
                self._told = True
        elif kind is LLMCallFailedEvent:
            self.part({"failed": event.error})
        elif kind is LLMThinkingChunkEvent:
            self.part(self._identified({"thinking": event.chunk}, event))
        elif kind.__module__ == tool_usage_events.__name__:
            self.part(_told(event))

    def says_again(self, event: Any) -> bool:
        return _is_said(event)

    def used(self, usage: Any) -> None:
        """Tokens that the model counts."""
        if self._usage is not None:
            self._call.part({"usage": self._usage})
        self._usage = inert(usage)

    def outcome(self, result: Any) -> dict[str, Value]:
        """What of the end was heard, beside the result itself."""
        found: dict[str, Value] = {}
        over, own = self._over, self._own
        usage = self._usage
        if usage is not None:
            found["usage"] = usage
        if over is not None and own:
            if over.usage is not None and usage is None:
                found["uncounted"] = inert(over.usage)
            told = {"finish_reason": over.finish_reason, "response_id": over.response_id}
            found.update({name: value for name, value in told.items() if value is not None})
            if over.call_type is not call_type(result):
                found["call_type"] = over.call_type.value
        elif over is not None:
            self._flush()
        if own and over is None:
            found["silent"] = [COMPLETED]  # as LiteLLM's, which says nothing of an answer that calls tools
        return found

    def failed(self) -> None:
        """The call raised: what was held back is told."""
        self._flush()
        if self._usage is not None:
            self._call.part({"usage": self._usage})

    def _flush(self) -> None:
        over, self._over = self._over, None
        told, self._told = self._told, False
        if over is not None and not told:
            self._call.part(_completed(over))

    def _identified(self, told: dict[str, Value], event: Any) -> dict[str, Value]:
        if event.response_id != self._id:
            self._id = told["response_id"] = event.response_id
        return told

    def _chunk(self, event: LLMStreamChunkEvent) -> Value:
        told = self._identified({"chunk": event.chunk}, event)
        if event.tool_call is not None:
            asked = event.tool_call
            so_far = self._arguments.get(asked.index, "") + event.chunk
            self._arguments[asked.index] = asked.function.arguments
            about: dict[str, Value] = {"id": asked.id, "name": asked.function.name, "index": asked.index}
            if so_far != asked.function.arguments:
                about["arguments"] = asked.function.arguments
            told["tool_call"] = about
        elif event.call_type is not None:
            told["call_type"] = event.call_type.value
        return told if len(told) > 1 else event.chunk


def _completed(event: LLMCallCompletedEvent) -> dict[str, Value]:
    told: dict[str, Value] = {"event": COMPLETED, "response": inert(event.response)}
    told["call_type"] = event.call_type.value
    given = {"usage": event.usage, "finish_reason": event.finish_reason, "response_id": event.response_id}
    told.update((name, inert(value)) for name, value in given.items() if value is not None)
    return told


def _is_said(event: Any) -> bool:
    """Whether it is one of those that a model's call says again when it is served."""
    return type(event) in _SAID or type(event).__module__ == tool_usage_events.__name__


_SAID = frozenset(
    (LLMStreamChunkEvent, LLMCallStartedEvent, LLMCallCompletedEvent, LLMCallFailedEvent, LLMThinkingChunkEvent)
)


def call_type(result: Any) -> LLMCallType:
    """What kind of an answer a result is."""
    return LLMCallType.TOOL_CALL if isinstance(result, list) else LLMCallType.LLM_CALL
