"""How many processors there are: pools size themselves by it, and so decide how work is divided."""

from __future__ import annotations

import os
from typing import Any

from lockstep.session.lanes import current
from lockstep.taps.patches import Patches, stand_in

_cpu_count = os.cpu_count
_affinity = getattr(os, "sched_getaffinity", None)


def facts() -> dict[str, Any]:
    return {"processors": _cpu_count(), "affinity": sorted(_affinity(0)) if _affinity is not None else None}


def tell(patches: Patches, told: dict[str, Any], here: dict[str, Any]) -> None:
    """Replay: as many as there were. `os.process_cpu_count` asks for the affinity."""
    count = told.get("processors")
    if count != here["processors"]:

        def cpu_count(_: object) -> int | None:
            return _cpu_count() if current() is None else count

        patches.set(os, "cpu_count", stand_in(cpu_count, _cpu_count, "os"))
    affinity, real = told.get("affinity"), _affinity
    if real is not None and isinstance(affinity, list) and affinity != here["affinity"]:

        def sched_getaffinity(_: object, pid: int, /) -> set[int]:
            return set(affinity) if pid == 0 and current() is not None else real(pid)

        patches.set(os, "sched_getaffinity", stand_in(sched_getaffinity, real, "os"))
