"""CrewAI's objects as inert data that is the same in each run that is the same.

Tasks, crews, agents and flows draw random ids, and events look at the clock: none of these is in here. Nor is what
CrewAI counts of tokens, which goes on counting over kickoffs, and twice where agents share a model: each model's call
says what it used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Value
from lockstep.session.native import inert as data

inert, of_class = data.inert, data.of_class

_DRAWN = frozenset({"id"})  # of a flow's state: a new one for each kickoff


def output(said: Any) -> Value:
    """What a task came to (`TaskOutput`), a crew (`CrewOutput`) or an agent by itself (`LiteAgentOutput`)."""
    return {"raw": inert(said.raw), "json": inert(getattr(said, "json_dict", None)), "pydantic": inert(said.pydantic)}


def result(returned: Any) -> Value:
    """What a kickoff returned: of a crew also what its tasks came to, of a list one of each."""
    if type(returned) is list and returned and all(map(is_output, returned)):
        return [result(each) for each in returned]
    if hasattr(returned, "tasks_output"):
        tasks: Value = [output(each) for each in returned.tasks_output]
        return {"output": output(returned), "tasks": tasks}
    if is_output(returned):
        return {"output": output(returned)}
    if is_pending(returned):
        return {"paused": paused(returned)}
    return {"returned": inert(returned)}


def is_output(returned: Any) -> bool:
    """Whether it is an output of a task, crew or agent, by what it has: methods of flows return them too."""
    return hasattr(returned, "raw") and hasattr(returned, "pydantic")


def is_pending(said: Any) -> bool:
    """Whether it is what a flow raises, or returns, that waits for a person (`HumanFeedbackPending`)."""
    return hasattr(said, "callback_info") and hasattr(getattr(said, "context", None), "message")


def paused(pending: Any) -> Value:
    """What a flow waits for, without the ids by which it is found again."""
    return {"message": inert(pending.context.message), "emit": inert(pending.context.emit)}


def of_method(returned: Any) -> Value:
    """What a flow's method returned."""
    return output(returned) if is_output(returned) else inert(returned)


def state(flow: Any) -> Value:
    """A flow's state, as it is now, without its id."""
    found = flow.state
    return kept_state(found if hasattr(found, "model_dump") else dict(found))


def kept_state(found: Any) -> Value:
    """The same of a state itself: a model of pydantic's, or a dict."""
    dumping = getattr(found, "model_dump", None)
    told = inert(dumping() if dumping is not None else found)
    return {name: value for name, value in told.items() if name not in _DRAWN} if isinstance(told, Mapping) else told


def failure(error: BaseException) -> str:
    """An exception in a line: its class, and the first line of what it says."""
    said = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
