"""CrewAI's own telemetry while a session is on: it is no part of the program, and a replay sends none.

It is on unless the user switches it off, and Lockstep leaves that to the user: a recorded run sends what it would send
without us. But its thread, its locks and its requests come when they come, so they are neither recorded nor compared.
"""

from __future__ import annotations

import functools
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
    """Its provider, with the thread that sends, and the end of that."""
    telemetry = module.Telemetry
    for name in ("__init__", "_shutdown"):
        setattr(telemetry, name, lanes.ours(getattr(telemetry, name)))


_MODULES: Mapping[str, Callable[[Any], None]] = {
    "crewai_core.telemetry": _of_the_core,
    "crewai.telemetry.telemetry": _of_the_library,
}

MODULES = tuple(_MODULES)
