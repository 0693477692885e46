"""Steps: each task of a crew and each method of a flow, from CrewAI's interception hooks.

The hook `post_step` is told before anybody hears of what a task or method has come to, and what it returns takes the
place of that. CrewAI swallows every other exception of a hook, so nothing of ours may raise one there that is not to
stop the program. What is executed is wrapped too, since only that knows where a task ends that has failed, and in which
lane its calls are; the hooks are put into the scope of that, and gone with it. A step that no hook has told of is a
fault.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

import msgspec
from crewai import Task
from crewai.flow.runtime import Flow
from crewai.hooks.contexts import StepContext
from crewai.hooks.dispatch import InterceptionPoint, get_scoped_hooks, scoped_hooks

from lockstep.errors import Stop
from lockstep.log.model import Value
from lockstep.session.native import answers
from lockstep_crewai import canonical, classes, naming
from lockstep_crewai.current import Noted, Scope, at, scope
from lockstep_crewai.executors import is_internal
from lockstep_crewai.layout import AGENT, CONTEXT, ERROR, METHOD, OUTPUT, PAUSED, STATE, TASK, Moment

dispatch = import_module("crewai.hooks.dispatch")  # the package has a function of that name


def install() -> None:
    """Puts the seams into CrewAI's classes, once."""
    for cls, name, make in (
        (Task, "execute_sync", _execute_sync), (Task, "execute_async", _execute_async),
        (Task, "_execute_task_async", _execute_thread), (Task, "aexecute_sync", _aexecute_sync),
        (Flow, "_execute_method", _execute_method),
    ):  # fmt: skip
        plain = cls.__dict__[name]
        if not hasattr(plain, "lockstep_plain"):
            made = make(plain)
            made.lockstep_plain = plain  # type: ignore[attr-defined]
            setattr(cls, name, made)
    classes.wrap_function(dispatch, "_emit_telemetry", _telling)


def _telling(plain: Any) -> Any:
    """CrewAI tells listeners how many hooks were called: ours is none of theirs."""

    @wraps(plain)
    def emit(point: Any, outcome: str, hook_count: int, *args: Any) -> None:
        ours = point is InterceptionPoint.POST_STEP and _post_step in get_scoped_hooks(point)
        if hook_count > ours:
            plain(point, outcome, hook_count - ours, *args)

    return emit


def _execute_sync(plain: Any) -> Callable[..., Any]:
    @wraps(plain)
    def execute_sync(self: Any, *args: Any, **options: Any) -> Any:
        here = _begins(naming.of_task, self)
        if here is None:
            return plain(self, *args, **options)
        with _step(here, TASK, self):
            return plain(self, *args, **options)

    return execute_sync


def _execute_async(plain: Any) -> Callable[..., Any]:
    # Its lane is taken here and not in its thread, since nobody says which of two threads begins first.
    @wraps(plain)
    def execute_async(self: Any, *args: Any, **options: Any) -> Any:
        here = _begins(naming.of_task, self)
        if here is None:
            return plain(self, *args, **options)
        with at(here):
            return plain(self, *args, **options)

    return execute_async


def _execute_thread(plain: Any) -> Callable[..., Any]:
    @wraps(plain)
    def _execute_task_async(self: Any, *args: Any, **options: Any) -> Any:
        here = scope.get()
        if here is None or here.noted is None or here.noted.told:
            return plain(self, *args, **options)
        future = options.get("future", args[-1] if args else None)
        try:
            with _step(here, TASK, self):
                plain(self, *args, **options)
                error = future.exception() if future is not None and future.done() else None
                if error is not None:
                    raise _Kept(error)
        except _Kept:
            return None
        except Stop as stop:
            # CrewAI hands on exceptions only: who waits for the task would wait for ever.
            if future is not None and not future.done():
                future.set_exception(stop)
        return None

    return _execute_task_async


def _aexecute_sync(plain: Any) -> Callable[..., Any]:
    @wraps(plain)
    def aexecute_sync(self: Any, *args: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        here = _begins(naming.of_task, self)

        async def execute() -> Any:
            if here is None:
                return await plain(self, *args, **options)
            with _step(here, TASK, self):
                return await plain(self, *args, **options)

        return execute()

    return aexecute_sync


def _execute_method(plain: Any) -> Callable[..., Any]:
    @wraps(plain)
    async def _execute_method(self: Any, method_name: Any, *args: Any, **options: Any) -> Any:
        here = None if is_internal(type(self)) else _begins(str, method_name)
        if here is None:
            return await plain(self, method_name, *args, **options)
        with _step(here, METHOD, self):
            return await plain(self, method_name, *args, **options)

    return _execute_method


class _Kept(Exception):
    """A task's thread keeps what it failed with for who waits for it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _begins(name: Callable[[Any], str], of: Any) -> Scope | None:
    """Where a task or method runs that begins now. None outside of a wrapped kickoff, and in a call that runs for real:
    what comes of it there is a part of its answer."""
    here = scope.get()
    if here is None or answers.within.get() is not None:
        return None
    lane = here.root.names.lane(here.lane, name(of))
    noted = Noted(here.root.strands.begins(here.steps))
    return msgspec.structs.replace(here, lane=lane, each=None, noted=noted)


@contextmanager
def _step(here: Scope, kind: str, of: Any) -> Iterator[None]:
    """What runs in this block is a step."""
    told, noted = here.root.seams.told, here.noted
    assert noted is not None
    with at(here), scoped_hooks(_hooks()):
        try:
            yield
        except Exception as error:
            if not noted.told:
                noted.told = True
                failed = error.error if isinstance(error, _Kept) else error
                told.step(_moment(here, kind, of, channels=_failed(failed)))
            raise
        finally:
            here.root.strands.ends(here.steps)
    if not noted.told:
        told.fault(f"the step {here.lane}", LookupError("CrewAI has told no hook of it"))


def _hooks() -> dict[InterceptionPoint, list[Callable[[Any], Any]]]:
    """Those of the scope that the program is in, and ours after them."""
    found: dict[InterceptionPoint, list[Callable[[Any], Any]]] = {
        point: [hook for hook in get_scoped_hooks(point) if hook is not _post_step] for point in InterceptionPoint
    }
    found[InterceptionPoint.POST_STEP].append(_post_step)
    return found


def _post_step(context: StepContext) -> Any:
    """See `crewai.hooks`: the payload of the context is what the step comes to."""
    here = scope.get()
    if here is None or here.noted is None or here.noted.told:
        return None
    if context.kind == "flow_method" and is_internal(type(context.flow)):
        return None  # of what runs an agent, which is a flow too: older versions tell of its methods
    told = here.root.seams.told
    here.noted.told = True
    try:
        kind = METHOD if context.kind == "flow_method" else TASK
        of = context.flow if kind == METHOD else context.task
        channels = _of_method(context) if kind == METHOD else _of_task(context)
        moment = _moment(here, kind, of, channels=channels, payload=context.payload)
    except Exception as error:
        told.fault(f"the step {here.lane}", error)
        return None
    replaced = told.step(moment)
    if replaced is not None:
        context.payload = replaced.payload  # what a hook returns is not put there where that is None
    return None


def _moment(here: Scope, kind: str, of: Any, *, channels: dict[str, Value], payload: Any = None) -> Moment:
    name = here.lane.removeprefix(f"{here.steps}/")
    began = here.noted.began if here.noted is not None else 0
    beside = here.root.strands.done(here.steps)
    return Moment(
        lane=here.steps, name=name, kind=kind, channels=channels, payload=payload, of=of, began=began, beside=beside
    )  # fmt: skip


def _of_task(context: StepContext) -> dict[str, Value]:
    told: Any = context.task.prompt_context
    return {
        OUTPUT: canonical.output(context.payload), AGENT: str(context.agent_role),
        **({CONTEXT: str(told)} if isinstance(told, str) and told else {}),
    }  # fmt: skip


def _of_method(context: StepContext) -> dict[str, Value]:
    return {OUTPUT: canonical.of_method(context.payload), STATE: canonical.state(context.flow)}


def _failed(error: BaseException) -> dict[str, Value]:
    return {PAUSED: canonical.paused(error)} if canonical.is_pending(error) else {ERROR: canonical.failure(error)}
