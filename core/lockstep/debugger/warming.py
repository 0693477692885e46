"""Has the interpreter of a recorded command started while there is something else to do. Light at import for that."""

from __future__ import annotations

import os

from lockstep.debugger.replay import directory, recipe, revealed
from lockstep.launch.nursery import Nursery
from lockstep.log.timeline import Place


def warm(
    nursery: Nursery, store: str, place: Place, *, isolate: bool, output: int | None, debug: bool
) -> None:  # fmt: skip
    """Begins a nursery for forks of a run. Runs no line of the program, and nothing at all of a run that came from
    elsewhere."""
    reader = place.timeline.reader
    told = recipe(reader)
    if told.command and not reader.info.origin and os.path.isdir(told.cwd or "."):
        with directory(told.cwd):
            nursery.begin(
                revealed(store, reader.meta, told.command), "fork", store, reader.info.name,
                branch=place.address.branch, hash_seed=told.hash_seed or None, images=told.image,
                foreign=told.foreign, stdout=output, stderr=output, isolate=isolate, debug=debug,
            )  # fmt: skip
