"""Whether CrewAI prints what happens: one switch of the process, which each crew sets as it is made, and at which those
who print look in threads of their own. Who is first is a race, whose order a session keeps as it does that of a lock.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import Any

from crewai.events.utils.console_formatter import ConsoleFormatter

from lockstep.taps.threads.locks import GatedLock

_NAME = "verbose"
_order = GatedLock(allocate_lock(), f"crewai/{_NAME}")


class _Switch:
    """Stands for an attribute of an object. What it is set to stays where it was."""

    def __get__(self, formatter: Any, owner: Any = None) -> Any:
        if formatter is None:
            return self
        with _order:
            try:
                return vars(formatter)[_NAME]
            except KeyError:
                raise AttributeError(_NAME) from None

    def __set__(self, formatter: Any, value: Any) -> None:
        with _order:
            vars(formatter)[_NAME] = value


def install() -> None:
    """Puts it in place, once."""
    if not isinstance(vars(ConsoleFormatter).get(_NAME), _Switch):
        ConsoleFormatter.verbose = _Switch()
