"""CrewAI's own telemetry, and traces that nobody asked for, while a session is on: they are no part of the program, and
a replay sends none.

It is on unless the user switches it off, and Lockstep leaves that to the user: a recorded run sends what it would send
without us. But its thread, its locks and its requests come when they come, so they are neither recorded nor compared.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from lockstep.session import current as sessions
from lockstep.session import lanes


def install(module: ModuleType) -> None:
    """Puts this into a module of CrewAI's that has just been loaded."""
    found = _MODULES.get(module.__name__)
    if found is not None:
        found(module)


def _of_the_core(module: Any) -> None:
    exporter = module.SafeOTLPSpanExporter
    export = exporter.export

    @functools.wraps(export)
    def _export(self: Any, spans: Any) -> Any:
        session = sessions.session
        if session is not None and (session.resumes or not session.recording):
            return module.SpanExportResult.SUCCESS
        return lanes.ours(export)(self, spans)

    exporter.export = _export
    _of_the_library(module)


def _of_the_library(module: Any) -> None:
    """All that it does: its provider, with the thread that sends, and what it looks up to say of a crew, once in a
    process, so that a second crew there would not be seen to look it up."""
    telemetry = module.Telemetry
    for name, plain in [*vars(telemetry).items()]:
        if inspect.isfunction(plain) and name != "__new__":
            setattr(telemetry, name, lanes.ours(plain))


def _of_traces(module: Any) -> None:
    """What it collects without being asked to, for a user that it may ask at the end whether to see it. A trace that is
    asked for is the program's: it is sent, and its address is printed."""
    listener = module.TraceCollectionListener
    for name in ("_handle_trace_event", "_handle_action_event", "_initialize_crew_batch", "_initialize_flow_batch"):
        setattr(listener, name, _unasked(module, getattr(listener, name)))


def _unasked(module: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    asked = lanes.ours(lambda: module.should_enable_tracing() or module.is_tracing_enabled_in_context())
    ours = lanes.ours(plain)

    @functools.wraps(plain)
    def collect(*args: Any, **options: Any) -> Any:
        return (plain if sessions.session is None or asked() else ours)(*args, **options)

    return collect


_MODULES: Mapping[str, Callable[[Any], None]] = {
    "crewai_core.telemetry": _of_the_core,
    "crewai.telemetry.telemetry": _of_the_library,
    "crewai.events.listeners.tracing.trace_listener": _of_traces,
}

MODULES = tuple(_MODULES)
