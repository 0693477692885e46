"""The fresh crew, agent or flow that a replay or fork begins with, made by the user's factory."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from lockstep.errors import Code, TargetError
from lockstep.session.native.ran import Recorded
from lockstep_crewai import members, wrapping
from lockstep_crewai.adapter import factory
from lockstep_crewai.members import Fit
from lockstep_crewai.recording import Recording
from lockstep_crewai.seams import Seams
from lockstep_crewai.wrapping import Root


def made(target: Any, recorded: Recorded, seams: Seams, *, until: int | None = None) -> tuple[Any, Root, Fit]:
    """What the factory makes, wrapped with these seams, for the caller to keep; a factory that wraps it itself is fine.
    And how it fits what was `recorded`; `until`: see `members.fit`. Raises TargetError LS402 for what is no crew, agent
    or flow, was used already, or is another than the recorded one; and whatever the factory raises."""
    make = factory(target)
    found = make()
    if inspect.isawaitable(found):
        found = asyncio.run(_awaited(found))
    name = str(getattr(make, "__qualname__", "") or type(make).__name__)
    lane = str(members.of_run(recorded).get("lane") or "")
    root = wrapping.root_of(found)
    if root is None and not _is_used(found):
        root = Root(found, seams, lane=lane)
        fit = members.fit(root, recorded, name, until)
        wrapping.put(root)
    elif root is not None and isinstance(root.seams.told, Recording) and root.seams.told.is_new:
        fit = members.fit(root, recorded, name, until)
        root.seams, root.lane = seams, lane or root.lane
    else:
        raise TargetError(
            Code.BAD_TARGET,
            f"{name} gave a {type(found).__name__} that was used already: it is to make a new one each time it is"
            " called",
        )
    return found, root, fit


async def _awaited(found: Any) -> Any:
    return await found


def _is_used(found: Any) -> bool:
    """Whether a crew has done a task, or a flow a method."""
    tasks = getattr(found, "tasks", None)
    done = [getattr(task, "output", None) for task in tasks] if isinstance(tasks, list) else []
    return any(each is not None for each in done) or bool(getattr(found, "_method_outputs", None))
