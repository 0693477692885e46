"""What listeners on CrewAI's event bus hear: how many events of each type, and the pieces of streamed answers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import crewai
import crewai.events.types.flow_events
import crewai.events.types.hook_events
import crewai.events.types.reasoning_events
from crewai.events import crewai_event_bus
from crewai.events.base_events import BaseEvent
from crewai.events.types.llm_events import LLMStreamChunkEvent

assert crewai  # its import brings most classes of events

# Told of the surroundings, once in a process.
_LEFT_OUT = ("default_env",)


class Heard:
    """What was heard since `taken` was called last."""

    def __init__(self) -> None:
        self._types: list[str] = []
        self._pieces: list[tuple[str, str]] = []
        self._events: list[Any] = []

    def hear(self, source: Any, event: Any) -> None:
        del source
        self._types.append(event.type)
        self._events.append(event)
        if isinstance(event, LLMStreamChunkEvent):
            self._pieces.append((event.agent_role or "", event.chunk))

    def taken(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """The events by type, and the pieces by who spoke; what was heard is forgotten."""
        crewai_event_bus.flush()
        told = {kind: n for kind, n in sorted(Counter(self._types).items()) if kind not in _LEFT_OUT}
        pieces = list(self._pieces)
        self._types.clear()
        self._pieces.clear()
        self._events.clear()
        return told, pieces

    def events(self, kind: str) -> list[Any]:
        """Those of a type, so far."""
        crewai_event_bus.flush()
        return [event for event in self._events if event.type == kind]


@contextlib.contextmanager
def hearing() -> Iterator[Heard]:
    """Listens to every class of events for the length of a block."""
    heard = Heard()
    classes = [*_below(BaseEvent)]
    crewai_event_bus.flush()
    for each in classes:
        crewai_event_bus.on(each)(heard.hear)
    try:
        yield heard
    finally:
        crewai_event_bus.flush()
        for each in classes:
            crewai_event_bus.off(each, heard.hear)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
