"""The seam: what a worker's workflow instances are given and what they answer, recorded where it happens.

`WorkflowInstance.activate` is called with all that a workflow ever sees, in the thread that runs its code, and what it
returns is all that the workflow does. A runner that is wrapped hands out instances that are wrapped. A sandboxed runner
stays one: plugins of AI frameworks, whichever comes first, add their modules to instances of that class only, by
`dataclasses.replace`.
"""

from __future__ import annotations

import copy
import dataclasses
from functools import lru_cache
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from lockstep_temporal.execution import Execution, Watch
from lockstep_temporal.inside import RECORDED

# What our own code needs in the sandbox of a workflow, where nothing is imported twice for it.
PASSED_THROUGH = ("lockstep", "lockstep_temporal", "msgspec")


class Instance:
    """A workflow instance whose activations are recorded."""

    def __init__(self, instance: WorkflowInstance, execution: Execution) -> None:
        self._lockstep_instance = instance
        self._lockstep_execution = execution

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        given = WorkflowActivation()
        given.CopyFrom(act)  # the SDK sorts its jobs
        completion = self._lockstep_instance.activate(act)
        self._lockstep_execution.activated(given, completion)
        return completion

    def __getattr__(self, name: str) -> Any:
        # What the SDK asks of an instance beside that has grown from version to version.
        return getattr(self._lockstep_instance, name)


WorkflowInstance.register(Instance)


def recording(runner: WorkflowRunner, watch: Watch) -> WorkflowRunner:
    """The runner, with its instances recorded; itself where they are already."""
    if isinstance(runner, Delegating) or getattr(runner, "lockstep", None) is not None:
        return runner
    if not isinstance(runner, SandboxedWorkflowRunner):
        return Delegating(runner, watch)
    made = copy.copy(runner)
    object.__setattr__(made, "__class__", _recording_class(type(runner)))
    object.__setattr__(made, "lockstep", watch)
    return dataclasses.replace(made, restrictions=made.restrictions.with_passthrough_modules(*PASSED_THROUGH))


class Delegating(WorkflowRunner):
    """A runner of any other kind, with its instances recorded."""

    def __init__(self, runner: WorkflowRunner, watch: Watch) -> None:
        self.runner = runner
        self.lockstep = watch

    def prepare_workflow(self, defn: Any) -> None:
        self.runner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _recorded(self.runner.create_instance(_told(det)), self.lockstep, det)

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        self.runner.set_worker_level_failure_exception_types(types)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runner, name)


@lru_cache
def _recording_class(base: type[SandboxedWorkflowRunner]) -> type[SandboxedWorkflowRunner]:
    """The class of a sandboxed runner, with instances that are recorded."""

    def create_instance(self: Any, det: WorkflowInstanceDetails) -> WorkflowInstance:
        watch: Watch | None = self.lockstep
        if watch is None:
            return base.create_instance(self, det)
        return _recorded(base.create_instance(self, _told(det)), watch, det)

    space = {
        "__annotations__": {"lockstep": Any},
        "__module__": __name__,
        "lockstep": dataclasses.field(default=None, repr=False, compare=False),
        "create_instance": create_instance,
    }
    made = type(f"Recording{base.__name__}", (base,), space)
    return dataclasses.dataclass(frozen=True)(made)


def _recorded(instance: WorkflowInstance, watch: Watch, det: WorkflowInstanceDetails) -> WorkflowInstance:
    made: Any = Instance(instance, watch.execution(det.info))
    return made  # type: ignore[no-any-return]


def _told(det: WorkflowInstanceDetails) -> WorkflowInstanceDetails:
    """Our own interceptor, where the user has one too, sees by this that the instance is recorded already."""
    return dataclasses.replace(det, extern_functions={**det.extern_functions, RECORDED: bool})
