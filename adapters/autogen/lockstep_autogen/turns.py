"""Turns: what a user has an attached team do, from its beginning to its end.

A turn is what is asked of the team itself. What comes of that on the way (`run` calls `run_stream`, an outer team runs
an inner one) is part of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from autogen_agentchat.base import Response, TaskResult

from lockstep.log.model import Value
from lockstep.session.native.answers import close
from lockstep_autogen import canonical
from lockstep_autogen.layout import INPUT, LOAD, RESET, RESTORE, Moment, Spoken
from lockstep_autogen.seams import Asked

if TYPE_CHECKING:
    from lockstep_autogen.attaching import Root

_RUNS, _STREAMS = ("run", "on_messages"), ("run_stream", "on_messages_stream")
_CHANGES = {"reset": RESET, "on_reset": RESET, "load_state": LOAD}


def wrap(root: Root) -> None:
    """Wraps the methods of an attached team, or agent, that begin a turn."""
    target = root.target
    for name in _RUNS:
        if hasattr(target, name):
            setattr(target, name, _run(root, name, getattr(target, name)))
    for name in _STREAMS:
        if hasattr(target, name):
            setattr(target, name, _stream(root, name, getattr(target, name)))
    for name, source in _CHANGES.items():
        if hasattr(target, name):
            setattr(target, name, _change(root, name, source, getattr(target, name)))


def _run(root: Root, entry: str, plain: Callable[..., Any]) -> Any:
    @wraps(plain)
    async def run(*args: Any, **options: Any) -> Any:
        if root.on:
            return await plain(*args, **options)
        async with Turn(root, entry, args, options) as turn:
            turn.result = await plain(*args, **options)
        return turn.result

    return run


def _stream(root: Root, entry: str, plain: Callable[..., Any]) -> Any:
    @wraps(plain)
    async def run_stream(*args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        source = plain(*args, **options)
        if root.on:
            try:
                async for item in source:
                    yield item
            finally:
                await close(source)
            return
        async with Turn(root, entry, args, options) as turn:
            try:
                async for item in source:
                    if isinstance(item, (TaskResult, Response)):
                        turn.result = item
                    yield item
            finally:
                await close(source)

    return run_stream


def _change(root: Root, entry: str, source: str, plain: Callable[..., Any]) -> Any:
    @wraps(plain)
    async def change(*args: Any, **options: Any) -> Any:
        if root.on:
            return await plain(*args, **options)
        async with Turn(root, entry, args, options, source):
            return await plain(*args, **options)

    return change


class Turn:
    """One turn: tells of its beginning and its end."""

    def __init__(self, root: Root, entry: str, args: Any, options: Any, source: str = INPUT) -> None:
        self.result: Any = None
        self._root = root
        self._source = source
        self._entry = entry
        self._args = args
        self._options = options

    async def __aenter__(self) -> Self:
        root = self._root
        root.on, root.broken = True, None
        try:
            for ear in root.ears.values():
                ear.begins()
            try:
                asked = _asked(self._entry, self._args, self._options)
            except Exception as error:  # what AutoGen itself will refuse
                root.seams.told.fault("what a turn is given", error)
                asked = Asked(entry=self._entry, request={})
            spoken = tuple(Spoken(str(getattr(each, "source", "user")), each) for each in asked.given)
            moment = Moment(lane=root.lane, team=root.target, source=INPUT, spoken=spoken)
            await root.seams.told.begins(asked, moment)
        except BaseException:
            root.on = False
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        root = self._root
        try:
            last = self._last(error)
            if error is None:
                await root.seams.told.ends(self.result, last)
            else:
                root.seams.told.fails(error, last)
        finally:
            root.on = False

    def _last(self, error: BaseException | None) -> Moment | None:
        root = self._root
        if self._source != INPUT and error is None:
            return Moment(lane=root.lane, team=root.target, source=self._source)
        if root.is_team:
            ear = root.ears.get(root.lane)
            return ear.last() if ear is not None else _whole(root, self.result)
        return _whole(root, self.result)


def _whole(root: Root, result: Any) -> Moment | None:
    """What a single agent said: its state is whole, since nobody else has any."""
    if isinstance(result, Response):
        said = Spoken(root.target.name, result.chat_message, tuple(result.inner_messages or ()))
    elif isinstance(result, TaskResult) and result.messages:
        own = [each for each in result.messages if getattr(each, "source", "") == root.target.name]
        if not own:
            return None
        said = Spoken(root.target.name, own[-1], tuple(own[:-1]))
    else:
        return None
    return Moment(lane=root.lane, team=root.target, spoken=(said,))


def _asked(entry: str, args: tuple[Any, ...], options: dict[str, Any]) -> Asked:
    if entry.startswith("run"):
        task = options.get("task")
        request: dict[str, Value] = {"task": _task(task)}
        if options.get("output_task_messages") is False:
            request["output_task_messages"] = False
        return Asked(entry=entry, request=request, given=_messages(task))
    if entry.startswith("on_messages"):
        messages = args[0] if args else options.get("messages", ())
        return Asked(entry=entry, request={"messages": _task(list(messages))}, given=_messages(messages))
    if entry == "load_state":
        return Asked(entry=entry, request={"state": canonical.inert(args[0] if args else options.get("state"))})
    if entry == RESTORE:
        return Asked(entry=entry, request={"channels": canonical.inert(options["channels"])})
    return Asked(entry=entry, request={})


def _task(task: Any) -> Value:
    if task is None or isinstance(task, str):
        return task
    if isinstance(task, (list, tuple)):
        return [canonical.dump(each) for each in task]
    return canonical.dump(task)


def _messages(task: Any) -> tuple[Any, ...]:
    if task is None:
        return ()
    if isinstance(task, str):
        from autogen_agentchat.messages import TextMessage

        return (TextMessage(content=task, source="user"),)
    return tuple(task) if isinstance(task, (list, tuple)) else (task,)
