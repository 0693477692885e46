"""Executions among each other: which run follows one in its chain, what a parent is told of a child, what is sent."""

from __future__ import annotations

from typing import Any

from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob

from lockstep_temporal import executions, retries
from lockstep_temporal.actors import Unable
from lockstep_temporal.asks import Ended, child_completed
from lockstep_temporal.world import World

ABANDON, REQUEST_CANCEL = 2, 3  # ParentClosePolicy
_ENDLESS = 20  # runs of a workflow that nothing else would ever stop


def run_after(
    world: World, ended: Ended, now: int, known: tuple[str, int] | None = None
) -> WorkflowActivation | None:  # fmt: skip
    """The first activation of the run that follows in the chain. `known`: the run id and seed that it is to have.
    Raises Unable."""
    id, seed = known or (executions.run_id(world.run_id, ended.how), None)
    if ended.how == "continue_as_new_workflow_execution":
        at = now + _waits(ended.command)
        return executions.continued(world, ended.command, id, at, seed)
    if ended.how == "fail_workflow_execution" and world.init.HasField("retry_policy"):
        failure = ended.command.failure
        verdict = _verdict(world, failure, now)
        if isinstance(verdict, retries.Again):
            if world.init.attempt >= _ENDLESS and not world.init.retry_policy.maximum_attempts:
                raise Unable(f"workflow {world.init.workflow_type} fails again and again: {failure.message}")
            return executions.retried(world, failure, id, now + verdict.wait, seed)
    return None


def deadline(world: World) -> int:
    """When an execution runs into its own timeout, 0 for never."""
    init = world.init
    found = []
    limit = init.workflow_run_timeout.ToNanoseconds()
    if limit:
        found.append((init.start_time.ToNanoseconds() or world.first.timestamp.ToNanoseconds()) + limit)
    if until := init.workflow_execution_expiration_time.ToNanoseconds():
        found.append(until)
    return min(found, default=0)


def child_result(parent: World, seq: int, child: World, ended: Ended) -> ChildWorkflowResult:
    if ended.how == "complete_workflow_execution":
        return child_completed(ended.command.result if ended.command.HasField("result") else None)
    result = ChildWorkflowResult()
    if ended.how == "cancel_workflow_execution":
        result.cancelled.failure.CopyFrom(parent.child_cancelled(seq))
        return result
    if ended.how == "fail_workflow_execution":
        message, cause = "Child Workflow execution failed", ended.command.failure
        state: RetryState.ValueType = _state(child, ended)
    elif ended.how == "timed_out":
        cause = Failure(message="Timed out")
        cause.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
        message, state = "Child Workflow execution timed out", RetryState.RETRY_STATE_TIMEOUT
    else:
        cause = Failure(message="Terminated")
        cause.terminated_failure_info.SetInParent()
        message, state = "Child Workflow execution terminated", RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
    result.failed.failure.CopyFrom(parent.child_failure(seq, message, cause, state))
    return result


def sent_by(command: Any, run_id: str) -> WorkflowActivationJob:
    """What a workflow sends to another, as that one gets it. `run_id`: of who sends it."""
    job = WorkflowActivationJob()
    if command.DESCRIPTOR.name != "SignalExternalWorkflowExecution":
        reason = command.reason
        job.cancel_workflow.reason = f"Cancel requested by workflow with run id {run_id} with reason: {reason}"
        return job
    job.signal_workflow.signal_name = command.signal_name
    job.signal_workflow.input.extend(command.args)
    for key, payload in command.headers.items():
        job.signal_workflow.headers[key].CopyFrom(payload)
    return job


def sent_before(world: World, workflow_id: str) -> list[WorkflowActivationJob]:
    """What a workflow has sent to another one before the cut, which nobody sends again."""
    return [
        sent_by(each.command, world.run_id)
        for each in world.sent
        if target_of(each.command) == workflow_id and not world.waits_for(each.key)
    ]


def target_of(command: Any) -> str:
    if "child_workflow_id" in command.DESCRIPTOR.fields_by_name and command.child_workflow_id:
        return str(command.child_workflow_id)
    return str(command.workflow_execution.workflow_id)


def _waits(command: Any) -> int:
    """Nanoseconds until the execution that follows begins: none before 1.30, which cannot say it."""
    waits = getattr(command, "backoff_start_interval", None)
    return waits.ToNanoseconds() if waits is not None else 0


def _state(child: World, ended: Ended) -> RetryState.ValueType:
    if not child.init.HasField("retry_policy"):
        return RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET
    verdict = _verdict(child, ended.command.failure, child.now)
    return verdict.state if isinstance(verdict, retries.Given) else RetryState.RETRY_STATE_IN_PROGRESS


def _verdict(world: World, failure: Failure, now: int) -> retries.Again | retries.Given:
    until = world.init.workflow_execution_expiration_time.ToNanoseconds()
    policy = retries.policy(world.init.retry_policy)
    return retries.after(policy, max(world.init.attempt, 1), failure, now, until)
