"""Executions of one chain are turns of one run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import past
import pytest
from live_server import committed

from lockstep.errors import Code, StoreError
from lockstep.log.store import Store, open_store
from lockstep.log.verify import verify
from lockstep_temporal import history
from lockstep_temporal.recorded import Recorded


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        yield opened


def imported(store: Store, *names: str) -> str:
    return [history.imports(store, committed(name).encode()) for name in names][-1]


def test_executions_that_continue_as_new_are_turns(store: Store) -> None:
    run = imported(store, "edges.1", "edges.2")
    assert run == "temporal/edges"
    recorded = Recorded(store.run(run))
    first, second = recorded.turns
    assert (first.cause, second.cause) == ("start", "continue_as_new")
    assert (first.arguments, second.arguments) == ([1], [0])
    assert second.first == first.last + 1
    # A step comes after the one before, also where that was of another execution.
    positions = [step.pos for step in recorded.steps]
    assert [step.event.of for step in recorded.steps] == [0, *positions[:-1]]
    assert verify(store.run(run)).problems == ()


def test_an_execution_is_taken_in_once(store: Store) -> None:
    imported(store, "steps")
    with pytest.raises(StoreError, match=r"temporal/steps has execution .* already") as raised:
        imported(store, "steps")
    assert raised.value.code is Code.UNWRITABLE
    assert history.imports(store, committed("steps").encode(), "again") == "again"


def test_a_later_execution_alone_is_a_run_and_an_earlier_one_is_not_put_behind_it(store: Store) -> None:
    run = imported(store, "edges.2")
    assert Recorded(store.run(run)).turns[0].cause == "continue_as_new"
    with pytest.raises(StoreError, match="import what comes before it first, or all in one call"):
        imported(store, "edges.1")


def test_another_workflow_of_the_same_id_is_a_run_of_its_own(store: Store) -> None:
    def other(events: list[dict[str, Any]]) -> None:
        said = events[0]["workflowExecutionStartedEventAttributes"]
        said["firstExecutionRunId"] = said["originalExecutionRunId"] = "another"

    imported(store, "steps")
    assert history.imports(store, past.edited("steps", other)) == "temporal/steps-2"
    assert Recorded(store.run("temporal/steps-2")).turns[0].run_id == "another"


def test_a_name_that_is_taken_is_not_written_to(store: Store) -> None:
    history.imports(store, committed("steps").encode(), "mine")
    with pytest.raises(StoreError, match="LS203 mine is taken by another run"):
        history.imports(store, committed("unwinds").encode(), "mine")


def test_times_are_those_of_the_history(store: Store) -> None:
    events = past.events_of(committed("steps"))
    run = imported(store, "steps")
    (began,) = (each for each in Recorded(store.run(run)).effects if each.seq == 1)
    scheduled, came = events[2].event_time, events[8].event_time  # starts of the workflow tasks
    assert began.end is not None
    assert began.end.at - began.begin.at == came.ToNanoseconds() - scheduled.ToNanoseconds()


def test_an_execution_that_was_terminated_has_failed(store: Store) -> None:
    def terminated(events: list[dict[str, Any]]) -> None:
        del events[10:]
        events.append({
            "eventId": "11", "eventTime": events[-1]["eventTime"],
            "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED",
            "workflowExecutionTerminatedEventAttributes": {"reason": "not needed any more"},
        })  # fmt: skip

    run = history.imports(store, past.edited("steps", terminated))
    recorded = Recorded(store.run(run))
    (turn,) = recorded.turns
    assert turn.status == "error"
    assert "not needed any more" in str(recorded.body(turn.end_seq))
