"""What a workflow's command is called as an effect: its kind, its name, and what it may do to the outside.

AI frameworks run model and tool calls as activities of their own: `frameworks` knows these. Of other activities what
the user has marked with `lockstep.mark(function, effect="read")` is known where the worker's functions are (`Naming`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.session.policy import Declared
from lockstep_temporal import commands, frameworks
from lockstep_temporal.commands import Command
from lockstep_temporal.frameworks import MODEL, TOOL, Named

__all__ = ["MODEL", "TOOL", "Named", "Naming", "activity_type", "effect_of"]


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
    found = frameworks.named(command) if command.kind in _ACTIVITIES else None
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
