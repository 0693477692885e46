"""Tools: each time that one runs is an effect, whatever it is made of.

As with models (`models`), LangChain's own part of a call stays what it is: validation, injected arguments, callbacks,
the handling of errors, the message that becomes of what a tool returns. Only the tool's own code (`_run`, `_arun`) is
recorded, or served. Arguments that the framework injects (state, runtime, store, config) are no part of a request.

What a tool tells while it runs is part of its outcome, and told again where it is served: what it writes to the
graph's stream, and its output so far (`emit_output_delta`). So is how it ends otherwise: a tool that asks a human
(`interrupt`), or sends its graph elsewhere (`ParentCommand`), does so again.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langchain_core.tools.base import _get_runnable_config_param
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import interrupt

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.session.asides import aside, told
from lockstep.session.call import Call, Piece
from lockstep.session.policy import CLASSES, Declared
from lockstep.tools import annotated, declared
from lockstep_langgraph import calls
from lockstep_langgraph.calls import Program, Running

KIND = "tool"

_RUNTIME, _SCRATCHPAD = "__pregel_runtime", "__pregel_scratchpad"
_WROTE, _DELTA, _EVENT, _ASKS = "wrote", "delta", "event", "asks"
_ENDED = "$ended"  # how a tool left its graph's node: part of its outcome, no failure of it
_HINTS = ("effect", "lockstep")  # in a tool's metadata
_OWN = frozenset({"config", "run_manager", "callbacks"})


def running(plain: Any) -> Any:
    """Wraps `run`."""

    @functools.wraps(plain)
    def run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        if not calls.on(KIND):
            return plain(self, tool_input, *args, **kwargs)
        return plain(_stand_in(self), tool_input, *args, **kwargs)

    return run


def arunning(plain: Any) -> Any:
    """Wraps `arun`."""

    @functools.wraps(plain)
    async def arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        if not calls.on(KIND):
            return await plain(self, tool_input, *args, **kwargs)
        return await plain(_stand_in(self), tool_input, *args, **kwargs)

    return arun


def _stand_in(tool: Any) -> Any:
    """One for the tool, which differs from it by who runs its code."""
    cls: Any = type(tool)
    found = cls.__new__(cls)
    object.__setattr__(found, "__dict__", {**tool.__dict__, "_run": _run(tool), "_arun": _arun(tool)})
    for name in ("__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__"):
        object.__setattr__(found, name, getattr(tool, name, None))
    return found


def _run(tool: Any) -> Callable[..., Any]:
    @functools.wraps(tool._run)  # LangChain looks at its parameters
    def run(*args: Any, **kwargs: Any) -> Any:
        call = _asked(tool, tool._run, args, kwargs)
        if call is None:
            return tool._run(*args, **kwargs)
        if call.held:
            call.ready()
        if not call.live:
            for piece in calls.taken(call):
                if isinstance(event := told(piece.value, _EVENT), dict):
                    dispatch_custom_event(str(event["name"]), _value(call, event))
                _tell(call, piece, kwargs)
            return _answer(call, tool, piece)
        try:
            with Running(call), _Telling(call, kwargs):
                result = tool._run(*args, **kwargs)
        except BaseException as error:
            _failed(call, error)
            raise
        call.end(Status.OK, _kept(call, tool, result))
        return result

    return run


def _arun(tool: Any) -> Callable[..., Any]:
    @functools.wraps(tool._arun)
    async def arun(*args: Any, **kwargs: Any) -> Any:
        call = _asked(tool, tool._arun, args, kwargs)
        if call is None:
            return await tool._arun(*args, **kwargs)
        if call.held:
            await call.aready()
        if not call.live:
            async for piece in calls.ataken(call):
                if isinstance(event := told(piece.value, _EVENT), dict):
                    await adispatch_custom_event(str(event["name"]), _value(call, event))
                _tell(call, piece, kwargs)
            return _answer(call, tool, piece)
        try:
            with Running(call), _Telling(call, kwargs):
                result = await tool._arun(*args, **kwargs)
        except BaseException as error:
            _failed(call, error)
            raise
        call.end(Status.OK, _kept(call, tool, result))
        return result

    return arun


# The request.


def _asked(tool: BaseTool, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = calls.opened(KIND)
    if call is None:
        return None
    try:
        request: Value = {"arguments": _arguments(tool, method, args, kwargs)}
        declared = effect_of(tool)
    except Exception as error:
        if not call.live:
            raise
        calls.fault("a tool call", error)
        return None
    call.ask(tool.name, request, request, declared=declared)
    return call


def _arguments(tool: BaseTool, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    given = dict(kwargs)
    if args:
        names = list(inspect.signature(method).parameters.values())
        plain = [each.name for each in names if each.kind is each.POSITIONAL_OR_KEYWORD]
        given = {**dict(zip(plain or ["tool_input"], args, strict=False)), **given}
    config = _config_of(type(tool), method.__name__)
    named = tool._filter_injected_args(given)
    return {
        name: calls.inert(value)
        for name, value in named.items()
        if name not in _OWN and name != config and not _is_runtime(value)
    }


@functools.lru_cache(512)
def _config_of(cls: Any, name: str) -> str | None:
    """The parameter that LangChain gives a config to. Looking for it takes as long as all the rest."""
    return _get_runnable_config_param(getattr(cls, name))


def _is_runtime(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == "ToolRuntime" and kind.__module__.startswith("langgraph.")


def effect_of(tool: BaseTool) -> Declared | None:
    """What running a tool means, as far as somebody said so: the program by `lockstep.mark` of the tool or of what it
    runs, or in its metadata (`{"effect": "read"}`); else the annotations that an MCP server gave it."""
    for said in (tool, getattr(tool, "func", None), getattr(tool, "coroutine", None)):
        found = declared(said) if said is not None else None
        if found is not None:
            return found
    about = tool.metadata
    if not about:
        return None
    for name in _HINTS:
        effect = about.get(name)
        if isinstance(effect, str):
            known = next((each for each in CLASSES if each == effect), None)
            if known is not None:
                return Declared(known, "by the tool's metadata")
    return annotated(about.get("annotations") or about)


# The outcome.


def _kept(call: Any, tool: BaseTool, result: Any) -> Value:
    try:
        return snapshot.to_value(result)
    except LockstepError as error:
        # The program has its result; only the recording is the poorer, and says so.
        call.session.fault(f"result of tool {tool.name}", error)
        return {"$": "unstorable", "why": str(error)}


def _failed(call: Any, error: BaseException) -> None:
    if not isinstance(error, GraphBubbleUp):
        calls.failed(call, error)
        return
    try:
        call.end(Status.OK, {_ENDED: type(error).__name__, "with": snapshot.to_value(_with(error))})
    except LockstepError as problem:
        call.session.fault("how a tool ended", problem)
        call.end(Status.OK, {"$": "unstorable", "why": str(problem)})


def _with(error: GraphBubbleUp) -> Any:
    return list(error.args[0]) if isinstance(error, GraphInterrupt) and error.args else list(error.args)


def _answer(call: Any, tool: BaseTool, piece: Piece) -> Any:
    value = piece.value
    if isinstance(value, dict):
        if value.get("$") == "unstorable":
            call.session.diverge(
                Code.UNSERVABLE, f"the result of {tool.name} could not be recorded: {value.get('why')!s}", call=call
            )
        if value.keys() == {_ENDED, "with"}:
            raise _ended(call, str(value[_ENDED]), _given(call, value["with"]))
    return _given(call, value)


def _given(call: Any, value: Value) -> Any:
    try:
        return snapshot.from_value(value)
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)


def _ended(call: Any, name: str, told: Any) -> BaseException:
    if name == "ParentCommand":
        return ParentCommand(*told)
    if name in ("GraphInterrupt", "NodeInterrupt"):
        return GraphInterrupt(tuple(told))
    call.session.diverge(Code.UNSERVABLE, f"the recorded tool ended by {name}, which is not known here", call=call)
    raise AssertionError("unreachable")


# What a tool tells while it runs.


class _Telling:
    """Records what a tool writes to the graph's stream while it runs, and passes it on."""

    def __init__(self, call: Call, kwargs: dict[str, Any]) -> None:
        self._call = call
        self._kwargs = kwargs
        self._tokens: list[tuple[ContextVar[Any], Any]] = []

    def __enter__(self) -> None:
        config = var_child_runnable_config.get()
        runtime = _runtime(config)
        if config is not None and runtime is not None:
            writing = self._writer(runtime.stream_writer, _WROTE)
            configurable = {**config["configurable"], _RUNTIME: runtime.override(stream_writer=writing)}
            scratchpad = configurable.get(_SCRATCHPAD)
            if scratchpad is not None:
                counter = self._counter(scratchpad.interrupt_counter)
                configurable[_SCRATCHPAD] = dataclasses.replace(scratchpad, interrupt_counter=counter)
            self._set(var_child_runnable_config, {**config, "configurable": configurable})
        for name, value in self._kwargs.items():
            if _is_runtime(value):
                self._kwargs[name] = _with_writer(value, self._writer(value.stream_writer, _WROTE))
        outputs = _outputs()
        if outputs is not None and (writer := outputs.get()) is not None:
            self._set(outputs, self._writer(writer, _DELTA))

    def __exit__(self, *_: object) -> None:
        for var, token in reversed(self._tokens):
            try:
                var.reset(token)
            except ValueError:
                continue

    def _counter(self, plain: Callable[[], int]) -> Callable[[], int]:
        """What `interrupt` begins with, whether it has an answer or not."""
        call = self._call

        def count() -> int:
            number = plain()
            call.part(aside(_ASKS, number))
            return number

        return count

    def _set(self, var: ContextVar[Any], value: Any) -> None:
        self._tokens.append((var, var.set(value)))

    def _writer(self, plain: Callable[[Any], None], what: str) -> Callable[[Any], None]:
        call: Any = self._call

        def write(value: Any) -> None:
            try:
                call.part(aside(what, {"value": snapshot.to_value(value)}))
            except LockstepError as error:
                call.session.fault("what a tool wrote to the stream", error)
                call.part(aside(what, {"why": str(error)}))
            with Program(call):
                plain(value)

        return write


def dispatching(plain: Any) -> Any:
    """Wraps `CallbackManager.on_custom_event`, where an event of a tool's own comes to."""

    @functools.wraps(plain)
    def on_custom_event(self: Any, name: str, data: Any, *args: Any, **kwargs: Any) -> Any:
        call: Any = calls.outermost.get() if self.handlers else None
        if call is not None:
            _event(call, name, data)
        return plain(self, name, data, *args, **kwargs)

    return on_custom_event


def _event(call: Any, name: str, data: Any) -> None:
    try:
        call.part(aside(_EVENT, {"name": name, "value": snapshot.to_value(data)}))
    except LockstepError as error:
        call.session.fault("an event of a tool's own", error)
        call.part(aside(_EVENT, {"name": name, "why": str(error)}))


def _with_writer(runtime: Any, writer: Callable[[Any], None]) -> Any:
    import copy

    found = copy.copy(runtime)
    found.stream_writer = writer
    return found


def _runtime(config: Any) -> Any:
    """The graph's, None outside of one."""
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    found = configurable.get(_RUNTIME)
    return found if hasattr(found, "override") else None


@functools.cache
def _outputs() -> ContextVar[Any] | None:
    """Where a tool's output so far is told; LangGraph has it since 1.2."""
    try:
        from langgraph.pregel._tools import _tool_call_writer
    except ImportError:
        return None
    return _tool_call_writer


def _tell(call: Any, piece: Piece, kwargs: dict[str, Any]) -> None:
    """Tells again what the recorded tool told."""
    if (wrote := told(piece.value, _WROTE)) is not None:
        runtime = next((value for value in kwargs.values() if _is_runtime(value)), None)
        runtime = runtime or _runtime(var_child_runnable_config.get())
        if runtime is not None:
            runtime.stream_writer(_value(call, wrote))
    elif told(piece.value, _ASKS) is not None:
        # LangGraph notes which answers of humans a task has used. Where it has none, the record's end says what was
        # asked.
        with suppress(GraphInterrupt):
            interrupt(None)
    elif (delta := told(piece.value, _DELTA)) is not None:
        outputs = _outputs()
        writer = outputs.get() if outputs is not None else None
        if writer is not None:
            writer(_value(call, delta))


def _value(call: Any, body: Any) -> Any:
    if "why" in body:
        call.session.diverge(
            Code.UNSERVABLE, f"what the tool told besides could not be recorded: {body['why']}", call=call
        )
    return _given(call, body["value"])
