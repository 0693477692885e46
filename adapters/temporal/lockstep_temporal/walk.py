"""A history becomes activations again: what a worker of today would be given, and what today's code answers.

    walked = walk(setup, events, workflow_id="order-7")
    for activation, completion in walked.pairs: …
    walked.verdict            what the SDK's Replayer says, None where it has nothing to say

Only Temporal's core knows how a history is cut into activations, so the SDK's own Replayer is run, with a runner that
notes what goes in and out. Its verdict comes second: it knows neither arguments nor timeouts nor results (`expected`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.plugin import SimplePlugin
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner

from lockstep.errors import Code, StoreError, TargetError
from lockstep_temporal import ending
from lockstep_temporal.decoding import aside
from lockstep_temporal.driver import failed
from lockstep_temporal.setup import Setup
from lockstep_temporal.watching import Stuck, Watch

type Pair = tuple[WorkflowActivation, WorkflowActivationCompletion]

_LOGGERS = ("temporalio.worker._workflow", "temporalio.worker._workflow_instance", "temporalio.worker._replayer")
# What core says of a workflow that does not fit its history, inside the text of a Rust error.
_NONDETERMINISM = re.compile(r"\[TMPRL1100\]\s*(?P<told>.*?)(?:\"|\\\"|, failure_info|$)", re.DOTALL)
_FATAL = re.compile(r"Fatal error in workflow machines: (?P<told>.*?)(?:\"|\\\"|, failure_info|$)", re.DOTALL)
_EVENT = re.compile(r"HistoryEvent\(id: (?P<id>\d+)")
_PATIENCE = 10.0  # seconds that core may take between two activations, half of it at least
_TASK_FAILED = "Workflow activation completion failed"


class Verdict(msgspec.Struct, frozen=True):
    """What the SDK's Replayer says against a workflow.

    told      in its words, without what surrounds them
    event_id  of the history's event that it names, 0 for none
    whole     all that it said
    code      whether it is that the workflow's code raised, and not that commands do not fit
    """

    told: str
    event_id: int
    whole: str
    code: bool = False


class Walked(msgspec.Struct, frozen=True):
    """How a history went with today's code.

    pairs    activations with what was answered, in their order; the last one may be that which core did not accept
    beyond   those past the history's last completed workflow task: what the code would do next
    verdict  of the SDK's Replayer
    """

    pairs: tuple[Pair, ...]
    beyond: tuple[Pair, ...] = ()
    verdict: Verdict | None = None

    def of(self, started: int) -> tuple[Pair, ...]:
        """The pairs of the workflow task that was started by the event of this id."""
        return tuple(pair for pair in self.pairs if pair[0].history_length == started)


def walk(
    setup: Setup, events: Sequence[Any], *, workflow_id: str, namespace: str = "default", watch: Watch | None = None
) -> Walked:
    """Replays one execution's history (HistoryEvents as the server has them, so encoded where there is a codec).

    It ends where core finds that a command does not fit; what had been answered by then is there, the answer that does
    not fit too. Runs under a running loop as well, in a thread of its own then. Raises TargetError LS402 where the
    setup is none, or has no such workflow; Stuck where its code comes to no stop, by the `watch`.
    """
    taken = _Taken(events[0].workflow_execution_started_event_attributes, namespace, setup, watch)
    try:
        with _quiet():
            failure = aside(lambda: _replayed(setup, taken, WorkflowHistory(workflow_id, list(events))))
    except Exception:
        if taken.error is not None:
            raise taken.error from None
        raise
    finally:
        ending.settle()
    if taken.stuck is not None:
        raise taken.stuck
    done = {
        event.workflow_task_completed_event_attributes.started_event_id
        for event in events
        if event.HasField("workflow_task_completed_event_attributes")
    }
    pairs = tuple(pair for pair in taken.pairs if pair[0].history_length in done)
    beyond = tuple(pair for pair in taken.pairs if pair[0].history_length not in done)
    if failure is None and any(completion.HasField("failed") for _, completion in pairs):
        failure = RuntimeError(_TASK_FAILED)
    return Walked(pairs, beyond, None if failure is None else verdict(failure))


def verdict(error: BaseException) -> Verdict:
    """What core's error says, without the Rust around it."""
    whole = str(error)
    found = _NONDETERMINISM.search(whole)
    event = _EVENT.search(whole)
    number = int(event["id"]) if event is not None else 0
    if found is not None:
        told = found["told"].replace('\\"', '"').strip()
        return Verdict(told.removeprefix("Nondeterminism error: "), number, whole)
    fatal = _FATAL.search(whole)
    if fatal is not None:
        return Verdict(fatal["told"].replace('\\"', '"').strip(), number, whole)
    if _TASK_FAILED in whole:
        return Verdict("the workflow's code raised, which fails the workflow task", number, whole, code=True)
    return Verdict(whole.partition("\n")[0], number, whole)


class _Standing(Exception):
    """Core does not get on."""


_left: list[asyncio.Runner] = []  # what is not waited for is not taken down either: that would hang too


def _replayed(setup: Setup, taken: _Taken, history: WorkflowHistory) -> BaseException | None:
    runner = asyncio.Runner()
    try:
        failure = runner.run(_patient(setup, taken, history))
    except _Standing:
        _left.append(runner)
        at = taken.pairs[-1][0].history_length if taken.pairs else 0
        raise StoreError(
            Code.DAMAGED,
            f"the history of workflow {history.workflow_id} cannot be replayed: Temporal's core gets no further behind "
            f"event {at}, so it is not as a server writes one",
        ) from None
    except BaseException:
        runner.close()
        raise
    runner.close()
    return failure


async def _patient(setup: Setup, taken: _Taken, history: WorkflowHistory) -> BaseException | None:
    """Core panics at histories that no server writes, and says nothing then: it is not waited for without end."""
    replay = asyncio.ensure_future(_replay(setup, taken, history))
    before = -1
    while not (await asyncio.wait({replay}, timeout=_PATIENCE))[0]:
        if taken.activations == before:
            raise _Standing
        before = taken.activations
    return replay.result()


async def _replay(setup: Setup, taken: _Taken, history: WorkflowHistory) -> BaseException | None:
    given: dict[str, Any] = {
        "workflows": list(setup.workflows),
        "interceptors": list(setup.interceptors),
        "plugins": [*setup.plugins, _Tap(taken)],
        "workflow_failure_exception_types": list(setup.workflow_failure_exception_types),
        "data_converter": setup.data_converter,
        "workflow_runner": setup.workflow_runner,
        "unsandboxed_workflow_runner": setup.unsandboxed_workflow_runner,
        "runtime": _runtime(),
        "debug_mode": True,  # no deadlock timer: who debugs, and who is slow, is not diverging
    }
    try:
        replayer = Replayer(**{name: value for name, value in given.items() if value is not None})
    except Exception as error:
        raise TargetError(Code.BAD_TARGET, f"the SDK does not take this setup: {error}") from error
    known = {_name(cls) for cls in replayer.config(active_config=True)["workflows"]}
    if taken.started.workflow_type.name not in known and None not in known:
        raise TargetError(
            Code.BAD_TARGET,
            f"the recorded workflow is {taken.started.workflow_type.name}, and the target has no workflow of that "
            f"name: it has {', '.join(sorted(name for name in known if name)) or 'none'}",
        )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return result.replay_failure


@cache
def _runtime() -> Runtime:
    """Core without a voice: it would print each task that does not fit, on stdout."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


def _name(cls: Any) -> str | None:
    """A workflow class's name; None of the dynamic one, which takes all."""
    name: str | None = cls.__temporal_workflow_definition.name
    return name


class _Taken:
    """What a walk collects. `started`: attributes of the first event."""

    def __init__(self, started: Any, namespace: str, setup: Setup, watch: Watch | None) -> None:
        self.started = started
        self.namespace = namespace
        self.setup = setup
        self.pairs: list[Pair] = []
        self.activations = 0  # so far, those that end an instance too
        self.watch = watch
        self.error: TargetError | None = None
        self.stuck: Stuck | None = None


class _Tap(SimplePlugin):
    """The last plugin of a Replayer: it finds the runners as all others have made them."""

    def __init__(self, taken: _Taken) -> None:
        super().__init__("lockstep.walk")
        self._taken = taken

    def configure_replayer(self, config: Any) -> Any:
        config = super().configure_replayer(config)
        plain = config.get("unsandboxed_workflow_runner") or UnsandboxedWorkflowRunner()
        runner = config.get("workflow_runner") if self._taken.setup.sandboxed else plain
        config["workflow_runner"] = _Runner(runner or plain, self._taken)
        config["unsandboxed_workflow_runner"] = _Runner(plain, self._taken)
        return config


class _Runner(WorkflowRunner):
    """Makes instances as the inner runner does, that note what they are given and what they answer."""

    def __init__(self, inner: Any, taken: _Taken) -> None:
        self._inner = inner
        self._taken = taken

    def prepare_workflow(self, defn: Any) -> None:
        """Of the workflow at hand only: each costs an import of its module in a sandbox."""
        if defn.name not in (None, self._taken.started.workflow_type.name):
            return
        try:
            self._inner.prepare_workflow(defn)
        except Exception as error:
            self._taken.error = TargetError(
                Code.BAD_TARGET, f"workflow {defn.name} cannot be made: {type(error).__name__}: {error}"
            )
            raise

    def create_instance(self, det: Any) -> Any:
        return _Instance(self._inner.create_instance(self._as_it_was(det)), self._taken)

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        self._inner.set_worker_level_failure_exception_types(types)

    def _as_it_was(self, det: Any) -> Any:
        """A Replayer has a namespace and a task queue of its own, and workflows can read them."""
        from dataclasses import fields, replace

        queue = self._taken.started.task_queue.name or det.info.task_queue
        changed: dict[str, Any] = {"info": replace(det.info, namespace=self._taken.namespace, task_queue=queue)}
        callback = self._taken.setup.patch_activation_callback
        if callback is not None and any(field.name == "patch_activation_callback" for field in fields(det)):
            changed["patch_activation_callback"] = callback
        return replace(det, **changed)


class _Instance:
    def __init__(self, inner: Any, taken: _Taken) -> None:
        self._inner = inner
        self._taken = taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def activate(self, activation: Any) -> Any:
        given = WorkflowActivation()
        given.CopyFrom(activation)  # an instance takes jobs out of it
        completion = self._activate(activation)
        self._taken.activations += 1
        if not any(job.HasField("remove_from_cache") or job.HasField("query_workflow") for job in given.jobs):
            answered = WorkflowActivationCompletion()
            answered.CopyFrom(completion)  # it is encoded in place later
            self._taken.pairs.append((given, answered))
        return completion

    def _activate(self, activation: Any) -> Any:
        watch = self._taken.watch
        try:
            with watch.on() if watch is not None else nullcontext():
                return self._inner.activate(activation)
        except Stuck as stuck:
            stuck.length = activation.history_length
            self._taken.stuck = stuck
            return failed("the workflow's code came to no stop")
        except SystemExit as error:  # it would end this process too, as if all was well
            return failed(f"SystemExit({error.code!r})")


class _Silent(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False


@contextmanager
def _quiet() -> Iterator[None]:
    """What the SDK would log of a workflow task that failed is told by whoever compares it."""
    silent = _Silent()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(silent)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(silent)
