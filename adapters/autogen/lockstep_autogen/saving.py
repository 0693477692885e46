"""What a team remembers, as AutoGen itself would have saved it: for its own `load_state`.

Of inert data alone, so that it can be had where no AutoGen is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lockstep.log.address import unquote
from lockstep.log.model import Value
from lockstep_autogen.channels import (
    BUFFER,
    CONTEXT,
    HEARD,
    INSIDE,
    MANAGER,
    NAME,
    STATE,
    THREAD,
    TRIGGERED,
    WHOLE,
)  # fmt: skip

type Channels = Mapping[str, Value]

_TEAM = {"type": "TeamState", "version": "1.0.0"}


def is_whole(channels: Channels) -> bool:
    """Whether there is a state in it."""
    return any(name in channels for name in (MANAGER, WHOLE, CONTEXT[1:], STATE[1:]))


def saved(channels: Channels, at: str = "") -> dict[str, Any]:
    """What `load_state` takes: of a team, or of an agent without one."""
    if isinstance(whole := channels.get(f"{at}{WHOLE}"), dict):
        return whole
    if f"{at}{THREAD}" not in channels:
        return _agent(channels, "")
    actors: dict[str, Any] = {}
    for name in _participants(channels, at):
        own = saved(channels, f"{name}{INSIDE}") if f"{name}{INSIDE}{THREAD}" in channels else _agent(channels, name)
        buffer = {
            "type": "ChatAgentContainerState",
            "version": "1.0.0",
            "message_buffer": _list(channels, name, BUFFER),
        }
        actors[unquote(name.removeprefix(at))] = {"agent_state": own, **buffer}
    manager = channels.get(f"{at}{MANAGER}")
    kept = dict(manager) if isinstance(manager, dict) else {}
    kept.pop(TRIGGERED, None)
    who = str(kept.pop(NAME, ""))
    actors[who] = {**kept, "message_thread": _list(channels, at, THREAD)}
    return {**_TEAM, "agent_states": actors}


def _participants(channels: Channels, at: str) -> Iterator[str]:
    """With the path to them."""
    for name in channels:
        if name.startswith(at) and name.endswith(BUFFER) and INSIDE not in name.removeprefix(at):
            yield name.removesuffix(BUFFER)


def _agent(channels: Channels, name: str) -> dict[str, Any]:
    inner = next(
        (each for each in channels if name and each.startswith(f"{name}{INSIDE}") and each.endswith(HEARD)), ""
    )
    if inner:
        return {"type": "SocietyOfMindAgentState", "version": "1.0.0",
                "inner_team_state": saved(channels, inner.removesuffix(HEARD))}  # fmt: skip
    context, state = f"{name}{CONTEXT}".lstrip("."), f"{name}{STATE}".lstrip(".")
    if context in channels:
        told = {"messages": _list(channels, context, "")}
        return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": told}
    own = channels.get(state)
    return dict(own) if isinstance(own, dict) else {"type": "BaseState", "version": "1.0.0"}


def _list(channels: Channels, name: str, part: str) -> list[Any]:
    found = channels.get(f"{name}{part}")
    return [_loadable(item) for item in found] if isinstance(found, list) else []


def _loadable(message: Value) -> Value:
    """With what a class of AutoGen's cannot be made without, and which the state has not, being drawn anew."""
    if isinstance(message, dict) and message.get("type") == "UserInputRequestedEvent":
        return {"request_id": "", **message}
    return message
