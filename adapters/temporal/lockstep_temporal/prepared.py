"""A setup made ready: the SDK's own worker of workflows, without a server, makes the instances that are driven.

    with prepare(setup) as prepared:
        details = prepared.details(activation)

Here are the seams of the SDK that are private: each is probed, and a version without them is told (LS410). The
`Replayer` has plugins applied as it has them in production, and its worker of workflows turns the first activation
into what an instance is made of.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.plugin import SimplePlugin
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from lockstep.errors import AdapterError, Code, TargetError
from lockstep_temporal.interceptors import LockstepInterceptor
from lockstep_temporal.setup import Setup


@contextmanager
def prepare(setup: Setup) -> Iterator[Prepared]:
    """The setup with its plugins' contexts entered, for as long as the block runs: one for all drives of a replay or a
    fork. Raises TargetError LS402, AdapterError LS410."""
    prepared = Prepared(setup)
    with _plugins_on(prepared), _debugger_on():
        yield prepared


class Prepared:
    """What makes instances of a setup's workflows.

    config  the Replayer's, with what the plugins have made of it: workflows, data_converter, interceptors, …
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.replayer = _replayer(setup)
        self.config: dict[str, Any] = dict(self.replayer.config(active_config=True))
        self._worker = _worker(setup, self.config)
        self._sandboxed = _debuggable(self.config["workflow_runner"])
        self._plain = self.config.get("unsandboxed_workflow_runner") or UnsandboxedWorkflowRunner()

    @property
    def data_converter(self) -> Any:
        """As the plugins have made it."""
        return self.config["data_converter"]

    @property
    def workflows(self) -> dict[str, Any]:
        """The definitions of the workflows, by name."""
        found: dict[str, Any] = self._worker._workflows
        return found

    def has(self, name: str) -> bool:
        """Whether there is a workflow for this name: also one for all names (`dynamic=True`)."""
        return name in self.workflows or self._worker._dynamic_workflow is not None

    def definition(self, name: str) -> Any:
        """That of the workflow of this name, or the dynamic one's. Raises TargetError LS402."""
        found = self.workflows.get(name) or self._worker._dynamic_workflow
        if found is None:
            raise TargetError(Code.BAD_TARGET, self._unknown(name))
        return found

    def details(
        self,
        activation: WorkflowActivation,
        *,
        namespace: str = "default",
        task_queue: str = "",
        flags: frozenset[int] | None = None,
    ) -> Any:
        """The `WorkflowInstanceDetails` of an execution, by its first activation: the one that initializes it.

        namespace, task_queue  as the execution had them: workflows can read them
        flags                  the SDK's internal flags that were on when it was recorded; None: this version's own

        Raises TargetError LS402 where the setup has no such workflow.
        """
        from dataclasses import fields, replace

        init = next((job.initialize_workflow for job in activation.jobs if job.HasField("initialize_workflow")), None)
        if init is None:
            raise ValueError("an instance is made of the activation that initializes a workflow")
        worker = self._worker
        worker._namespace, worker._task_queue = namespace, task_queue
        try:
            found = worker._create_workflow_instance(activation, init)
        except ApplicationError as error:
            raise TargetError(Code.BAD_TARGET, self._unknown(init.workflow_type)) from error
        if flags is not None and any(field.name == "default_workflow_logic_flags" for field in fields(found)):
            known = type(self.replayer)._set_default_workflow_logic_flag.__globals__["_WorkflowLogicFlag"]
            found = replace(found, default_workflow_logic_flags=frozenset(each for each in known if each in flags))
        return found

    def instance(self, details: Any) -> Any:
        """A fresh instance, in the runner that a worker would use. Raises TargetError LS402 where the workflow's module
        cannot be imported there."""
        runner = self._sandboxed if details.defn.sandboxed and self.setup.sandboxed else self._plain
        try:
            with loop_at_hand():
                return runner.create_instance(details)
        except Exception as error:
            raise TargetError(
                Code.BAD_TARGET, f"workflow {details.info.workflow_type} cannot be made: {_said(error)}"
            ) from error

    def _unknown(self, name: str) -> str:
        have = ", ".join(sorted(self.workflows)) or "none"
        return f"the recorded workflow is {name}, and the target has no workflow of that name: it has {have}"


class _Details:
    """Stands in for the runner, to get at what the SDK would make an instance of. It validates nothing: that would
    import the modules of all workflows, and what is wrong with one shows when it is made."""

    def prepare_workflow(self, definition: Any) -> None: ...

    def set_worker_level_failure_exception_types(self, types: Any) -> None: ...

    def create_instance(self, details: Any) -> Any:
        return details


def _replayer(setup: Setup) -> Replayer:
    given: dict[str, Any] = {
        "workflows": list(setup.workflows),
        "interceptors": list(setup.interceptors),
        "plugins": list(setup.plugins),
        "workflow_failure_exception_types": list(setup.workflow_failure_exception_types),
        "data_converter": setup.data_converter,
        "workflow_runner": setup.workflow_runner,
        "unsandboxed_workflow_runner": setup.unsandboxed_workflow_runner,
    }
    try:
        return Replayer(**{name: value for name, value in given.items() if value is not None})
    except Exception as error:
        raise TargetError(Code.BAD_TARGET, f"the SDK does not take this setup: {_said(error)}") from error


def _worker(setup: Setup, config: dict[str, Any]) -> Any:
    try:
        from temporalio.worker._workflow import _WorkflowWorker
    except ImportError as error:
        raise unfit("there is no worker of workflows") from error
    given: dict[str, Any] = {
        "bridge_worker": _no_bridge,
        "namespace": "default",
        "task_queue": "",
        "workflows": list(dict.fromkeys(config["workflows"])),  # a plugin may bring one that the target has
        "workflow_task_executor": config.get("workflow_task_executor"),
        "max_concurrent_workflow_tasks": 1,
        "workflow_runner": _Details(),
        "unsandboxed_workflow_runner": _Details(),
        "data_converter": config["data_converter"],
        # Ours would record what is driven.
        "interceptors": [
            each for each in config.get("interceptors") or () if not isinstance(each, LockstepInterceptor)
        ],
        "workflow_failure_exception_types": config.get("workflow_failure_exception_types") or [],
        "patch_activation_callback": setup.patch_activation_callback,
        "debug_mode": False,
        "disable_eager_activity_execution": False,
        "metric_meter": MetricMeter.noop,
        "on_eviction_hook": None,
        "disable_safe_eviction": False,
        "should_enforce_versioning_behavior": False,
        "assert_local_activity_valid": lambda name: None,
        "encode_headers": False,
        "max_workflow_task_external_storage_concurrency": 1,
    }
    parameters = inspect.signature(_WorkflowWorker.__init__).parameters
    needed = [
        each.name
        for each in parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty and each.name not in given
    ]
    if needed or not hasattr(_WorkflowWorker, "_create_workflow_instance"):
        raise unfit(f"the SDK's worker of workflows asks for {', '.join(needed) or 'another way of making instances'}")
    hook = sys.breakpointhook
    try:
        return _WorkflowWorker(**{name: value for name, value in given.items() if name in parameters})
    except Exception as error:
        raise TargetError(Code.BAD_TARGET, f"the SDK does not take this setup: {_said(error)}") from error
    finally:
        sys.breakpointhook = hook


def _no_bridge() -> Any:
    raise RuntimeError("a driven workflow has no server")


def _said(error: BaseException) -> str:
    """The error with what caused it: the SDK wraps what went wrong in a workflow's module."""
    told = str(error) or type(error).__name__
    cause = error.__cause__
    return told if cause is None else f"{told}: {type(cause).__name__}: {cause}"


@contextmanager
def loop_at_hand() -> Iterator[None]:
    """A loop counts as running in this thread. An instance needs one while it is made, as a place to keep itself at:
    nothing runs in it."""
    if asyncio._get_running_loop() is not None:
        yield
        return
    asyncio._set_running_loop(asyncio.AbstractEventLoop())  # type: ignore[abstract]
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


def unfit(what: str) -> AdapterError:
    """For a version of the SDK that lacks a seam."""
    from importlib import metadata

    from lockstep_temporal.adapter import adapter

    tested = adapter.tested
    return AdapterError(
        Code.UNFIT_FRAMEWORK,
        f"{what} in temporalio {metadata.version('temporalio')}, so workflows cannot be driven. Lockstep is tested"
        f" with temporalio {tested.oldest} to {tested.newest}: install one of these, or a newer Lockstep",
    )


def _debuggable(runner: Any) -> Any:
    """The runner, with breakpoint() let through its sandbox, in versions that can."""
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    try:
        from temporalio.worker import _debugger
    except ImportError:
        return runner
    from dataclasses import replace

    relaxed: Any = _debugger._relax_sandbox_for_debugger(runner)
    return replace(relaxed, restrictions=relaxed.restrictions.with_passthrough_modules("_pydevd_bundle"))


@contextmanager
def _debugger_on() -> Iterator[None]:
    """breakpoint() in a workflow comes to the SDK's debugger, in versions that have one."""
    try:
        from temporalio.worker import _debugger
    except ImportError:
        yield
        return
    kept = sys.breakpointhook
    _debugger._install_workflow_breakpoint_hook()
    try:
        yield
    finally:
        sys.breakpointhook = kept


@contextmanager
def _plugins_on(prepared: Prepared) -> Iterator[None]:
    """What the plugins wrap around a Replayer is on while the block runs: in a loop of its own, in a thread of its own,
    since the caller may have a running one or none."""
    plugins = [each for each in prepared.setup.plugins if _has_context(each)]
    if not plugins:
        yield
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lockstep-temporal-plugins", daemon=True)
    thread.start()
    stack = AsyncExitStack()
    try:
        asyncio.run_coroutine_threadsafe(_enter(stack, prepared.replayer, plugins), loop).result()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _has_context(plugin: Any) -> bool:
    own = getattr(type(plugin), "run_replayer", None)
    if own is None:
        return False
    return own is not SimplePlugin.run_replayer or getattr(plugin, "run_context", None) is not None


async def _enter(stack: AsyncExitStack, replayer: Replayer, plugins: list[Any]) -> None:
    """Through the plugins' own `run_replayer`, the first outermost, with no history to replay."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def nothing(replayer: Any, histories: Any) -> Any:
        yield histories

    async def none() -> Any:
        return
        yield

    following: Any = nothing
    for plugin in reversed(plugins):
        following = _wrapped(plugin, following)
    await stack.enter_async_context(following(replayer, none()))


def _wrapped(plugin: Any, following: Any) -> Any:
    return lambda replayer, histories: plugin.run_replayer(replayer, histories, following)
