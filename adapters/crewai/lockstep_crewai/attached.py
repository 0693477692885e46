"""Zero-code attach: what is done to CrewAI in a program that is recorded or replayed, as its modules are loaded.

    lockstep record -- python crew.py            # no line of it changes

The seams are put in once CrewAI is loaded as a whole, and ask nobody outside of a session. What CrewAI keeps for itself
is told apart from the program module by module, before others take names from these.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType

from lockstep.session.effects import Within
from lockstep.taps.imports import during_import
from lockstep_crewai import home, telemetry

_LIBRARY = "crewai"  # loaded when all of it is that its own `__init__` loads

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
