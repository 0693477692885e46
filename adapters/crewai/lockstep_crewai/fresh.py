"""The fresh crew, agent or flow that a replay or fork begins with, made by the user's factory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep_crewai import wrapping
from lockstep_crewai.adapter import factory
from lockstep_crewai.recording import Recording
from lockstep_crewai.seams import Seams
from lockstep_crewai.wrapping import Root

_A = {wrapping.CREW: "a crew", wrapping.FLOW: "a flow", wrapping.AGENT: "an agent"}


def made(target: Any, meta: Mapping[str, Any], seams: Seams) -> tuple[Any, Root]:
    """What the factory makes, wrapped with these seams, for the caller to keep; a factory that wraps it itself is fine.
    `meta`: the run's, which tells what was recorded. Raises TargetError LS402 for what is no crew, agent or
    flow, was used already, or is another than the recorded one; and whatever the factory raises."""
    make = factory(target)
    found = make()
    if inspect.isawaitable(found):
        found = asyncio.run(_awaited(found))
    name = str(getattr(make, "__qualname__", "") or type(make).__name__)
    told = meta.get("native")
    native: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    lane = str(native.get("lane") or "")
    root = wrapping.root_of(found)
    if root is None and not _is_used(found):
        root = Root(found, seams, lane=lane)
        _same(root, native, name)
        wrapping.put(root)
    elif root is not None and isinstance(root.seams.told, Recording) and root.seams.told.is_new:
        _same(root, native, name)
        root.seams, root.lane = seams, lane or root.lane
    else:
        raise TargetError(
            Code.BAD_TARGET,
            f"{name} gave a {type(found).__name__} that was used already: it is to make a new one each time it is"
            " called",
        )
    return found, root


async def _awaited(found: Any) -> Any:
    return await found


def _is_used(found: Any) -> bool:
    """Whether a crew has done a task, or a flow a method."""
    tasks = getattr(found, "tasks", None)
    done = [getattr(task, "output", None) for task in tasks] if isinstance(tasks, list) else []
    return any(each is not None for each in done) or bool(getattr(found, "_method_outputs", None))


def _same(root: Root, native: Mapping[str, Any], name: str) -> None:
    """Raises TargetError LS402 where the recorded run is one of something else, with the first task that differs."""
    kind = native.get("kind")
    if isinstance(kind, str) and kind != root.kind:
        raise TargetError(
            Code.BAD_TARGET, f"{name} made {_A[root.kind]}, and the recorded run is one of {_A.get(kind, kind)}"
        )
    was = native.get("members")
    if not isinstance(was, list) or root.kind == wrapping.FLOW:
        return  # what a flow has and never runs makes no difference, and what it runs is told as it does
    now = wrapping.members(root.target)
    for number, (before, after) in enumerate(zip_longest(was, now), 1):
        if before != after:
            raise TargetError(
                Code.BAD_TARGET,
                f"{name} made another {root.kind} than the recorded one: {_differs(root, number, before, after)}",
            )


def _differs(root: Root, number: int, before: Value, after: Value) -> str:
    where = f"task {number}" if root.kind == wrapping.CREW else "it"
    if not isinstance(before, Sequence) or not isinstance(after, Sequence):
        gone = before if isinstance(before, Sequence) else after
        said = "is not there any more" if after is None else "was not there"
        return f"{where}, {_called(gone)}, {said}"
    if list(before[:2]) == list(after[:2]):
        return f"{where}, {_called(after)}, is told something else"
    return f"{where} is {_called(after)}, and was {_called(before)}"


def _called(member: Any) -> str:
    name, who, _ = map(str, member)
    return f"{name} (of {who})" if who else name
