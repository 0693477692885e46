"""Drives one execution of a workflow: activations go in, completions come out, and nothing else is needed.

    with prepare(setup) as prepared, Drive(prepared, first) as drive:
        completion = drive.activate(first)
        completion = drive.activate(second)

An activation is one call of a pure function, so there is no server, no Rust core and no deadlock timer: a debugger may
stop inside. It runs in the calling thread, where a debugger and Ctrl-C work; under a running loop, in a thread of the
drive's own, since a workflow is a loop itself.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import Context
from inspect import unwrap
from threading import get_ident
from types import TracebackType
from typing import Any, Self

import msgspec
from temporalio.bridge.proto.workflow_activation import RemoveFromCache, WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.session import sites
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.watching import Stuck

_logger = logging.getLogger("lockstep")

_SDK = ("temporalio", "asyncio", "contextlib", "lockstep")  # the last one wraps how loops run callbacks
_SANDBOX = "__temporal_importer"  # among the globals of the code that the sandbox runs an activation with
_ORIGINS = 12  # frames that a coroutine keeps of where it was made
_INSTANCE = "temporalio.worker._workflow_instance"


class Source(msgspec.Struct, frozen=True):
    """A place in the workflow's code. `str()`: as `file:line in function`."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return sites.place(self.file, self.line, self.function)


class Drive:
    """A fresh instance of one execution (one run id) that is driven.

    prepared    of `lockstep_temporal.prepared.prepare`
    first       the activation that initializes it. It is not activated by this
    namespace, task_queue, flags  as `Prepared.details` has them
    """

    def __init__(
        self,
        prepared: Prepared,
        first: WorkflowActivation,
        *,
        namespace: str = "default",
        task_queue: str = "",
        flags: frozenset[int] | None = None,
    ) -> None:
        self.details = prepared.details(first, namespace=namespace, task_queue=task_queue, flags=flags)
        self.run_id = first.run_id
        self.error: BaseException | None = None  # what the code raised that failed the last activation's task
        self.sources: list[Source | None] = []  # where in the code each command of the last completion was issued
        self._context = Context()
        self._thread: ThreadPoolExecutor | None = None
        self._last: WorkflowActivation = first
        self._instance = self._run(prepared.instance, self.details)
        self._follow()

    def activate(self, activation: WorkflowActivation) -> WorkflowActivationCompletion:
        """One workflow task, or part of one. The activation is left as it is."""
        given = WorkflowActivation()
        given.CopyFrom(activation)
        self._last = given
        self.error = None
        self.sources = []
        completion: WorkflowActivationCompletion = self._run(self._activate, given)
        completion.run_id = self.run_id
        return completion

    def source(self, command: int) -> Source:
        """Where the code issued a command of the last completion, by its index: the line, or its run method."""
        found = self.sources[command] if 0 <= command < len(self.sources) else None
        return found or self._run_method()

    def close(self) -> None:
        """Ends the instance as a worker evicts one: its tasks and coroutines are ended in order."""
        if self._instance is None:
            return
        try:
            evict = WorkflowActivation(run_id=self.run_id, is_replaying=True)
            evict.timestamp.CopyFrom(self._last.timestamp)
            evict.jobs.append(WorkflowActivationJob(remove_from_cache=RemoveFromCache(message="the drive is over")))
            self._run(self._activate, evict)
        finally:
            self._instance = None
            if self._thread is not None:
                self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _run_method(self) -> Source:
        code = unwrap(self.details.defn.run_fn).__code__
        return Source(code.co_filename, code.co_firstlineno, code.co_qualname)

    def _activate(self, activation: WorkflowActivation) -> WorkflowActivationCompletion:
        logger = logging.getLogger(_INSTANCE)
        caught = _Failed()
        logger.addFilter(caught)
        # Calls that are gathered run in tasks of their own: only their coroutines know where they come from.
        depth = sys.get_coroutine_origin_tracking_depth()
        sys.set_coroutine_origin_tracking_depth(_ORIGINS)
        try:
            completion: WorkflowActivationCompletion = self._instance.activate(activation)
        except SystemExit as error:  # it would end this process too, as if all was well
            caught.error = error
            completion = failed(f"SystemExit({error.code!r})")
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)
            logger.removeFilter(caught)
        self.error = caught.error
        return completion

    def _run[T](self, call: Callable[..., T], *given: Any) -> T:
        if asyncio._get_running_loop() is None:
            return self._context.run(call, *given)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="lockstep-temporal-drive")
        return self._thread.submit(self._context.run, call, *given).result()

    def _follow(self) -> None:
        """Notes where in the code each command comes from. Without the seam, places are just not known."""
        inner = self._instance
        sandbox = getattr(inner, "globals_and_locals", None)
        if isinstance(sandbox, dict):
            inner = getattr(sandbox.get("__temporal_in_sandbox"), "instance", None)
        add = getattr(inner, "_add_command", None)
        if add is None:
            return

        def add_command() -> Any:
            self.sources.append(_place(sys._getframe(1)))
            return add()

        inner._add_command = add_command


def closed(drive: Drive, watched: Callable[[], AbstractContextManager[None]]) -> None:
    """Ends an instance, under a watch (`Watch.on`). Its code is told so by exceptions, and may cling to what it does:
    then it is left alone."""
    try:
        with watched():
            drive.close()
    except (Stuck, RuntimeError) as error:
        _logger.debug("the code of workflow %s does not let go: %s", drive.details.info.workflow_type, error)


def failed(told: str) -> WorkflowActivationCompletion:
    """A workflow task that failed."""
    made = WorkflowActivationCompletion()
    made.failed.failure.message = told
    return made


class _Failed(logging.Filter):
    """Takes what the SDK would log of an activation that failed: who drives tells it with what it was compared."""

    error: BaseException | None = None

    def __init__(self) -> None:
        super().__init__()
        self._thread = get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True  # of another drive, or of a worker that is none of ours
        failed = getattr(record, "__temporal_error_identifier", "") == "WorkflowTaskFailure"
        if failed and record.exc_info:
            self.error = record.exc_info[1]
        return not failed


def _place(frame: Any) -> Source | None:
    """The nearest frame of the user's own code, else of whatever code runs in the workflow; None where the SDK issued
    the command by itself."""
    nearest: Source | None = None
    while frame is not None and frame.f_code is not _ACTIVATE and _SANDBOX not in frame.f_globals:
        name = frame.f_globals.get("__name__") or ""
        if name.partition(".")[0] not in _SDK:
            code = frame.f_code
            found = Source(code.co_filename, frame.f_lineno, code.co_qualname)
            if sites.users(code.co_filename):
                return found
            nearest = nearest or found
        frame = frame.f_back
    return nearest or _origin()


def _origin() -> Source | None:
    """Where the coroutine of the running task was made."""
    task = asyncio.current_task()
    made = getattr(task.get_coro(), "cr_origin", None) if task is not None else None
    for file, line, function in made or ():
        if file == __file__ or file.startswith("<"):
            break  # what lies above has the activation run
        if sites.users(file):
            return Source(file, line, function)
    return None


_ACTIVATE = Drive._activate.__code__
