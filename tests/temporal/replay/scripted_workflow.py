"""Runs of workflows for tests, made without a server: a script says what came, and the driver what was commanded.

with scripted(store, Order) as script:
    script.start("order-7", 4000)
    script.resolve(1, "charged")
    script.fire(1)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from lockstep.session.native.journal import Journal
from lockstep_temporal import layout
from lockstep_temporal.driver import Drive, closed
from lockstep_temporal.prepared import Prepared, prepare
from lockstep_temporal.recording import Recorder
from lockstep_temporal.setup import setup_of
from lockstep_temporal.watching import Watch
from lockstep_temporal.wording import Clear, Coded, run_key

BEGAN = 1_700_000_000
_CONVERTER = DataConverter.default


@contextmanager
def scripted(
    store: Path, target: Any, name: str = "order-7", origin: str = layout.WORKER, codec: Any = None
) -> Iterator[Script]:
    """The run `temporal/<name>` in this store: what the script has come, and what `target` commands then."""
    with prepare(setup_of(target)) as prepared:
        kind = next(iter(prepared.workflows))
        meta = layout.meta(name, "run-1", "default", kind, origin, coded=codec is not None)
        journal = Journal.open(str(store), layout.run_name(name), meta)
        wording = Clear() if codec is None else Coded(codec, run_key(journal.secrets.vault))
        script = Script(prepared, Recorder(journal, wording), name, kind)
        try:
            yield script
        finally:
            script.close()
            journal.close()


class Script:
    def __init__(self, prepared: Prepared, recorder: Recorder, workflow_id: str, kind: str) -> None:
        self.prepared = prepared
        self.recorder = recorder
        self.workflow_id = workflow_id
        self.kind = kind
        self.drive: Drive | None = None
        self.first: WorkflowActivation | None = None
        self.runs = self.length = self.seconds = 0

    def start(self, *arguments: Any, seed: int = 7) -> WorkflowActivationCompletion:
        """A first execution, or the next one of the chain."""
        self.close()
        before = f"run-{self.runs}" if self.runs else ""
        self.runs += 1
        self.length = 0
        job = WorkflowActivationJob()
        begin = job.initialize_workflow
        begin.workflow_type, begin.workflow_id, begin.randomness_seed = self.kind, self.workflow_id, seed
        begin.first_execution_run_id = "run-1"
        begin.attempt = 1
        begin.arguments.extend(_CONVERTER.payload_converter.to_payloads(arguments))
        if before:
            begin.continued_from_execution_run_id, begin.continued_initiator = before, 1
        activation = self._activation(job)
        self.first = activation
        self.drive = Drive(self.prepared, activation, task_queue="orders")
        self.recorder.begin(activation, task_queue="orders")
        return self.give(activation)

    def resolve(self, seq: int, value: Any = None, *, local: bool = False) -> WorkflowActivationCompletion:
        return self.give(self._activation(resolved(seq, value, local=local)))

    def fail(self, seq: int, message: str) -> WorkflowActivationCompletion:
        job = WorkflowActivationJob()
        job.resolve_activity.seq = seq
        failed = job.resolve_activity.result.failed.failure
        failed.message, failed.activity_failure_info.activity_type.name = "Activity task failed", "look_up"
        failure = failed.cause
        _CONVERTER.failure_converter.to_failure(
            ApplicationError(message, type="Declined", non_retryable=True), _CONVERTER.payload_converter, failure
        )
        return self.give(self._activation(job))

    def fire(self, seq: int, after: int = 3) -> WorkflowActivationCompletion:
        job = WorkflowActivationJob()
        job.fire_timer.seq = seq
        return self.give(self._activation(job, after=after))

    def signal(self, name: str, *arguments: Any) -> WorkflowActivationCompletion:
        job = WorkflowActivationJob()
        job.signal_workflow.signal_name = name
        job.signal_workflow.input.extend(_CONVERTER.payload_converter.to_payloads(arguments))
        return self.give(self._activation(job))

    def several(self, *jobs: WorkflowActivationJob) -> WorkflowActivationCompletion:
        """Jobs that come with one workflow task."""
        return self.give(self._activation(*jobs))

    def give(self, activation: WorkflowActivation) -> WorkflowActivationCompletion:
        assert self.drive is not None
        completion = self.drive.activate(activation)
        self.recorder.task(activation, completion)
        return completion

    def close(self) -> None:
        if self.drive is not None:
            with Watch(0.3) as watch:
                closed(self.drive, watch.on)
            self.drive = None

    def _activation(self, *jobs: WorkflowActivationJob, after: int = 1) -> WorkflowActivation:
        self.length += 4
        self.seconds += after
        activation = WorkflowActivation(run_id=f"run-{self.runs}", history_length=self.length, jobs=jobs)
        activation.timestamp.FromSeconds(BEGAN + self.seconds)
        return activation


def resolved(seq: int, value: Any, *, local: bool = False) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_activity.seq, job.resolve_activity.is_local = seq, local
    result = job.resolve_activity.result.completed.result
    result.CopyFrom(_CONVERTER.payload_converter.to_payloads([value])[0])
    return job
