"""The fresh team that a replay or fork begins with, made by the user's factory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autogen_agentchat.base import ChatAgent, Team

from lockstep.errors import Code, TargetError
from lockstep_autogen.adapter import factory
from lockstep_autogen.attaching import attached
from lockstep_autogen.naming import members

_DEEP = 8  # teams in teams


async def made(target: Any, meta: Mapping[str, Any]) -> Any:
    """What the factory makes. `meta`: the run's, which tells what was recorded. Raises TargetError LS402 for what is no
    team, has run already, or is another than the recorded one; and whatever the factory raises."""
    make = factory(target)
    team = make()
    if hasattr(team, "__await__"):
        team = await team
    name = _name(make)
    if not isinstance(team, (Team, ChatAgent)):
        raise TargetError(
            Code.BAD_TARGET, f"{name} made a {type(team).__name__}: a replay or fork needs a team or an agent"
        )
    for one in _whole(team):
        if _is_used(one):
            raise TargetError(
                Code.BAD_TARGET,
                f"{name} gave {_called(one)}, which has run already: it is to make a new team each time it is called,"
                " with new agents in it",
            )
    _same(team, meta, name)
    return team


def _whole(team: Any, depth: int = 0) -> Iterator[Any]:
    """A team and all that takes part in it."""
    yield team
    if depth < _DEEP:
        for each in getattr(team, "_participants", None) or ():
            yield from _whole(each, depth + 1)


def _is_used(one: Any) -> bool:
    return (
        attached(one) is not None
        or getattr(one, "_initialized", False) is True
        or _is_recorded(getattr(one, "_model_client", None))
        or bool(getattr(getattr(one, "_model_context", None), "_messages", None))
    )


def _is_recorded(client: Any) -> bool:
    from lockstep_autogen.proxies import stands_in

    return stands_in(client)


def _same(team: Any, meta: Mapping[str, Any], name: str) -> None:
    """Raises TargetError LS402 where the recorded run is one of another team."""
    told = meta.get("native")
    native: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    kind = native.get("class")
    if isinstance(kind, str) and kind != type(team).__name__:
        raise TargetError(
            Code.BAD_TARGET, f"{name} made a {type(team).__name__}, and the recorded run is one of a {kind}"
        )
    was = native.get("members")
    now = members(team)
    if isinstance(was, list) and was != now:
        raise TargetError(
            Code.BAD_TARGET,
            f"{name} made another team than the recorded one: {_listed(now)} in place of {_listed(was)}",
        )


def _listed(names: Any) -> str:
    team, *agents = map(str, names)
    return f"{team} of {', '.join(agents)}" if agents else team


def _called(one: Any) -> str:
    return f"{'a team' if isinstance(one, Team) else 'an agent'} {one.name}"


def _name(make: Any) -> str:
    return str(getattr(make, "__qualname__", "") or type(make).__name__)
