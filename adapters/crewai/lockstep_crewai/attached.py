"""Zero-code attach: what is done to CrewAI in a program that is recorded or replayed, as its modules are loaded.

    lockstep record -- python crew.py            # no line of it changes

The seams are put in once CrewAI is loaded as a whole, and ask nobody outside of a session. What CrewAI keeps for itself
is told apart from the program module by module, before others take names from these.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from types import ModuleType

from lockstep.session.effects import Within
from lockstep.taps.imports import during_import, when_imported
from lockstep_crewai import home, telemetry

_LIBRARY = "crewai"  # loaded when all of it is that its own `__init__` loads

# Where Lockstep imports CrewAI, it is not to report to its makers, to ask for a trace, nor to look for a newer version.
_SWITCHES = {
    "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_DISABLE_VERSION_CHECK": "true",
}  # fmt: skip

MODULES = (_LIBRARY, *home.MODULES, *telemetry.MODULES)


def attach(module: ModuleType) -> None:
    """One of these modules has been loaded, and a session is on. Raises AdapterError LS410 for a version of CrewAI that
    lacks what is needed."""
    home.install(module)
    telemetry.install(module)
    if module.__name__ == _LIBRARY:
        from lockstep_crewai import fitting, wrapping

        fitting.probe()
        during_import("lancedb.background_loop", partial(Within, True))  # its thread is none of the program's
        wrapping.install()
        if not getattr(module.__spec__, "_initializing", False):
            # Loaded before a session in code: the thread of its bus is of none, and of no replay's either.
            from lockstep_crewai import early

            early.install()


def quiet() -> None:
    """Before Lockstep itself imports CrewAI, as for a target of `lockstep replay crewai/desk`: that sends nothing,
    asks nothing, waits for nothing at its end, and leaves what it keeps in the home folder as it is. What the user has
    set holds. Where a program has imported it already, it is that program's."""
    if _LIBRARY in sys.modules:
        return
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    home.closed = True
    for module in home.MODULES:
        when_imported(module, home.install)
