"""Agents at work: CrewAI refuses to set one to work twice at once ("Executor is already running", crewAI #7332), as
where two tasks at once have the same agent. Which of them is first is up to threads, so it is recorded, and a replay
has the same one refused, whoever comes first there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from lockstep_crewai import classes, current
from lockstep_crewai.executors import AgentExecutor

_REFUSES = "Executor is already running"


def install() -> None:
    """Has agents that are set to work ask whether they were at work. Once."""
    classes.wrap(AgentExecutor, "invoke", _invoking)
    classes.wrap(AgentExecutor, "invoke_async", _ainvoking)


class _AtWork:
    """Stands for an executor that is at work, as far as CrewAI looks before it refuses."""

    def __init__(self) -> None:
        self._execution_lock = threading.Lock()
        self._is_executing = True

    async def invoke_async(self, inputs: Any) -> Any:
        return await classes.plain(AgentExecutor.invoke_async)(self, inputs)


def _invoking(plain: Any) -> Any:
    @wraps(plain)
    def invoke(self: Any, inputs: Any) -> Any:
        with _attempt(self) as executor:
            return plain(executor, inputs)

    return invoke


def _ainvoking(plain: Any) -> Any:
    @wraps(plain)
    async def invoke_async(self: Any, inputs: Any) -> Any:
        with _attempt(self) as executor:
            return await plain(executor, inputs)

    return invoke_async


@contextmanager
def _attempt(executor: Any) -> Iterator[Any]:
    """One attempt to set an agent to work: gives what is set to work, which refuses where it did so then."""
    place = current.place()
    if place is None or isinstance(executor, _AtWork):
        yield executor
        return
    told, attempt = place.root.seams.told, place.root.names.attempt(place.lane)
    if told.was_busy(place.lane, attempt):
        yield _AtWork()
        return
    try:
        yield executor
    except RuntimeError as error:
        if str(error).startswith(_REFUSES):
            told.busy(place.lane, attempt)
        raise
