"""What is rebuilt of a history without any code is what core makes of it."""

from typing import Any

import kitchen_sink
import past
import pytest
from live_server import committed

from lockstep_temporal.jobs import jobs_of
from lockstep_temporal.parts import parts_of
from lockstep_temporal.rebuilt import Origins
from lockstep_temporal.setup import setup_of
from lockstep_temporal.walk import walk


def jobs(activation: Any) -> list[bytes]:
    """But for the start, of which the seed is core's affair."""
    return [
        job.SerializeToString(deterministic=True) for job in activation.jobs if not job.HasField("initialize_workflow")
    ]


def check(events: list[Any], target: Any) -> None:
    walked = walk(setup_of(target), events, workflow_id=past.workflow_id(events))
    assert walked.verdict is None
    rebuilt = parts_of(events, "run").parts
    assert [jobs(part.activation) for part in rebuilt] == [jobs(activation) for activation, _ in walked.pairs]
    lengths = [part.activation.history_length for part in rebuilt]
    assert lengths == [activation.history_length for activation, _ in walked.pairs]
    told = [activation.timestamp for activation, _ in walked.pairs]
    local = [any(job.resolve_activity.is_local for job in activation.jobs) for activation, _ in walked.pairs]
    # The clock goes on within a task by as long as a local activity took, which a marker says otherwise.
    assert [part.activation.timestamp for part, at_once in zip(rebuilt, local, strict=True) if not at_once] == [
        at for at, at_once in zip(told, local, strict=True) if not at_once
    ]


@pytest.mark.parametrize("name", past.COMMITTED)
def test_activations_are_rebuilt_as_core_makes_them(name: str) -> None:
    check(past.events_of(committed(name)), kitchen_sink)


@pytest.mark.parametrize(
    ("behind", "order"), [(63, ["signal_workflow", "do_update"]), (2, ["do_update", "signal_workflow"])]
)
def test_an_update_comes_behind_what_was_there_before_its_message(behind: int, order: list[str]) -> None:
    events = past.events_of(committed("kitchen_sink.1"))
    (signal,) = (each for each in events if each.HasField("workflow_execution_signaled_event_attributes"))
    (update,) = (each for each in events if each.HasField("workflow_execution_update_accepted_event_attributes"))
    update.workflow_execution_update_accepted_event_attributes.accepted_request_sequencing_event_id = behind
    made = jobs_of([signal], [update], Origins())
    assert [job.WhichOneof("variant") for job in made] == order
