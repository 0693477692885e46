"""What stands in a conversation's run: its name, what its description says, and how its turns begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ag2.events import ModelRequest

from lockstep.errors import LockstepError
from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep.session.native.new import versions
from lockstep_ag2 import events

PREFIX = "ag2/"
ASK, REPLY, RESUME = "ask", "reply", "resume"  # how a turn begins: of an agent, of a reply, or from a history
_TESTED = ("ag2", "openai")


def name(agent: str, number: int) -> str:
    """The name of the `number`-th run of an agent."""
    return f"{PREFIX}{quote(agent)}" + (f"-{number}" if number > 1 else "")


def meta(agent: str, stream: str) -> dict[str, Value]:
    return {"adapter": "ag2", "native": {"agent": agent, "stream": stream}, "versions": dict(versions(*_TESTED))}


def begun(
    agent: Any, event: Any, context: Any, history: Sequence[Any], *, same: bool
) -> tuple[str, dict[str, Value]]:  # fmt: skip
    """How a turn begins: the entry, and what it was given. `history`: what it goes on from, where it is no question;
    `same`: its context is that of the turn before."""
    asked = isinstance(event, ModelRequest)
    request: dict[str, Value] = {
        "input": events.content(event.parts) if asked else events.messages([event]),
        "event": events.dump(event),
    }
    if not asked:
        request["history"] = [events.dump(one) for one in history]
    if (prompt := _given_prompt(agent, context)) is not None:
        request["prompt"] = prompt
    if context.variables:
        request["variables"] = {str(name): _value(value) for name, value in context.variables.items()}
    return (REPLY if same else ASK) if asked else RESUME, request


def _given_prompt(agent: Any, context: Any) -> Value:
    """The prompt, where it is not the one that the agent has for itself."""
    own = list(getattr(agent, "_system_prompt", ()))
    dynamic = len(getattr(agent, "_dynamic_prompt", ()))
    found = [str(text) for text in context.prompt]
    if len(found) == len(own) + dynamic and found[: len(own)] == own:
        return None
    told: list[Value] = [*found]
    return told


def _value(value: Any) -> Value:
    try:
        return snapshot.to_value(value)
    except LockstepError as error:
        return {snapshot.TAG: "unstorable", "why": str(error)}


def storable(variables: Any) -> dict[str, Any]:
    """The variables that a turn was begun with, as objects: those that could be stored. Raises LockstepError LS110."""
    told = variables if isinstance(variables, dict) else {}
    return {
        name: snapshot.from_value(value)
        for name, value in told.items()
        if not (isinstance(value, dict) and value.get(snapshot.TAG) == "unstorable")
    }


def unstorable(variables: Any) -> list[str]:
    """The names of those that could not."""
    told = variables if isinstance(variables, dict) else {}
    return [name for name, value in told.items() if isinstance(value, dict) and value.get(snapshot.TAG) == "unstorable"]
