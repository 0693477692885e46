"""Histories become runs: any past execution is imported without its code, its server or its worker.

    name = imports(store, data)                     a history file's content
    name = take(store, events, workflow_id="order-7", namespace="prod")       events that were pulled

Steps and effects are those of a recording of the same execution: both are written by the same `Recorder`. Each step
keeps its events, all of which are the history again. Executions that continued as new, or by cron or a retry, are turns
of one run, one file each, in their order; a reset is a branch of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.errors import Code, StoreError
from lockstep.log.store import Store
from lockstep_temporal import layout
from lockstep_temporal.decoding import encodings
from lockstep_temporal.placing import execution, place
from lockstep_temporal.reading import events_of
from lockstep_temporal.tasks import attributes
from lockstep_temporal.writing import Dated, write


def imports(store: Store, data: bytes, run: str = "") -> str:
    """Takes a history file into a store. `run`: what to call its run, "" for what the workflow's id gives.

    Returns the run's name. Raises StoreError: LS214 for what cannot be read, LS411 for what is not supported, LS203
    where the run has it already, or has another execution in its place.
    """
    return take(store, events_of(data), run=run)


def take(
    store: Store, events: Sequence[Any], *, run: str = "", workflow_id: str = "", namespace: str = "",
    converter: Any = None,
) -> str:  # fmt: skip
    """The same of events that are at hand, which are those of one whole history.

    workflow_id  where the history does not say it, as those of old servers
    namespace    no history says it; "default" if not given
    converter    a DataConverter: with its codec, names and match keys are of what payloads hold. What is written of
                 them stays encoded
    """
    said = attributes(events[0])
    known = said.workflow_id or workflow_id or run.removeprefix("temporal/")
    if not known:
        raise StoreError(
            Code.BAD_FILE,
            "not a history that can be imported: it does not say the workflow's id, as those of old servers: give it "
            "by --run ID",
        )
    given = execution(list(events), known, namespace or "default")
    where = place(store, given, run)
    meta = layout.meta(
        known, given.first_run_id, given.namespace, said.workflow_type.name, layout.HISTORY,
        coded=bool(encodings(events)),
    )  # fmt: skip
    journal = Dated.open(store, where.run, meta, branch=where.branch)
    try:
        write(journal, given, where, converter)
    finally:
        journal.close()
    if journal.faults:
        raise StoreError(Code.UNWRITABLE, f"the history could not be stored whole: {journal.faults[0]}")
    return where.run
