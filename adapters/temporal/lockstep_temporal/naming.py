"""What a workflow's command is called as an effect: its kind, its name, and what it may do to the outside.

AI frameworks run model and tool calls as activities of their own, whose types say nothing of which model or tool it
is: `FRAMEWORKS` has where it stands. Of other activities what the user has marked with `lockstep.mark(function,
effect="read")` is known where the worker's functions are (`Naming`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lockstep.log.model import Value
from lockstep.session.policy import Declared
from lockstep_temporal import commands
from lockstep_temporal.commands import Command

MODEL, TOOL = "model", "tool"


class Named(msgspec.Struct, frozen=True):
    """An effect's kind and name, and who says of which class it is, None if nobody."""

    kind: str
    name: str
    declared: Declared | None = None


type Reader = Callable[[Command], Named | None]


class Naming:
    """Names the commands of one worker, or of one target.

    marks   by activity type: what its user has declared
    """

    def __init__(self, activities: Iterable[Any] = ()) -> None:
        from lockstep import tools

        self.marks: dict[str, Declared] = {}
        for function in activities:
            name = activity_type(function)
            declared = tools.declared(function)
            if name and declared is not None:
                self.marks[name] = declared

    def __call__(self, command: Command) -> Named:
        found = effect_of(command)
        mark = self.marks.get(command.name) if command.kind in _ACTIVITIES else None
        return found if mark is None else Named(found.kind, found.name, mark)


_ACTIVITIES = frozenset({commands.ACTIVITY, commands.LOCAL_ACTIVITY})


def effect_of(command: Command) -> Named:
    """What a command is called by what it says itself."""
    read = FRAMEWORKS.get(command.name) if command.kind in _ACTIVITIES else None
    found = read(command) if read is not None else None
    if found is not None:
        return found
    return Named(command.kind, command.name, _HARMLESS.get(command.kind))


def activity_type(function: Any) -> str:
    """The type of an activity function or method, "" of what is none."""
    from temporalio import activity

    definition = activity._Definition.from_callable(function)
    return (definition.name or "") if definition is not None else ""


# A timer changes nothing.
_HARMLESS = {commands.TIMER: Declared("read", "by what it is")}


def _first(command: Command) -> dict[str, Any]:
    arguments: Value = command.request.get("arguments")
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    return first if isinstance(first, dict) else {}


def _openai_model(command: Command) -> Named | None:
    """Of temporalio-openai-agents: the request's model name, "" for the provider's default."""
    name = _first(command).get("model_name")
    return Named(
        MODEL, name if isinstance(name, str) and name else "default", Declared("inference", "by its framework")
    )


FRAMEWORKS: dict[str, Reader] = {
    "invoke_model_activity": _openai_model,
    "invoke_model_activity_streaming": _openai_model,
}
