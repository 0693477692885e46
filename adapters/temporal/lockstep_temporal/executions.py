"""First activations of executions that a fork begins itself: children, and the runs that follow one of a chain."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from temporalio.api.enums.v1 import ContinueAsNewInitiator
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import InitializeWorkflow, WorkflowActivation

from lockstep_temporal.world import World, as_before

_EVENTS = 3  # of a history when its first task begins: started, task scheduled, task started


def run_id(*of: object) -> str:
    """The run id of an execution that a fork begins: the same for the same fork, so it can be made again."""
    digest = hashlib.blake2b("\0".join(map(str, of)).encode(), digest_size=16).digest()
    return str(uuid.UUID(bytes=digest, version=4))


def child(parent: World, command: Any, id: str, now: int) -> WorkflowActivation:
    """Of a child workflow that `parent` starts."""
    init = InitializeWorkflow(
        workflow_type=command.workflow_type,
        workflow_id=command.workflow_id,
        arguments=command.input,
        first_execution_run_id=id,
        cron_schedule=command.cron_schedule,
        attempt=1,
    )
    init.parent_workflow_info.namespace = parent.namespace
    init.parent_workflow_info.workflow_id = parent.init.workflow_id
    init.parent_workflow_info.run_id = parent.run_id
    root = parent.init.root_workflow
    init.root_workflow.workflow_id = root.workflow_id or parent.init.workflow_id
    init.root_workflow.run_id = root.run_id or parent.run_id
    for name in ("workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout", "retry_policy"):
        if command.HasField(name):
            getattr(init, name).CopyFrom(getattr(command, name))
    if not command.HasField("workflow_task_timeout"):
        init.workflow_task_timeout.FromSeconds(10)
    if command.HasField("priority"):
        init.priority.CopyFrom(command.priority)
    if command.search_attributes.indexed_fields:
        init.search_attributes.CopyFrom(command.search_attributes)
    for key, payload in command.memo.items():
        init.memo.fields[key].CopyFrom(payload)
    for key, payload in command.headers.items():
        init.headers[key].CopyFrom(payload)
    return _first(init, id, now, parent)


def continued(world: World, command: Any, id: str, now: int, seed: int | None = None) -> WorkflowActivation:
    """Of the run that goes on as new. What the command leaves out stays as it is."""
    init = _following(world, now)
    init.continued_from_execution_run_id = world.run_id
    init.continued_initiator = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
    init.attempt = 1
    if command.workflow_type:
        init.workflow_type = command.workflow_type
    del init.arguments[:]
    init.arguments.extend(command.arguments)
    for name in ("workflow_run_timeout", "workflow_task_timeout", "retry_policy"):
        if command.HasField(name):
            getattr(init, name).CopyFrom(getattr(command, name))
    if command.memo:
        init.memo.Clear()
        for key, payload in command.memo.items():
            init.memo.fields[key].CopyFrom(payload)
    elif world.init.memo.fields:
        # As core fills it in: with what the run was started with, and not with what it has upserted since.
        init.memo.CopyFrom(world.init.memo)
    if command.HasField("search_attributes"):
        init.search_attributes.CopyFrom(command.search_attributes)
    init.headers.clear()
    for key, payload in command.headers.items():
        init.headers[key].CopyFrom(payload)
    return _first(init, id, now, world, seed)


def retried(world: World, failure: Failure, id: str, now: int, seed: int | None = None) -> WorkflowActivation:
    """Of the run that tries again what failed."""
    init = _following(world, now)
    init.continued_from_execution_run_id = world.run_id
    init.continued_initiator = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY
    init.continued_failure.CopyFrom(failure)
    init.attempt = world.init.attempt + 1
    return _first(init, id, now, world, seed)


def _following(world: World, now: int) -> InitializeWorkflow:
    init = InitializeWorkflow()
    init.CopyFrom(world.init)
    init.search_attributes.Clear()
    for key, payload in world.search_attributes.items():
        init.search_attributes.indexed_fields[key].CopyFrom(payload)
    if not init.first_execution_run_id:
        init.first_execution_run_id = world.run_id
    return init


def _first(
    init: InitializeWorkflow, id: str, now: int, by: World, seed: int | None = None
) -> WorkflowActivation:  # fmt: skip
    own = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big")
    init.randomness_seed = own if seed is None else seed
    init.start_time.FromNanoseconds(now)
    if "original_execution_run_id" in init.DESCRIPTOR.fields_by_name:
        init.original_execution_run_id = id
    init.workflow_run_timeout.SetInParent()  # the server says 0 for none, of all executions that no client started
    made = WorkflowActivation(run_id=id, history_length=_EVENTS)
    made.timestamp.FromNanoseconds(now)
    as_before(made, by.last)
    made.jobs.add().initialize_workflow.CopyFrom(init)
    return made
