"""Tools: each time that the code of one runs is an effect, whatever it is made of.

An agent that is used as a tool, and a subtask, are no effects themselves: their code is the program's, and what they
ask is recorded in a strand of their own. So is a tool that a client executes (`ClientTool`), which does nothing here.

What a tool does besides is part of its outcome, and done again where it is served: what it sends on the stream, puts
into the inbox, and changes of the context's variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag2.events import DataInput, TextInput, ToolErrorEvent, ToolResult, ToolResultEvent

from lockstep.errors import LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import declarations, snapshot
from lockstep.session.asides import aside, told
from lockstep.session.call import failed
from lockstep.session.lanes import ours
from lockstep.session.policy import Declared
from lockstep.tools import declared
from lockstep_ag2 import calls, events, strands
from lockstep_ag2.calls import Running
from lockstep_ag2.strands import Strand

KIND = "tool"

_FAILED, _VARIABLES = "failed", "variables"
_DELEGATES = ("ag2.tools.subagents.",)  # modules of the functions that run agents
_SUBTASKS = frozenset({"run_subtask", "run_subtasks"})
_MISSING: Any = object()


def ending(tool: Any) -> Callable[..., Any]:
    """The end of a chain that runs the tool, or is answered."""
    if type(tool).__name__ == "ClientTool":
        return tool  # type: ignore[no-any-return]
    delegate = _delegate(tool)
    if delegate:
        return _delegating(tool, delegate)
    return _calling(tool)


def _delegate(tool: Any) -> str:
    """The name of the strand in which an agent runs that is this tool; "" where it is none."""
    agent = getattr(tool, "agent", None)
    if agent is not None and type(tool).__name__ == "SubagentTool":
        return str(agent.name)
    function = getattr(getattr(tool, "model", None), "call", None)
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    if str(module).startswith(_DELEGATES):
        return _delegated(function) or str(getattr(tool, "name", name))
    return "subtask" if module == "ag2.agent" and name in _SUBTASKS else ""


def _delegated(function: Any) -> str:
    """The name of the agent that a delegating function of AG2's closes over."""
    for cell in getattr(function, "__closure__", None) or ():
        found = cell.cell_contents
        if hasattr(found, "ask") and hasattr(found, "name"):
            return str(found.name)
    return ""


def _delegating(tool: Any, name: str) -> Callable[..., Any]:
    async def run(event: Any, context: Any) -> Any:
        strand = strands.running()
        if strand is None:
            return await tool(event, context)
        with strands.on(strand.of_tool(name, strand.number(event), _tasks(event))):
            result = await tool(event, context)
        _learn(strand, result)
        return result

    return run


def _tasks(event: Any) -> list[str]:
    """What the agents are told that a call of `run_subtasks` begins, in its order."""
    arguments: Any = _arguments(event)
    found = arguments.get("tasks") if isinstance(arguments, dict) else None
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _learn(strand: Strand, result: Any) -> None:
    """A background task's id is in the text that says that it began."""
    if isinstance(result, ToolResultEvent):
        for part in result.result.parts:
            if type(part) is TextInput and part.content.startswith("Background task started: "):
                strand.turn.names.learn_text(part.content)


def _calling(tool: Any) -> Callable[..., Any]:
    async def run(event: Any, context: Any) -> Any:
        call = _asked(tool, event)
        if call is None:
            return await tool(event, context)
        if call.held:
            await call.aready()
        if not call.live:
            return await _served(call, event, context)
        before = _before(call, context)
        try:
            with Running(call, context.stream.id):
                result = await tool(event, context)
        except BaseException as error:
            _changed(call, before, context)
            failed(call, error)
            raise
        _changed(call, before, context)
        _over(call, event, result)
        return result

    return run


# The request.


def _asked(tool: Any, event: Any) -> Any:
    call = calls.opened(KIND)
    if call is None:
        return None
    try:
        request: Value = {"arguments": _arguments(event)}
        said = effect_of(tool)
    except Exception as error:
        if not call.live:
            raise
        calls.fault("a tool call", error)
        return None
    call.ask(event.name, request, request, declared=said)
    return call


def _arguments(event: Any) -> Value:
    try:
        return events.data(event.serialized_arguments)
    except ValueError:
        return str(event.arguments)  # no JSON: the tool will say so


def effect_of(tool: Any) -> Declared | None:
    """What running a tool means, as far as the program said so by `lockstep.mark`, of the tool or of its function."""
    function = getattr(getattr(tool, "model", None), "call", None)
    for said in (tool, function):
        found = declared(said) if said is not None else None
        if found is not None:
            return found
    # An agent has copies of the tools that it was given, with the same function.
    return declarations.of_alike(lambda one: _function_of(one) is function) if function is not None else None


def _function_of(tool: Any) -> Any:
    return getattr(getattr(tool, "model", None), "call", None) if type(tool).__name__.endswith("Tool") else None


# The outcome.


def _over(call: Any, event: Any, result: Any) -> None:
    if isinstance(result, ToolErrorEvent):
        call.part(aside(_FAILED, {"text": _text(result), "error": _line(result.error)}))
        call.end(Status.ERROR, result.error)
    else:
        call.end(Status.OK, calls.kept(call, f"result of tool {event.name}", lambda: _compact(result)))


def _compact(result: Any) -> Value:
    """What a tool gave, as its function returned it where that says all; else the whole event."""
    if type(result) is ToolResultEvent and type(result.result) is ToolResult:
        whole = result.result
        if len(whole.parts) == 1 and not whole.final and not whole.metadata and not whole.parts[0].metadata:
            part = whole.parts[0]
            if type(part) is TextInput:
                return str(part.content)
            if type(part) is DataInput:
                data = snapshot.to_value(part.data)
                if not isinstance(data, str) and not _is_event(data):
                    return data
    return events.dump(result)


def _is_event(value: Value) -> bool:
    return (
        isinstance(value, dict)
        and value.get(snapshot.TAG) == "object"
        and str(value.get("$class")).startswith("ag2.")
        and "parent_id" in value
    )


def _made(event: Any, value: Value) -> Any:
    if _is_event(value):
        found = events.load(value)
        found.parent_id = event.id
        return found
    data = snapshot.from_value(value)
    part: Any = TextInput(data) if isinstance(data, str) else DataInput(data)
    return ToolResultEvent.from_call(event, ToolResult(parts=[part]))


async def _served(call: Any, event: Any, context: Any) -> Any:
    failed: Any = None
    async for piece in calls.taken(call):
        if piece.status is None:
            failed = told(piece.value, _FAILED) or failed
            if (changes := told(piece.value, _VARIABLES)) is not None:
                _change(call, changes, context)
            await calls.again(call, piece, context)
            continue
        if piece.status is Status.ERROR:
            error = calls.revived(call, piece)
            if not isinstance(error, Exception) or type(error).__name__.startswith("HumanInput"):
                raise error
            return _error(event, error, failed)
        return calls.given(call, piece.value, lambda value: _made(event, value))
    raise AssertionError("a call's pieces end with its end")


def _error(event: Any, error: Exception, failed: Any) -> Any:
    """The event of a tool that failed. AG2 tells the model the traceback, which is the recorded one."""
    found = ours(ToolErrorEvent.from_call)(event, error)
    if isinstance(failed, dict) and failed.get("error") == _line(error):
        found.result = ToolResult(parts=[ours(TextInput)(str(failed["text"]))])
    return found


def _text(result: Any) -> str:
    return "".join(part.content for part in result.result.parts if type(part) is TextInput)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# Variables of the context.


def _variables(context: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in list(context.variables.items()):
        try:
            found[str(name)] = snapshot.to_value(value)
        except LockstepError:
            found[str(name)] = {snapshot.TAG: "unstorable", "id": id(value)}
    return found


def _before(call: Any, context: Any) -> dict[str, Value] | None:
    """The variables before a tool runs; None where that could not be told, so that nothing of them is."""
    try:
        return _variables(context)
    except Exception as error:
        call.session.fault("variables that a tool may change", error)
        return None


def _changed(call: Any, before: dict[str, Value] | None, context: Any) -> None:
    if before is None:
        return
    try:
        after = _variables(context)
        new = {name: value for name, value in after.items() if before.get(name, _MISSING) != value}
        gone: list[Value] = [name for name in before if name not in after]
        if new or gone:
            call.part(aside(_VARIABLES, {"new": new, "gone": gone}))
    except Exception as error:
        call.session.fault("variables that a tool has changed", error)


def _change(call: Any, changes: Any, context: Any) -> None:
    for name, value in changes["new"].items():
        context.variables[name] = calls.given(call, value, snapshot.from_value)
    for name in changes["gone"]:
        context.variables.pop(name, None)
