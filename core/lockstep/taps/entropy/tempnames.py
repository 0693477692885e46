"""Names of temporary files: each call of `tempfile` gets a sequence of its own, by lane and number.

So a name that is taken (the recording may have left its directory behind) costs one try, and no later
call gets another name for it. Tried on CPython 3.12 to 3.14.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from types import ModuleType

from lockstep.session import current as active
from lockstep.session.lanes import current, ours
from lockstep.session.reads import count
from lockstep.taps.entropy.streams import derive
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches

_SOURCE = "tempfile"
_patches: Patches | None = None


def install(patches: Patches) -> None:
    """Taps `tempfile`, now or when it is imported."""
    global _patches
    _patches = patches
    when_imported("tempfile", _tap)


def _tap(module: ModuleType) -> None:
    if _patches is None:
        return
    candidates = module._get_candidate_names
    sequence = module._RandomNameSequence

    def names() -> Iterator[str]:
        lane = None if active.session is None else current()
        if lane is None:
            return candidates()  # type: ignore[no-any-return]
        count(lane, _SOURCE)
        number = str(lane.taps[_SOURCE].count)
        made = sequence()
        made._rng = Random(int.from_bytes(derive(lane.session.seed, lane.name, _SOURCE, number)))
        made._rng_pid = os.getpid()
        return made  # type: ignore[no-any-return]

    _patches.set(module, "_get_candidate_names", names)
    # Once a process, by whoever asks first: a probe for a directory that can be written to.
    _patches.set(module, "_get_default_tempdir", ours(module._get_default_tempdir))
