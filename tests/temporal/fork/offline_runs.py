"""Records workflows without a server: they are driven as a fork's tail is, and a worker's recorder writes what they do.

    run = record(store, KitchenSink, Order(7, ["jar"]), workflows=WORKFLOWS, activities=ACTIVITIES, inbound=[…])

What is emulated is compared with a real server by `test_tail_as_on_the_server`; here it makes runs in milliseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import InitializeWorkflow, WorkflowActivation, WorkflowActivationJob
from temporalio.converter import default
from temporalio.workflow import _Definition

from lockstep.session.native.journal import Journal
from lockstep_temporal import layout
from lockstep_temporal.actors import Given, Hooks, Inbound
from lockstep_temporal.live import Live, activities_of
from lockstep_temporal.naming import Naming
from lockstep_temporal.prepared import prepare
from lockstep_temporal.recording import Recorder
from lockstep_temporal.setup import Setup
from lockstep_temporal.stage import Stage
from lockstep_temporal.wording import Clear

BEGAN = 1_790_000_000  # seconds since the epoch
_numbers = itertools.count(1)


def record(
    store: str, workflow: type, *args: Any, workflows: Sequence[type], activities: Sequence[Callable[..., Any]] = (),
    inbound: Sequence[Inbound] = (), at_start: Sequence[Inbound] = (), id: str = "", decide: Any = None,
    target: Setup | None = None, **started: Any,
) -> str:  # fmt: skip
    """The name of its run. `at_start`: what came with the start; `started`: more fields of what it is started with."""
    workflow_id = id or f"wf-{next(_numbers)}"
    setup = target or Setup(workflows=list(workflows), activities=list(activities))
    first = started_as(workflow, args, workflow_id, **started)
    first.jobs.extend(job for each in at_start for job in each.jobs)
    run = layout.run_name(workflow_id)
    meta = layout.meta(workflow_id, first.run_id, "default", first.jobs[0].initialize_workflow.workflow_type, "worker")
    with prepare(setup) as prepared:
        functions, interceptors = activities_of(prepared)
        with Live(functions, interceptors, prepared.data_converter) as live:
            journal = Journal.open(store, run, meta)
            recorder = Recorder(journal, Clear(Naming(functions)))

            def task(actor: Any, activation: WorkflowActivation, completion: Any) -> None:
                if actor.lane == "main":
                    assert not completion.HasField("failed"), completion.failed.failure.message
                    recorder.task(activation, completion)

            def turn(actor: Any, ended: Any, following: WorkflowActivation | None) -> None:
                if following is not None:
                    recorder.begin(following)

            hooks = Hooks(decide=decide or (lambda actor, ask: None), task=task, turn=turn)
            stage = Stage(prepared, live, hooks, [list(inbound)])
            recorder.begin(first)
            try:
                stage.begin(first)
                stage.run()
            finally:
                stage.close()
                recorder.close()
                journal.close()
    return run


def started_as(workflow: type, args: Sequence[Any], id: str, **more: Any) -> WorkflowActivation:
    """The activation that begins an execution."""
    definition = _Definition.must_from_class(workflow)
    run_id = f"run-of-{id}"
    init = InitializeWorkflow(
        workflow_type=definition.name or "", workflow_id=id, attempt=1, first_execution_run_id=run_id,
        randomness_seed=7, **more,
    )  # fmt: skip
    init.arguments.extend(default().payload_converter.to_payloads(list(args)) if args else [])
    init.start_time.FromSeconds(BEGAN)
    made = WorkflowActivation(run_id=run_id, history_length=3)
    made.timestamp.FromSeconds(BEGAN)
    made.jobs.add().initialize_workflow.CopyFrom(init)
    return made


def signal(step: int, seconds: float, name: str, *args: Any) -> Inbound:
    """A signal that came with a step, so many seconds after the start."""
    job = WorkflowActivationJob()
    job.signal_workflow.signal_name = name
    job.signal_workflow.input.extend(default().payload_converter.to_payloads(list(args)) if args else [])
    return Inbound(step, at(seconds), True, (job,))


def update(step: int, seconds: float, name: str, *args: Any) -> Inbound:
    """An update likewise."""
    job = WorkflowActivationJob()
    job.do_update.name = name
    job.do_update.id = job.do_update.protocol_instance_id = f"{name}-{step}"
    job.do_update.run_validator = True
    job.do_update.input.extend(default().payload_converter.to_payloads(list(args)) if args else [])
    return Inbound(step, at(seconds), True, (job,))


def cancel(step: int, seconds: float) -> Inbound:
    """A request to cancel likewise."""
    job = WorkflowActivationJob()
    job.cancel_workflow.reason = "enough"
    return Inbound(step, at(seconds), True, (job,))


def never() -> Given:
    """Nothing is answered."""
    return Given(never=True)


def at(seconds: float) -> int:
    return int((BEGAN + seconds) * 1e9)
