"""Replay without running a node: each task gets what it wrote when it was recorded.

LangGraph skips a task that has writes already, which is what its cache uses. Reducers and channels run, so the states
that come of it can be compared; edges are among what is written. A task that failed or waits for a human has no output
to give, so in its place something runs that raises what it raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lockstep.log.model import Value

_INTERRUPT, _RESUME, _ERROR, _SOURCE = "__interrupt__", "__resume__", "__error__", "__error_source_node__"
_SEND = "__pregel_send"

type Writes = Mapping[int, tuple[str, Value]]


def finished(writes: Writes) -> bool:
    """Whether a task came to its end: a failed one, or one that waits, has written nothing else."""
    return any(index >= 0 and channel not in (_ERROR, _SOURCE) for index, (channel, _) in writes.items()) and not any(
        channel == _ERROR for channel, _ in writes.values()
    )


def served(task: Any, writes: Writes, load: Callable[[Value, str], Any]) -> None:
    """Gives a finished task its output."""
    for index in sorted(writes):
        channel, value = writes[index]
        if channel not in (_INTERRUPT, _RESUME):
            task.writes.append((channel, load(value, channel)))


def stand_in(task: Any, writes: Writes, load: Callable[[Value, str], Any], raised: BaseException | None) -> Any:
    """The task with a node that raises what its own did. `raised`: what ended the turn, where that is known better
    than the task's own writes tell."""
    from langgraph.errors import GraphInterrupt

    given = {channel: value for _, (channel, value) in sorted(writes.items())}
    if _ERROR in given:
        error = raised if raised is not None else _failure(load(given[_ERROR], _ERROR))
        return _raising(task, error, None)
    waits = load(given[_INTERRUPT], _INTERRUPT)
    resumed = load(given[_RESUME], _RESUME) if _RESUME in given else None
    return _raising(task, GraphInterrupt(tuple(waits)), resumed)


def _failure(told: Any) -> BaseException:
    return told if isinstance(told, BaseException) else RuntimeError(str(told))


def _raising(task: Any, error: BaseException, resumed: Any) -> Any:
    from langchain_core.runnables import Runnable

    class Raises(Runnable[Any, Any]):
        """In the place of a node."""

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            if resumed is not None:
                config["configurable"][_SEND]([(_RESUME, resumed)])
            raise error

    return replace(task, proc=Raises(), writers=(), retry_policy=(), subgraphs=())
