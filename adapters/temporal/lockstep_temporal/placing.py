"""Which run and branch an imported execution belongs to, by the executions that are there."""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.address import MAIN
from lockstep.log.store import Store
from lockstep_temporal import layout
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.tasks import attributes, kind_of


class Execution(msgspec.Struct, frozen=True):
    """One execution, as its history says.

    run_id        of it
    first_run_id  of its chain
    before        run id of the execution that it follows in its chain, "" for none
    reset_of      run id of the execution that it began as a reset of, "" for none
    """

    events: list[Any]
    workflow_id: str
    namespace: str
    run_id: str
    first_run_id: str
    before: str
    reset_of: str


class Place(msgspec.Struct, frozen=True):
    """Where it goes.

    began  when the run's first execution began, in ns since the epoch; 0 where the run is new
    left   whether it is a branch that leaves this one, in the execution that it is a reset of
    """

    run: str
    branch: str = MAIN
    began: int = 0
    left: bool = False


def execution(events: list[Any], workflow_id: str, namespace: str) -> Execution:
    """What a history says of its execution. The run id is that of the first one, unless it was reset."""
    said = attributes(events[0])
    original = said.original_execution_run_id or said.first_execution_run_id or workflow_id
    run_id, reset_of = original, ""
    for event in events:
        if kind_of(event) == "WORKFLOW_TASK_FAILED" and attributes(event).new_run_id:
            reset_of, run_id = attributes(event).base_run_id, attributes(event).new_run_id
    return Execution(
        events, workflow_id, namespace, run_id, said.first_execution_run_id or original,
        said.continued_execution_run_id, reset_of,
    )  # fmt: skip


def place(store: Store, given: Execution, run: str) -> Place:
    """`run`: what the run is to be called, "" for what the workflow's id gives. Raises StoreError LS203, LS214."""
    number = 1
    while True:
        name = run or layout.run_name(given.workflow_id, number)
        if not store.has_run(name):
            return Place(name)
        told: Any = store.run(name).meta
        ours = layout.native(told).get("first_run_id") == given.first_run_id
        if ours and told.get("origin") == layout.HISTORY:
            return _within(store, name, given)
        if run:
            raise StoreError(Code.UNWRITABLE, f"{name} is taken by another run: call this one otherwise, by --run NAME")
        number += 1


def _within(store: Store, name: str, given: Execution) -> Place:
    """In a run of its chain: behind the execution that it follows, or beside the one that it is a reset of."""
    ends = []
    for branch in store.run(name).branches:
        recorded = Recorded(store.run(name, branch.name))
        known = [turn.run_id for turn in recorded.turns]
        if given.run_id in known:
            raise StoreError(
                Code.UNWRITABLE,
                f"{name} has execution {given.run_id} already. To take it in again: lockstep rm {name}, or --run NAME",
            )
        if given.reset_of and given.reset_of in known:
            return Place(name, branch.name, _began(recorded), left=True)
        if not given.reset_of and known and given.before == known[-1]:
            return Place(name, branch.name, _began(recorded))
        ends += known[-1:]
    what = f"is a reset of {given.reset_of}" if given.reset_of else f"follows {given.before or 'none'}"
    raise StoreError(
        Code.BAD_FILE,
        f"not a history that can be imported: {name} ends with execution {' or '.join(ends)}, and this one {what}: "
        "import what comes before it first, or all in one call",
    )


def _began(recorded: Recorded) -> int:
    first = recorded.steps[0].events() if recorded.steps else recorded.rest()
    return first[0].event_time.ToNanoseconds() if first else 1
