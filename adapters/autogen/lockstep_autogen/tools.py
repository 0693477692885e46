"""Tools: each call of a workbench is an effect, and so is each of a tool that an agent calls by itself.

An agent or team that is used as a tool is none: its own code runs, and the calls of its models and tools are effects of
its own lanes, so that it remembers in a replay what it remembered.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

from autogen_core.tools import StaticWorkbench, TextResultContent, ToolResult

from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.session.call import Call, failed
from lockstep.session.native import answers
from lockstep.session.native.answers import Question, Running
from lockstep.session.policy import Declared
from lockstep.tools import annotated, declared
from lockstep_autogen.calls import made
from lockstep_autogen.canonical import inert
from lockstep_autogen.layout import TOOL
from lockstep_autogen.places import Place
from lockstep_autogen.proxies import Proxy, plain

_LISTS = Declared("read", "it only lists tools")


class Bench(Proxy):
    """Stands for a workbench in one agent."""

    __slots__ = ()

    async def list_tools(self) -> Any:
        """See `Workbench.list_tools`. What tools a server has is an answer of that server."""
        bench, place = self._lockstep_inner, self._lockstep_place
        if isinstance(bench, StaticWorkbench):
            return await bench.list_tools()
        name = f"{type(bench).__name__}.list_tools"
        found = await outside(place, TOOL, Question(name, {}, {}, _LISTS), bench.list_tools, inert, lambda value: value)
        watch_annotations(bench)
        return found

    async def call_tool(
        self, name: str, arguments: Any = None, cancellation_token: Any = None, call_id: Any = None, **more: Any
    ) -> Any:
        """See `Workbench.call_tool`."""
        bench, place = self._lockstep_inner, self._lockstep_place
        tool = tool_of(bench, name)

        async def really() -> Any:
            return await bench.call_tool(name, arguments, cancellation_token, call_id, **more)

        if is_runner(tool):
            return await really()
        return await outside(
            place, TOOL, question(name, arguments, call_id, effect_of(bench, tool, name)), really, inert,
            lambda value: result_of(name, value),
        )  # fmt: skip

    async def call_tool_stream(
        self, name: str, arguments: Any = None, cancellation_token: Any = None, call_id: Any = None, **more: Any
    ) -> AsyncGenerator[Any, None]:
        """See `StreamWorkbench.call_tool_stream`."""
        bench, place = self._lockstep_inner, self._lockstep_place
        tool = tool_of(bench, name)
        stream = bench.call_tool_stream(name, arguments, cancellation_token, call_id, **more)
        if is_runner(tool):
            async for item in stream:
                yield item
            return
        asked = question(name, arguments, call_id, effect_of(bench, tool, name))
        answers = streamed(
            place, asked, stream, lambda item: isinstance(item, ToolResult), inert, lambda value: result_of(name, value)
        )
        try:
            async for item in answers:
                yield item
        finally:
            await answers.aclose()


class Tool(Proxy):
    """Stands for a tool that an agent calls by itself."""

    __slots__ = ()

    async def run_json(self, args: Any, *more: Any, **options: Any) -> Any:
        """See `Tool.run_json`."""
        tool, place = self._lockstep_inner, self._lockstep_place
        if is_runner(tool):
            return await tool.run_json(args, *more, **options)
        asked = question(tool.name, args, options.get("call_id"), effect_of(None, tool, tool.name))
        return await outside(
            place, TOOL, asked, lambda: tool.run_json(args, *more, **options), snapshot.to_value, snapshot.from_value
        )

    async def run(self, args: Any, *more: Any, **options: Any) -> Any:
        """See `BaseTool.run`."""
        tool, place = self._lockstep_inner, self._lockstep_place
        if is_runner(tool):
            return await tool.run(args, *more, **options)
        asked = question(tool.name, args, None, effect_of(None, tool, tool.name))
        return await outside(
            place, TOOL, asked, lambda: tool.run(args, *more, **options), snapshot.to_value, snapshot.from_value
        )


async def outside(place: Place, kind: str, asked: Question, really: Any, keep: Any, make: Any) -> Any:
    """One call that is answered once. `keep` makes data of what `really` gives, `make` the reverse."""
    call = place.asked(kind, lambda: asked)
    if call is None:
        return await really()
    if call.held:
        await call.aready()
    if not call.live:
        return made(call, make, await answers.answer(call))
    try:
        with Running(call):
            result = await really()
    except BaseException as error:
        failed(call, error)
        raise
    call.end(Status.OK, kept(place, asked.name, result, keep))
    return result


async def streamed(
    place: Place, asked: Question, stream: Any, is_last: Any, keep: Any, make: Any
) -> AsyncGenerator[Any, None]:
    """One call that tells of what it does until it gives its result."""
    call = place.asked(TOOL, lambda: asked)
    if call is not None and call.held:
        await call.aready()
    if call is not None and not call.live:
        try:
            async for piece in answers.taken(call):
                if piece.status is None:
                    yield made(call, snapshot.from_value, piece.value)
                elif piece.value is not None:
                    yield made(call, make, piece.value)
        finally:
            call.end(Status.CLOSED)
            await answers.close(stream)
        return
    try:
        async for item in _live(place, asked, stream, call, is_last, keep):
            yield item
    finally:
        if call is not None:
            call.end(Status.CLOSED)
        await answers.close(stream)


async def _live(
    place: Place, asked: Question, stream: Any, call: Call | None, is_last: Any, keep: Any
) -> AsyncGenerator[Any, None]:
    while True:
        try:
            if call is None:
                item = await anext(stream)
            else:
                with Running(call):
                    item = await anext(stream)
        except StopAsyncIteration:
            break
        except BaseException as error:
            if call is not None:
                failed(call, error)
            raise
        if call is not None:
            if is_last(item):
                call.end(Status.OK, kept(place, asked.name, item, keep))
            else:
                call.part(kept(place, asked.name, item, snapshot.to_value))
        yield item
    if call is not None:
        call.end(Status.OK)


def kept(place: Place, name: str, result: Any, keep: Any) -> Value:
    """What of a result is recorded."""
    try:
        found: Value = keep(result)
    except Exception as error:
        # The program has its result; only the recording is the poorer, and says so.
        place.fault(f"result of tool {name}", error)
        return answers.unstorable(error)
    return found


def question(name: str, arguments: Any, call_id: Any, effect: Declared | None) -> Question:
    """What a tool is asked, as data. The id of the call is the model's own, and no part of what has to be the same."""
    key: dict[str, Value] = {"arguments": inert(arguments if arguments is not None else {})}
    request = {**key, "call_id": str(call_id)} if call_id else key
    return Question(name, request, key, effect)


def result_of(name: str, value: Value) -> Any:
    """The result that a recorded value is. What was edited may be a text, or leave out what is no matter."""
    if isinstance(value, str):
        return ToolResult(name=name, result=[TextResultContent(content=value)])
    if not isinstance(value, dict):
        raise TypeError("a tool's answer is a text, or an object with its result")
    result = value.get("result")
    if isinstance(result, str):
        value = {**value, "result": [{"type": "TextResultContent", "content": result}]}
    return ToolResult.model_validate({"name": name, **value})


# What is known of a tool.


def tool_of(bench: Any, name: str) -> Any:
    """The tool of a workbench that has this name, None where the workbench keeps its tools to itself."""
    names: Mapping[str, str] = getattr(bench, "_override_name_to_original", None) or {}
    for tool in getattr(bench, "_tools", None) or ():
        if getattr(tool, "name", None) == names.get(name, name):
            return plain(tool)
    return None


def is_runner(tool: Any) -> bool:
    """Whether a tool is an agent or a team."""
    return getattr(tool, "_task_runner", None) is not None


def effect_of(bench: Any, tool: Any, name: str) -> Declared | None:
    """What running a tool means, as far as somebody said so: the program by `lockstep.mark` of the tool or of its
    function; else the annotations that an MCP server gave it."""
    for said in (tool, getattr(tool, "_func", None), bench):
        found = declared(said) if said is not None else None
        if found is not None:
            return found
    served = getattr(tool, "_tool", None)  # of `mcp_server_tools`
    told = getattr(served, "annotations", None)
    if told is None and bench is not None:
        told = _annotations(bench).get(name)
    return annotated(told) if told is not None else None


_ANNOTATIONS = "_lockstep_annotations"


def _annotations(bench: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(getattr(bench, "_actor", None), _ANNOTATIONS, None) or {}
    return found


def watch_annotations(bench: Any) -> None:
    """An MCP workbench drops what its server says of a tool's effect when it lists them. From the next time on, which
    is before any of them is called, it is noted."""
    actor = getattr(bench, "_actor", None)
    if actor is None or hasattr(actor, _ANNOTATIONS) or not hasattr(actor, "call"):
        return
    noted: dict[str, Any] = {}
    plainly = actor.call

    async def listed(awaited: Any) -> Any:
        found = await awaited
        with suppress(Exception):
            noted.update((tool.name, tool.annotations) for tool in getattr(found, "tools", ()))
        return found

    async def call(kind: Any, *args: Any, **options: Any) -> Any:
        awaited = await plainly(kind, *args, **options)
        return listed(awaited) if kind == "list_tools" else awaited

    with suppress(AttributeError, TypeError):  # one that takes no attributes
        setattr(actor, _ANNOTATIONS, noted)
        actor.call = call
