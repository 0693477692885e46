"""A reset is a branch of the run of the execution that was reset."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kitchen_sink
import past
import pytest
from live_server import Server, Work, worked
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from lockstep.errors import StoreError
from lockstep.log.store import Store, open_store
from lockstep.log.verify import verify
from lockstep_temporal import history
from lockstep_temporal.recorded import Recorded


async def reset(work: Work) -> tuple[str, str, str]:
    """The histories of five activities in a row, of the same reset to its third, and of that reset to its second."""
    handle = await work.start(kitchen_sink.Steps.run, 5)
    await handle.result()
    run_ids = [handle.first_execution_run_id or ""]
    for task in (3, 2):
        described = await work.client.get_workflow_handle(handle.id, run_id=run_ids[-1]).fetch_history()
        done = [e.event_id for e in described.events if e.HasField("workflow_task_completed_event_attributes")]
        answer = await work.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=work.client.namespace, reason="test", request_id=str(uuid.uuid4()),
                workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run_ids[-1]),
                workflow_task_finish_event_id=done[task],
            )
        )  # fmt: skip
        run_ids.append(answer.run_id)
        await work.client.get_workflow_handle(handle.id, run_id=answer.run_id).result()
    first, second, third = [
        (await work.client.get_workflow_handle(handle.id, run_id=run_id).fetch_history()).to_json()
        for run_id in run_ids
    ]
    return first, second, third


@pytest.fixture(scope="module")
def histories(temporal_server: Server) -> tuple[str, str, str]:
    return worked(
        temporal_server, reset, workflows=kitchen_sink.WORKFLOWS, activities=kitchen_sink.ACTIVITIES
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        yield opened


def test_a_reset_is_a_branch_that_shares_what_came_before(histories: tuple[str, str, str], store: Store) -> None:
    (run,) = {history.imports(store, each.encode()) for each in histories[:2]}
    base = Recorded(store.run(run))
    branched = Recorded(store.run(run, "reset"))
    assert [branch.name for branch in store.run(run).branches] == ["main", "reset"]

    assert len(branched.steps) == len(base.steps) == 6
    shared = [one.pos == other.pos for one, other in zip(base.steps, branched.steps, strict=True)]
    assert shared == [True, True, True, False, False, False]
    (turn,) = branched.turns
    assert turn.status == "ok"
    assert base.body(base.turns[0].end_seq) == branched.body(turn.end_seq)
    assert verify(store.run(run)).problems == ()


def test_the_events_of_a_reset_are_its_history(histories: tuple[str, str, str], store: Store) -> None:
    (run,) = {history.imports(store, each.encode()) for each in histories}
    for branch, text in zip(("main", "reset", "reset-2"), histories, strict=True):
        recorded = Recorded(store.run(run, branch))
        told: list[Any] = [event for step in recorded.steps for event in step.events()]
        assert told + recorded.rest() == past.events_of(text)


def test_a_reset_alone_is_a_run_and_what_was_reset_is_not_put_behind_it(
    histories: tuple[str, str, str], store: Store
) -> None:
    run = history.imports(store, histories[1].encode())
    (turn,) = Recorded(store.run(run)).turns
    assert turn.cause == "reset"
    with pytest.raises(StoreError, match=r"LS214 .* import what comes before it first"):
        history.imports(store, histories[0].encode())


def test_code_is_the_same_in_a_reset(histories: tuple[str, str, str]) -> None:
    for text in histories:
        looked, differs = past.against(past.events_of(text))
        assert (looked.verdict, differs) == (None, None)
