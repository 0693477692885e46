"""What workers see of one execution of a workflow, without a server: its activations, and what today's code answers.

lived = Lived(Errand, "milk")               the first workflow task
lived.resolve(1, "bought"); lived.fire(1)   the next ones
lived.tasks                                 [(activation, completion), …]

worker = Worker(store, lived)               a process that records; each one reads the log anew
worker.sees(lived.tasks[:2])                as they happen
worker.is_given_again(lived.tasks[:2])      as a worker without the instance gets them: what was accepted
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter

from lockstep.log.store import open_store
from lockstep_temporal.books import Books, Workflow
from lockstep_temporal.driver import Drive
from lockstep_temporal.execution import Execution
from lockstep_temporal.prepared import Prepared, prepare
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.setup import setup_of

type Task = tuple[WorkflowActivation, WorkflowActivationCompletion]

BEGAN = 1_700_000_000
STEP = 6  # events of a workflow task
_CONVERTER = DataConverter.default


class Lived:
    """One execution."""

    def __init__(
        self, prepared: Prepared, target: type, *arguments: Any, run_id: str = "run-1", workflow_id: str = "errand",
        first_run_id: str = "", original: str = "", continued_from: str = "",
    ) -> None:  # fmt: skip
        self.prepared = prepared
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.first_run_id = first_run_id or run_id
        self.kind = target.__name__
        self.tasks: list[Task] = []
        self.length = 3 - STEP
        job = WorkflowActivationJob()
        begin = job.initialize_workflow
        begin.workflow_type, begin.workflow_id, begin.randomness_seed = self.kind, workflow_id, 7
        begin.first_execution_run_id = self.first_run_id
        if hasattr(begin, "original_execution_run_id"):  # from 1.32 on
            begin.original_execution_run_id = original or run_id
        begin.continued_from_execution_run_id = continued_from
        begin.arguments.extend(_CONVERTER.payload_converter.to_payloads(arguments))
        first = self._activation([job], STEP)
        self._drive = Drive(prepared, first, task_queue="errands")
        self._give(first)

    def resolve(self, *answers: tuple[int, Any], local: bool = False, longer: int = STEP) -> Task:
        """Activities by number, with what they returned. Local ones come within the workflow task that is on."""
        jobs = [resolved(seq, value, local=local) for seq, value in answers]
        return self._give(self._activation(jobs, 0 if local else longer))

    def fire(self, seq: int, longer: int = STEP) -> Task:
        job = WorkflowActivationJob()
        job.fire_timer.seq = seq
        return self._give(self._activation([job], longer))

    def signal(self, name: str, *arguments: Any, longer: int = STEP) -> Task:
        job = WorkflowActivationJob()
        job.signal_workflow.signal_name = name
        job.signal_workflow.input.extend(_CONVERTER.payload_converter.to_payloads(arguments))
        return self._give(self._activation([job], longer))

    def update(self, name: str, *arguments: Any, id: str = "u-1") -> Task:
        job = WorkflowActivationJob()
        job.do_update.name, job.do_update.id, job.do_update.protocol_instance_id = name, id, id
        job.do_update.run_validator = True
        job.do_update.input.extend(_CONVERTER.payload_converter.to_payloads(arguments))
        return self._give(self._activation([job], 0))

    def query(self, name: str) -> Task:
        job = WorkflowActivationJob()
        job.query_workflow.query_id, job.query_workflow.query_type = "q-1", name
        return self._give(self._activation([job], 0), step=False)

    def give(self, *jobs: WorkflowActivationJob, longer: int = STEP) -> Task:
        return self._give(self._activation(list(jobs), longer))

    def close(self) -> None:
        self._drive.close()

    def _activation(self, jobs: Sequence[WorkflowActivationJob], longer: int) -> WorkflowActivation:
        self.length += longer
        activation = WorkflowActivation(run_id=self.run_id, history_length=self.length, jobs=jobs)
        activation.timestamp.FromSeconds(BEGAN + 10 * len(self.tasks))
        return activation

    def _give(self, activation: WorkflowActivation, step: bool = True) -> Task:
        task = activation, self._drive.activate(activation)
        if step:
            self.tasks.append(task)
        return task


def resolved(seq: int, value: Any, *, local: bool = False) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_activity.seq, job.resolve_activity.is_local = seq, local
    result = job.resolve_activity.result.completed.result
    result.CopyFrom(_CONVERTER.payload_converter.to_payloads([value])[0])
    return job


def evicted(run_id: str) -> WorkflowActivation:
    job = WorkflowActivationJob()
    job.remove_from_cache.message = "no room"
    return WorkflowActivation(run_id=run_id, jobs=[job])


class Worker:
    """A worker's process, with the instance of one execution in its cache."""

    def __init__(self, store: Path | str, lived: Lived, books: Books | None = None, **how: Any) -> None:
        self.books = books or Books(str(store))
        self.lived = lived
        workflow = Workflow("default", lived.workflow_id, lived.run_id, lived.first_run_id, lived.kind, **how)
        self.execution = Execution(self.books, workflow)

    def sees(self, tasks: Sequence[Task]) -> None:
        for activation, completion in tasks:
            self.execution.activated(_copy(activation), completion)

    def is_given_again(self, tasks: Sequence[Task]) -> None:
        for activation, completion in tasks:
            again = _copy(activation)
            again.is_replaying = True
            again.run_id = self.lived.run_id
            self.execution.activated(again, completion)

    def is_evicted(self) -> None:
        self.execution.activated(evicted(self.lived.run_id), WorkflowActivationCompletion())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.books.close()


def _copy(activation: WorkflowActivation) -> WorkflowActivation:
    copy = WorkflowActivation()
    copy.CopyFrom(activation)
    return copy


@contextmanager
def prepared_for(*targets: Any) -> Iterator[Prepared]:
    with prepare(setup_of(list(targets))) as prepared:
        yield prepared


@contextmanager
def recorded(store: Path | str, run: str = "temporal/errand", branch: str = "main") -> Iterator[Recorded]:
    with open_store(str(store)) as opened:
        yield Recorded(opened.run(run, branch))


def branches(store: Path | str, run: str = "temporal/errand") -> list[str]:
    with open_store(str(store)) as opened:
        return [branch.name for branch in opened.run(run).branches]


def steps(store: Path | str, run: str = "temporal/errand", branch: str = "main") -> list[str]:
    """Each step as "activity fetch"."""
    with recorded(store, run, branch) as found:
        return [f"{step.event.what} {step.event.name}".rstrip() for step in found.steps]


def effects(store: Path | str, run: str = "temporal/errand", branch: str = "main") -> list[tuple[str, str]]:
    """Each effect's name, and how it ended."""
    with recorded(store, run, branch) as found:
        return [(each.name or each.kind, str(each.end.what) if each.end is not None else "") for each in found.effects]
