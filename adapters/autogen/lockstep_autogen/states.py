"""A team's state as channels: what of it is stored with each step, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Value
from lockstep_autogen import canonical
from lockstep_autogen.layout import MESSAGES, SELECTED, STOP, Moment, Spoken


async def channels(team: Any) -> dict[str, Value]:
    """The state of a team, or of a single agent: {"<agent>.<part>": value}, of the manager "<its name>.<part>".

    Nothing of a team that has not run yet: to ask for its state would have it set up its agents.
    """
    if getattr(team, "_initialized", True) is False:
        return {}
    saved: Any = canonical.inert(await team.save_state())
    ids = [str(team._team_id)] if hasattr(team, "_team_id") else []
    found: dict[str, Value] = {}
    agents = saved.get("agent_states") if isinstance(saved, dict) else None
    for name, state in (agents if isinstance(agents, dict) else {str(team.name): saved}).items():
        parts = state if isinstance(state, dict) else {"state": state}
        for part, value in parts.items():
            found[f"{name}.{part}"] = canonical.state(value, ids)
    return found


async def of(moment: Moment) -> tuple[dict[str, Value], list[Value]]:
    """All channels of a moment, and how its messages really were (`was`)."""
    state: Mapping[str, Value] = await channels(moment.team)
    return {**state, **said(moment)}, was(moment.spoken)


def said(moment: Moment) -> dict[str, Value]:
    """The channels of a moment that are no state."""
    return {
        MESSAGES: [canonical.spoken(each.source, each.message, each.inner) for each in moment.spoken],
        SELECTED: [*moment.selected],
        STOP: moment.stop or None,
    }


def was(spoken: tuple[Spoken, ...]) -> list[Value]:
    """The ids and times of messages, and of what is in them."""
    return [canonical.was(one) for each in spoken for one in (each.message, *each.inner)]
