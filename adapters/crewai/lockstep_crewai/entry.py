"""Where a program begins: it wraps a crew, an agent or a flow.

By itself, so that a CrewAI which lacks what the seams need is told of before they are imported.
"""

from __future__ import annotations

import os

from lockstep_crewai import fitting


def wrap[T](target: T, *, run: str | None = None, store: str | os.PathLike[str] | None = None) -> T:
    """Records a crew, an agent or a flow of CrewAI's from now on: its tasks or methods, and what its models, tools and
    people answer.

    run    what its run is called, with or without `crewai/` before it; what it is called itself if not told: a crew's
           name, an agent's role, a flow's class
    store  path of the store; found as ever if not told

    While a session is on, it is recorded there and not in a run of its own. Returns the target. Raises TargetError
    LS402 for what is none of them, or is wrapped already, LS411 for what has a part that is not recorded, such as
    memory; AdapterError LS410 for a version of CrewAI that lacks what is needed.
    """
    fitting.probe()
    try:
        from lockstep_crewai.recording import record
    except ImportError as error:
        fitting.unfit(str(error))
    record(target, run, store)
    return target
