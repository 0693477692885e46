"""CrewAI that was loaded before a session in code (`with lockstep.record`): what it has made and counted by then.

Its bus, which calls listeners in threads of its own, and the console that some of these print on, are there as long as
the process is. Their locks are older than the session, so nobody would order who takes them; and what is printed hangs
on what was printed before: `Tool Execution Started (#3)`.
"""

from __future__ import annotations

from _thread import LockType
from typing import Any

from crewai.events.event_bus import crewai_event_bus
from crewai.events.event_listener import event_listener
from crewai.events.utils.console_formatter import ConsoleFormatter

from lockstep.log.model import Value
from lockstep.session import current, lanes
from lockstep.session import looks as looking
from lockstep.session.looks import ABSENT
from lockstep.taps.threads.locks import GatedLock, GatedRLock
from lockstep_crewai.home import SOURCE

_PLACE = "the console"


def install() -> None:
    """Makes the thread of the bus, which is of no session then, and of no replay's either; and orders the locks."""
    crewai_event_bus._ensure_executor_initialized()
    _order(crewai_event_bus, "_futures_lock", "bus")
    _order(crewai_event_bus._sync_executor, "_shutdown_lock", "pool")
    _order(ConsoleFormatter, "_tool_counts_lock", "tools")
    for name, formatter in (("listener", event_listener.formatter), ("bus", crewai_event_bus._console)):
        for lock in ("_lock", "_record_buffer_lock"):
            _order(formatter.console, lock, f"{name}-console")


def _order(owner: Any, attribute: str, name: str) -> None:
    """Has a lock be taken in the recorded order."""
    plain = getattr(owner, attribute)
    if isinstance(plain, GatedLock):
        return
    gated = GatedLock if isinstance(plain, LockType) else GatedRLock
    setattr(owner, attribute, gated(plain, f"crewai/{name}/{attribute}"))


def begin() -> None:
    """A session begins: its record says how far the console is, and its replay goes on from there."""
    session: Any = current.session
    looks = looking.looks(lanes.lane(), SOURCE)
    number = looks.next(_PLACE)
    if session.recording:
        state = _state()
        looks.found(_PLACE, number, repr(state), state)
    else:
        found = looks.served(_PLACE, number)
        if found is not ABSENT:
            _put_back(found)


def _state() -> dict[str, Value]:
    formatter = event_listener.formatter
    return {
        "verbose": bool(formatter.verbose),
        "tools": dict(ConsoleFormatter.tool_usage_counts),
        "completed": ConsoleFormatter.crew_completion_printed.is_set(),
    }


def _put_back(state: Any) -> None:
    event_listener.formatter.verbose = state["verbose"]
    ConsoleFormatter.tool_usage_counts.clear()
    ConsoleFormatter.tool_usage_counts.update(state["tools"])
    printed = ConsoleFormatter.crew_completion_printed
    (printed.set if state["completed"] else printed.clear)()
