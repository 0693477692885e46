"""What of LangChain and LangGraph is replaced so that calls are seen: each place, in one table.

All of it is done once, and does nothing where no turn and no session is on. Who wanted it for a time (a replay, a fork)
has it undone, if nobody else wants it.
"""

from __future__ import annotations

import concurrent.futures
import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from lockstep.errors import AdapterError, Code
from lockstep.log import untapped
from lockstep.taps.patches import Patches
from lockstep_langgraph import calls, ids, lanes, turns
from lockstep_langgraph.adapter import adapter
from lockstep_langgraph.insession import running


class Seam(msgspec.Struct, frozen=True):
    """A place that is replaced.

    module, path  where it stands, as in `langgraph.pregel._loop`, `PregelLoop.tick`
    takes         parameters that it must have
    optional      whether a version may lack it: then there is nothing to see
    """

    module: str
    path: str
    wrap: Callable[[Any], Any]
    takes: tuple[str, ...] = ()
    optional: bool = False


def _seams() -> tuple[Seam, ...]:
    from lockstep_langgraph import models, tools

    chat = "langchain_core.language_models.chat_models"
    tool = "langchain_core.tools.base"
    loop = "langgraph.pregel._loop"
    return (
        Seam(chat, "BaseChatModel._generate_with_cache", models.generating, ("messages", "stop", "run_manager")),
        Seam(chat, "BaseChatModel._agenerate_with_cache", models.agenerating, ("messages", "stop", "run_manager")),
        Seam(chat, "BaseChatModel.stream", models.streaming, ("input", "config")),
        Seam(chat, "BaseChatModel.astream", models.astreaming, ("input", "config")),
        Seam(chat, "BaseChatModel._chat_model_stream_v3", models.streaming_events, ("input", "config"), optional=True),
        Seam(chat, "BaseChatModel._achat_model_stream_v3", models.streaming_events, ("input", "config"), optional=True),
        Seam(tool, "BaseTool.run", tools.running, ("tool_input",)),
        Seam(tool, "BaseTool.arun", tools.arunning, ("tool_input",)),
        Seam(
            "langchain_core.callbacks.manager", "CallbackManager.on_custom_event", tools.dispatching, ("name", "data")
        ),
        Seam(
            "langchain_core.callbacks.manager",
            "AsyncCallbackManager.on_custom_event",
            tools.dispatching,
            ("name", "data"),
        ),
        Seam("langgraph.prebuilt.tool_node", "ToolNode._arun_one", _calling_tools, optional=True),
        Seam(loop, "PregelLoop.tick", _ticking),
        Seam(loop, "PregelLoop.accept_push", _accepting, ("task", "write_idx")),
        Seam("langgraph.pregel._runner", "run_with_retry", _running_task, ("task",)),
        Seam("langgraph.pregel._runner", "arun_with_retry", _arunning_task, ("task",)),
        Seam("langchain_core.runnables.config", "ContextThreadPoolExecutor.submit", _submitting, ("func",)),
        Seam("langchain_core.runnables.config", "ContextThreadPoolExecutor.map", _mapping, ("fn", "iterables")),
        Seam(loop, "PregelLoop.put_writes", _putting_writes, ("task_id", "writes")),
        Seam(loop, "PregelLoop._put_checkpoint", _putting_checkpoint),
        Seam("langgraph.graph.message", "uuid", ids.Uuids),
        Seam("langgraph.pregel._messages", "uuid4", functools.partial(ids.drawing, version=4), optional=True),
        Seam("langgraph.pregel._checkpoint", "uuid6", ids.drawing_checkpoints),
        Seam("langchain_core.callbacks.manager", "uuid7", functools.partial(ids.drawing, version=7), optional=True),
        Seam("lockstep_langgraph.models", "uuid7", functools.partial(ids.drawing, version=7)),
    )


def _namespace(loop: Any) -> str:
    return "|".join(loop.checkpoint_ns)


def _ticking(plain: Any) -> Any:
    """Before the tasks of a step run, it is said which they are."""

    @functools.wraps(plain)
    def tick(self: Any) -> bool:
        turn = turns.running()
        if turn is not None:
            self._lockstep_turn = turn
        if turn is not None or hasattr(getattr(self, "checkpointer", None), "_core"):
            # What a task asks comes after the checkpoint that it works on, in the log too. A loop of asyncio's has put
            # that by now: its put was begun before the tasks are.
            put: Any = getattr(self, "_put_checkpoint_fut", None)
            done = isinstance(put, concurrent.futures.Future) and bool(concurrent.futures.wait((put,)).done)
            if turn is not None:
                turn.check()
            failed = put.exception() if done and not put.cancelled() else None
            if failed is not None:
                raise failed.with_traceback(None)  # each later put would fail with it, longer each time
        try:
            more: bool = plain(self)
        finally:
            for task in getattr(self, "tasks", {}).values():
                lanes.remember(task.id, task.name, task.path)
        return more

    return tick


def _accepting(plain: Any) -> Any:
    """The same of one that a running task has called."""

    @functools.wraps(plain)
    def accept_push(self: Any, task: Any, write_idx: Any, call: Any = None) -> Any:
        pushed = plain(self, task, write_idx, call)
        if pushed is not None:
            lanes.remember(pushed.id, pushed.name, pushed.path, task.id if call is not None else "")
        return pushed

    return accept_push


def _running_task(plain: Any) -> Any:
    """Where a task runs: all of its parts are in its lane."""

    @functools.wraps(plain)
    def run_with_retry(task: Any, *args: Any, **kwargs: Any) -> Any:
        turn = turns.running()
        if turn is None:
            return plain(task, *args, **kwargs)
        turn.check()
        with calls.in_task(task.config):
            return plain(task, *args, **kwargs)

    return run_with_retry


def _arunning_task(plain: Any) -> Any:
    @functools.wraps(plain)
    async def arun_with_retry(task: Any, *args: Any, **kwargs: Any) -> Any:
        turn = turns.running()
        if turn is None:
            return await plain(task, *args, **kwargs)
        turn.check()
        with calls.in_task(task.config):
            return await plain(task, *args, **kwargs)

    return arun_with_retry


def _submitting(plain: Any) -> Any:
    """Where work of a task goes to another thread: by `RunnableParallel`, …"""

    @functools.wraps(plain)
    def submit(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        (strand,) = calls.sent()
        if strand is None:
            return plain(self, func, *args, **kwargs)
        return plain(self, calls.run_as, strand, func, *args, **kwargs)

    return submit


def _mapping(plain: Any) -> Any:
    """The same of several at once: by `batch`, or a `ToolNode` with several tool calls."""

    @functools.wraps(plain)
    def map(self: Any, fn: Any, *iterables: Any, **kwargs: Any) -> Any:
        items = [list(each) for each in iterables]
        strands = calls.sent(len(items[0])) if items and len(items[0]) > 1 else [None]
        if strands[0] is None:
            return plain(self, fn, *iterables, **kwargs)
        return plain(self, lambda strand, *args: calls.run_as(strand, fn, *args), strands, *items, **kwargs)

    return map


def _calling_tools(plain: Any) -> Any:
    """Where a `ToolNode` calls a tool, one after the other in the order of the model's calls; they run at once."""

    @functools.wraps(plain)
    def _arun_one(self: Any, *args: Any, **kwargs: Any) -> Any:
        strand = calls.called()
        found = plain(self, *args, **kwargs)
        return found if strand is None else calls.await_as(strand, found)

    return _arun_one


def _putting_writes(plain: Any) -> Any:
    """Where a task has written, messages get their ids: on whichever thread comes to say so, which need not have the
    context of any turn."""

    @functools.wraps(plain)
    def put_writes(self: Any, task_id: str, writes: Any, *args: Any, **kwargs: Any) -> Any:
        turn = getattr(self, "_lockstep_turn", None)
        if turn is None:
            return plain(self, task_id, writes, *args, **kwargs)
        with ids.drawn_for(turn, f"{lanes.of_task(_namespace(self), task_id)} writes"):
            ids.give(self.specs, writes)
            return plain(self, task_id, writes, *args, **kwargs)

    return put_writes


def _putting_checkpoint(plain: Any) -> Any:
    """Where a checkpoint gets its id, and is seen by a session."""
    plain = running.noting(plain)

    @functools.wraps(plain)
    def _put_checkpoint(self: Any, *args: Any, **kwargs: Any) -> Any:
        turn = turns.running() or getattr(self, "_lockstep_turn", None)
        if turn is None:
            return plain(self, *args, **kwargs)
        with ids.drawn_for(turn, lanes.of_namespace(_namespace(self))):
            return plain(self, *args, **kwargs)

    return _put_checkpoint


_patches = Patches()
_installed = 0
_lock = untapped.allocate_lock()


def install() -> None:
    """Replaces what there is to replace; as often as it is called, `uninstall` has to be to undo it.

    Raises AdapterError LS410 where the installed versions have no such places.
    """
    global _installed
    with _lock:
        _installed += 1
        if _installed == 1:
            try:
                for owner, name, seam in _found():
                    _patches.set(owner, name, seam.wrap(getattr(owner, name)))
            except BaseException:
                _installed = 0
                _patches.undo()
                raise


def uninstall() -> None:
    """Undoes it."""
    global _installed
    with _lock:
        _installed = max(0, _installed - 1)
        if _installed == 0:
            _patches.undo()


def _found() -> list[tuple[Any, str, Seam]]:
    """The places with who holds them. Raises AdapterError LS410."""
    found: list[tuple[Any, str, Seam]] = []
    for seam in _seams():
        *owners, name = seam.path.split(".")
        try:
            owner: Any = import_module(seam.module)
            for each in owners:
                owner = getattr(owner, each)
            plain = getattr(owner, name)
        except (ImportError, AttributeError):
            if seam.optional:
                continue
            raise _unfit(f"{seam.module} has no {seam.path}") from None
        if seam.takes:
            lacking = set(seam.takes) - inspect.signature(plain).parameters.keys()
            if lacking:
                raise _unfit(f"{seam.module}.{seam.path} does not take {', '.join(sorted(lacking))}")
        found.append((owner, name, seam))
    return found


def _unfit(what: str) -> AdapterError:
    from importlib import metadata

    have = ", ".join(f"{name} {metadata.version(name)}" for name in ("langgraph", "langchain-core"))
    tested = adapter.tested
    return AdapterError(
        Code.UNFIT_FRAMEWORK,
        f"{what} in this environment ({have}), so calls of a graph cannot be recorded. Lockstep is tested with"
        f" langgraph {tested.oldest} to {tested.newest}: install one of these, or a newer Lockstep",
    )
