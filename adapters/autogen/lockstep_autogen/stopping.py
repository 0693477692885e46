"""Stops a team at a step: its run returns there, and its next run goes on as if nothing had been.

    lockstep_autogen.stop_at(team, 7)                # after step 7; or "critic": whenever that agent has spoken
    await team.run(task="…")                         # returns after step 7, with the reason
    await team.run()                                 # goes on

    lockstep record --break 7 -- python desk.py      # the same for each team of a program that says nothing of it

A team is stopped where everybody has heard the last message and nobody has been chosen to speak next, by the way that
its own conditions have: so nothing of it is cancelled, and its conditions go on counting.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lockstep.errors import Code, TargetError
from lockstep.log.address import quote
from lockstep_autogen.layout import MESSAGE, Moment

type Stop = int | str

# Not one of Lockstep's own names: a session records that it was read, and a replay reads the same.
VARIABLE = "STOP_TEAMS_AT"
_SOURCE = "lockstep"


def stop_at[T](team: T, *places: Stop) -> T:
    """Has an attached team stop. Returns it.

    places  numbers of steps, as `lockstep log` has them: the team stops once, after the first message from there on; or
            names of agents: whenever that one has spoken. None: it stops nowhere any more

    Raises TargetError LS402 for what is not attached, has no steps to stop at, or cannot go on from one.
    """
    from lockstep_autogen.attaching import attached

    target: Any = team
    root = attached(target)
    if root is None:
        raise TargetError(
            Code.BAD_TARGET, "stop_at is for a team that is attached: lockstep_autogen.attach(team) first"
        )
    root.stops = stops(target, places)
    return team


class Stops:
    """Where one team stops."""

    def __init__(self, places: Sequence[Stop] = ()) -> None:
        self._numbers = sorted({place for place in places if isinstance(place, int)})
        self._names = frozenset(quote(place) for place in places if isinstance(place, str))

    def reason(self, number: int, moment: Moment) -> str:
        """Why the team stops after the step of this number; "" where it goes on, or ends by itself."""
        passed = [place for place in self._numbers if place <= number]
        self._numbers = self._numbers[len(passed) :]
        if moment.source != MESSAGE or moment.stop:
            return ""
        named = any(quote(each.source) in self._names for each in moment.spoken)
        return f"Stopped by Lockstep after step {number}. Run the team again to go on" if passed or named else ""


NOWHERE = Stops()


def wanted(team: Any) -> Stops:
    """Where whoever started the program wants its teams to stop. Raises TargetError LS402, as `stops`."""
    told = os.environ.get(VARIABLE, "")
    return stops(team, [int(place) if place.isdecimal() else place for place in told.split(",") if place])


def stops(team: Any, places: Sequence[Any]) -> Stops:
    """Where a team is to stop. Raises TargetError LS402 for a place that is none, and a team that cannot stop."""
    for place in places:
        if isinstance(place, bool) or not isinstance(place, (int, str)):
            raise TargetError(
                Code.BAD_TARGET, f"a team stops at the number of a step or the name of an agent, not {place!r}"
            )
    if places and not hasattr(team, "_participants"):
        raise TargetError(Code.BAD_TARGET, f"{team.name} is an agent without a team: nothing comes between its steps")
    manager = getattr(getattr(team, "_base_group_chat_manager_class", None), "__name__", "")
    if places and manager == "MagenticOneOrchestrator":
        raise TargetError(
            Code.BAD_TARGET,
            f"{team.name} cannot be stopped: its orchestrator plans anew whenever it is run again. Fork it instead",
        )
    return Stops(places)


def message(reason: str) -> Any:
    """What a team is stopped with; None for no reason."""
    if not reason:
        return None
    from autogen_agentchat.messages import StopMessage

    return StopMessage(content=reason, source=_SOURCE)
