"""Tools of every kind: recorded with their arguments, served with all that they do besides returning something."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import httpx
import pytest
import requests
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, Send, interrupt
from recorded import WAYS, InSession, Native, both, step_of
from scripted import Asked, Scripted, Streaming, says

import lockstep
from lockstep.log.store import open_store
from lockstep.testing import Provider
from lockstep.testing.answers import Answer
from lockstep_langgraph.tools import effect_of


def plain(found: Any) -> Any:
    if isinstance(found, BaseMessage):
        return dict(found)
    if isinstance(found, dict):
        return {name: plain(each) for name, each in found.items()}
    return [plain(each) for each in found] if isinstance(found, (list, tuple)) else found


def calling(*calls: tuple[str, dict[str, Any]]) -> Any:
    """What a model says that wants these tools."""
    made = [{"name": name, "args": args, "id": f"call-{n}"} for n, (name, args) in enumerate(calls)]
    return {"messages": [AIMessage("", tool_calls=made)]}


def tools_graph(*tools: Any, **options: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(tools, **options))
    builder.add_edge(START, "tools")
    builder.add_edge("tools", END)
    return builder.compile()


def invoked(graph: Any, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: plain(graph.invoke(make()))


def awaited(graph: Any, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: plain(asyncio.run(graph.ainvoke(make())))


RUNS = [invoked, awaited]
EACH = [(invoked, Native), (awaited, Native), (awaited, InSession)]


def kinds(asked: Asked) -> dict[str, Any]:
    """One tool of each kind, called `look`."""

    @tool
    def look(number: int) -> str:
        """Looks."""
        return f"{number}: {asked.tool('look')}"

    def plain_look(number: int) -> str:
        """Looks."""
        return f"{number}: {asked.tool('look')}"

    async def alook(number: int) -> str:
        """Looks."""
        await asyncio.sleep(0)
        return f"{number}: {asked.tool('look')}"

    class Look(BaseTool):
        name: str = "look"
        description: str = "Looks."

        def _run(self, number: int) -> str:
            return f"{number}: {asked.tool('look')}"

    class ALook(Look):
        async def _arun(self, number: int, run_manager: Any = None) -> str:
            assert run_manager is not None
            return f"{number}: {asked.tool('look')}"

    return {
        "decorated": look,
        "structured": StructuredTool.from_function(plain_look, name="look"),
        "structured, both": StructuredTool.from_function(plain_look, alook, name="look"),
        "of one input": Tool("look", plain_look, "Looks."),
        "class": Look(),
        "class, both": ALook(),
    }


KINDS = [
    *((kind, run, Native) for kind in kinds(Asked()) for run in RUNS),
    ("decorated", awaited, InSession),
    ("class, both", invoked, InSession),
]


@pytest.mark.parametrize(("kind", "run", "way"), KINDS)
def test_a_tool_of_each_kind(kind: str, run: Any, way: Any) -> None:
    asked = Asked()
    name = "__arg1" if kind == "of one input" else "number"
    graph = tools_graph(kinds(asked)[kind])
    both(way, asked, run(graph, lambda: calling(("look", {name: 7}), ("look", {name: 7}))), models=0, tools=2)


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_is_only_async(way: Any) -> None:
    asked = Asked()

    @tool
    async def look(number: int) -> str:
        """Looks."""
        return f"{number}: {asked.tool('look')}"

    both(way, asked, awaited(tools_graph(look), lambda: calling(("look", {"number": 7}))), models=0, tools=1)


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_a_node_calls_by_itself(way: Any) -> None:
    asked = Asked()
    look = kinds(asked)["decorated"]
    builder = StateGraph(MessagesState)
    builder.add_node("node", lambda state: {"messages": [HumanMessage(look.invoke({"number": 7}))]})
    builder.add_edge(START, "node")
    run = way()
    program = invoked(builder.compile(), lambda: {"messages": []})
    before = run.record(program)
    asked.clear()
    assert run.replay(program) == before
    assert (asked.tools, run.identical) == ([], True)


class NoOrderError(Exception):
    def __init__(self, order: int, *, hint: str) -> None:
        super().__init__(f"no order {order}")
        self.hint = hint


@pytest.mark.parametrize(("run", "way"), EACH)
def test_a_tool_that_raises_raises_again(run: Any, way: Any) -> None:
    asked = Asked()

    @tool
    def look(number: int) -> str:
        """Looks."""
        asked.tool("look")
        raise NoOrderError(number, hint="ask again")

    def told(error: NoOrderError) -> str:
        return f"{type(error).__name__} {error} {error.hint}"

    graph = tools_graph(look, handle_tool_errors=told)
    found = both(way, asked, run(graph, lambda: calling(("look", {"number": 7}))), models=0, tools=1)
    assert found["messages"][-1]["content"] == "NoOrderError no order 7 ask again"
    assert found["messages"][-1]["status"] == "error"


@pytest.mark.parametrize("handled", [True, "It failed", lambda error: f"because of {error}"])
def test_a_tool_that_handles_its_own_error(handled: Any) -> None:
    asked = Asked()

    def look(number: int) -> str:
        """Looks."""
        asked.tool("look")
        raise ToolException("nothing there")

    graph = tools_graph(StructuredTool.from_function(look, handle_tool_error=handled))
    found = both(Native, asked, invoked(graph, lambda: calling(("look", {"number": 7}))), models=0, tools=1)
    assert found["messages"][-1]["status"] == "error"


@pytest.mark.parametrize("way", WAYS)
def test_arguments_that_are_refused_never_reach_the_tool(way: Any) -> None:
    asked = Asked()
    graph = tools_graph(kinds(asked)["decorated"])
    found = both(way, asked, invoked(graph, lambda: calling(("look", {"number": "seven"}))), models=0, tools=0)
    assert "number" in found["messages"][-1]["content"]


@dataclasses.dataclass
class Order:
    id: int
    lines: tuple[str, ...]


@pytest.mark.parametrize(("run", "way"), EACH)
def test_an_artifact_comes_back_as_what_it_was(run: Any, way: Any) -> None:
    asked = Asked()

    @tool(response_format="content_and_artifact")
    def look(number: int) -> tuple[str, Order]:
        """Looks."""
        return f"order {asked.tool('look')}", Order(number, ("a", "b"))

    found = both(way, asked, run(tools_graph(look), lambda: calling(("look", {"number": 7}))), models=0, tools=1)
    assert found["messages"][-1]["artifact"] == Order(7, ("a", "b"))


class Told(MessagesState):
    order: int


@pytest.mark.parametrize(("run", "way"), EACH)
def test_a_tool_that_returns_a_command_moves_the_graph(run: Any, way: Any) -> None:
    asked = Asked()

    @tool
    def look(number: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Looks."""
        found = asked.tool("look")
        return Command(update={"order": found, "messages": [ToolMessage(f"{number} found", tool_call_id=tool_call_id)]})

    builder = StateGraph(Told)
    builder.add_node("tools", ToolNode([look]))
    builder.add_edge(START, "tools")
    found = both(way, asked, run(builder.compile(), lambda: calling(("look", {"number": 7}))), models=0, tools=1)
    assert found["order"] > 0
    assert found["messages"][-1]["tool_call_id"] == "call-0"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("run", RUNS)
def test_what_the_framework_injects_is_not_stored(run: Any, way: Any) -> None:
    asked = Asked()

    @tool
    def look(number: int, runtime: ToolRuntime, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Looks."""
        assert state["secret_state"] == runtime.state["secret_state"]
        runtime.stream_writer({"n": number})
        return f"{number}: {asked.tool('look')}"

    class Secretive(MessagesState):
        secret_state: str

    builder = StateGraph(Secretive)
    builder.add_node("tools", ToolNode([look]))
    builder.add_edge(START, "tools")

    def given() -> Any:
        return {**calling(("look", {"number": 7})), "secret_state": "nobody-may-keep-this"}

    run_of = way()
    program = run(builder.compile(), given)
    before = run_of.record(program)
    asked.clear()
    assert run_of.replay(program) == before
    assert (asked.tools, run_of.identical) == ([], True)
    with open_store(None) as store:
        assert b"nobody-may-keep-this" not in Path(store.path).read_bytes()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", ["writer", "runtime"])
def test_what_a_tool_writes_to_the_stream_is_written_again(by: str, way: Any) -> None:
    asked = Asked()

    @tool
    def look(number: int, runtime: ToolRuntime) -> str:
        """Looks."""
        write = get_stream_writer() if by == "writer" else runtime.stream_writer
        for done in range(3):
            write({"number": number, "done": done, "token": asked.tool("look")})
        return "looked"

    graph = tools_graph(look)

    def streamed() -> Any:
        return list(graph.stream(calling(("look", {"number": 7})), stream_mode="custom"))

    found = both(way, asked, streamed, models=0, tools=3)
    assert [each["done"] for each in found] == [0, 1, 2]

    async def astreamed() -> Any:
        return [each async for each in graph.astream(calling(("look", {"number": 7})), stream_mode="custom")]

    asked.clear()
    both(way, asked, lambda: asyncio.run(astreamed()), models=0, tools=3)


if hasattr(ToolRuntime, "emit_output_delta"):  # LangGraph has it since 1.2

    @pytest.mark.parametrize("way", WAYS)
    def test_output_that_a_tool_gives_bit_by_bit_is_given_again(way: Any) -> None:
        asked = Asked()

        @tool
        def look(number: int, runtime: ToolRuntime) -> str:
            """Looks."""
            runtime.emit_output_delta(f"looking {asked.tool('look')}")
            return "looked"

        graph = tools_graph(look)

        def streamed() -> Any:
            return [
                {**each, "output": plain(each.get("output"))}
                for each in graph.stream(calling(("look", {"number": 7})), stream_mode="tools")
            ]

        found = both(way, asked, streamed, models=0, tools=1)
        assert [each["event"] for each in found] == ["tool-started", "tool-output-delta", "tool-finished"]


@pytest.mark.parametrize("way", WAYS)
def test_events_of_a_tool_s_own_are_told_again(way: Any) -> None:
    asked = Asked()

    def look(number: int) -> str:
        """Looks."""
        dispatch_custom_event("looking", {"number": number, "token": asked.tool("look")})
        return "looked"

    async def alook(number: int) -> str:
        """Looks."""
        await adispatch_custom_event("looking", {"number": number, "token": asked.tool("look")})
        return "looked"

    graph = tools_graph(StructuredTool.from_function(look, alook))

    async def events() -> Any:
        found = graph.astream_events(calling(("look", {"number": 7})), version="v2")
        return [[each["event"], each["name"], plain(each["data"])] async for each in found]

    told = both(way, asked, lambda: asyncio.run(events()), models=0, tools=1)
    assert [name for event, name, _ in told if event == "on_custom_event"] == ["looking"]

    class Hears(BaseCallbackHandler):
        def __init__(self) -> None:
            self.told: list[Any] = []

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            self.told.append([name, data])

    def heard() -> Any:
        hears = Hears()
        graph.invoke(calling(("look", {"number": 7})), {"callbacks": [hears]})
        return hears.told

    asked.clear()
    assert len(both(way, asked, heard, models=0, tools=1)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_asks_a_human(way: Any) -> None:
    asked = Asked()

    @tool
    def refund(cents: int) -> str:
        """Refunds."""
        first = interrupt({"refund": cents})
        second = interrupt({"sure": first})
        return f"{first} {second} {asked.tool('refund')}"

    def program() -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([refund]))
        builder.add_edge(START, "tools")
        graph = builder.compile(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        found: list[Any] = []
        for given in (calling(("refund", {"cents": 40})), Command(resume="approved"), Command(resume="quite")):
            state = graph.invoke(given, config)
            found.append([each.value for each in state.get("__interrupt__", ())])
        waited = [write for each in graph.checkpointer.list(config) for write in each.pending_writes]  # type: ignore[union-attr]
        return [*found, state["messages"][-1].content, sorted(str(each[1:]) for each in waited if "resume" in each[1])]

    found = both(way, asked, program, models=0, tools=1)
    assert found[:3] == [[{"refund": 40}], [{"sure": "approved"}], []]
    assert found[3].startswith("approved quite ")
    assert "approved" in str(found[4])


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_returns_directly_ends_the_agent(way: Any) -> None:
    asked = Asked()

    @tool(return_direct=True)
    def look(number: int) -> str:
        """Looks."""
        return f"{number}: {asked.tool('look')}"

    agent = create_agent(Scripted(says=says([("look", {"number": 7})], "never"), asked=asked), [look])
    program = invoked(agent, lambda: {"messages": [("user", "look")]})
    assert both(way, asked, program, models=1, tools=1)["messages"][-1]["type"] == "tool"


@pytest.mark.parametrize(("run", "way"), EACH)
def test_what_a_tool_asks_a_model_is_inside_of_it(run: Any, way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("a summary"), asked=asked)

    @tool
    def summarise(text: str) -> str:
        """Summarises."""
        asked.tool("summarise")
        return str(model.invoke(text).content)

    run_of = way()
    program = run(tools_graph(summarise), lambda: calling(("summarise", {"text": "long"})))
    before = run_of.record(program)
    asked.clear()
    assert run_of.replay(program) == before
    assert (asked.models, asked.tools, run_of.identical) == (0, [], True)
    ((kind, name, _, children),) = run_of.effects()
    assert (kind, name) == ("tool", "summarise")
    assert [child[:2] for child in children] == [["model", "scripted-1"]]


@pytest.mark.parametrize(("run", "way"), EACH)
def test_an_agent_that_is_another_agent_s_tool(run: Any, way: Any) -> None:
    asked = Asked()
    look = kinds(asked)["decorated"]
    inner = create_agent(Streaming(says=says([("look", {"number": 7})], "seven"), asked=asked), [look])

    @tool
    def delegate(question: str) -> str:
        """Asks somebody else."""
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)

    outer = create_agent(Streaming(says=says([("delegate", {"question": "?"})], "done"), asked=asked), [delegate])
    both(way, asked, run(outer, lambda: {"messages": [("user", "hello")]}), models=4, tools=1)


@pytest.mark.parametrize(("run", "way"), EACH)
def test_the_functional_api(run: Any, way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("hi"), asked=asked)
    look = kinds(asked)["structured, both"]

    @task
    def ask(number: int) -> str:
        return f"{model.invoke(f'question {number % 2}').content} {look.invoke({'number': number % 2})}"

    @entrypoint()
    def flow(count: int) -> list[str]:
        return [each.result() for each in [ask(number) for number in range(count)]]

    both(way, asked, run(flow, lambda: 4), models=4, tools=4)


class Fanned(TypedDict):
    said: Annotated[list[str], operator.add]


@pytest.mark.parametrize(("run", "way"), EACH)
def test_equal_calls_of_tasks_that_were_sent_get_their_own_answers(run: Any, way: Any) -> None:
    asked = Asked()
    look = kinds(asked)["structured, both"]

    def worker(state: Any) -> Any:
        return {"said": [f"{state['n']} {look.invoke({'number': 1})}"]}

    builder = StateGraph(Fanned)
    builder.add_node("worker", worker)
    builder.add_conditional_edges(START, lambda _: [Send("worker", {"n": n}) for n in range(5)], ["worker"])
    both(way, asked, run(builder.compile(), lambda: {"said": []}), models=0, tools=5)


class Opaque:
    def __init__(self) -> None:
        self.self = self


def test_a_result_that_is_no_data_reaches_the_program_and_is_told_in_the_replay() -> None:
    asked = Asked()

    @tool(response_format="content_and_artifact")
    def look(number: int) -> tuple[str, Any]:
        """Looks."""
        asked.tool("look")
        return "looked", Opaque()

    program = invoked(tools_graph(look), lambda: calling(("look", {"number": 7})))
    with lockstep.record("opaque") as session:
        before = program()
    assert isinstance(before["messages"][-1]["artifact"], Opaque)
    assert any("result of tool look" in fault for fault in session.faults)
    replay = lockstep.replay("opaque", program)
    assert not replay.identical
    assert "LS110" in str(replay.divergence)
    assert asked.tools == ["look"]


def test_what_a_tool_may_do_is_told_by_its_mark_its_metadata_or_its_server() -> None:
    @tool
    def look(number: int) -> str:
        """Looks."""
        return ""

    def told(of: Any) -> str | None:
        found = effect_of(of)
        return found.effect if found is not None else None

    assert told(look) is None
    assert told(look.model_copy(update={"metadata": {"effect": "read"}})) == "read"
    assert told(look.model_copy(update={"metadata": {"readOnlyHint": False, "destructiveHint": True}})) == "mutating"
    assert told(look.model_copy(update={"metadata": {"effect": "whatever"}})) is None
    assert told(lockstep.mark(look, effect="mutating")) == "mutating"

    def pay(cents: int) -> str:
        """Pays."""
        return ""

    lockstep.mark(pay, effect="mutating")
    assert told(StructuredTool.from_function(pay)) == "mutating"


@pytest.mark.parametrize("way", WAYS)
def test_the_class_of_a_tool_is_recorded(way: Any) -> None:
    asked = Asked()
    look = lockstep.mark(kinds(asked)["decorated"], effect="read")
    run = way()
    run.record(invoked(tools_graph(look), lambda: calling(("look", {"number": 7}))))
    assert run.classes() == ["read"]


def test_a_tool_s_result_is_edited_whatever_else_it_told() -> None:
    asked = Asked()

    @tool
    def look(number: int) -> str:
        """Looks."""
        get_stream_writer()("looking")
        return f"{number}: {asked.tool('look')}"

    graph = tools_graph(lockstep.mark(look, effect="read"))

    def program() -> Any:
        streamed = list(graph.stream(calling(("look", {"number": 7})), stream_mode=["custom", "values"]))
        return [streamed[1][1], streamed[-1][1]["messages"][-1].content]  # type: ignore[call-overload]

    with lockstep.record("run"):
        program()
    looked = step_of("tool", 0)
    fork = lockstep.fork(f"run:{looked}", program, edits={f"{looked}": "EDITED"})
    assert fork.result == ["looking", "EDITED"]
    assert asked.tools == ["look"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", [httpx, requests])
def test_the_response_that_an_error_of_an_http_client_holds(client: Any, way: Any) -> None:
    asked = Asked()

    @tool
    def look(number: int) -> str:
        """Looks."""
        asked.tool("look")
        client.get(f"{provider.url}/orders/{number}").raise_for_status()
        return "found"

    def told(error: Exception) -> str:
        response = error.response  # type: ignore[attr-defined]
        return f"{response.status_code} {response.json()} {response.headers['x-shop']} {response.request.url}"

    answer = Answer(status=404, body=b'{"why": "gone"}', headers=(("x-shop", "closed"),))
    graph = tools_graph(look, handle_tool_errors=told)
    with Provider(lambda request: answer) as provider:
        found = both(way, asked, invoked(graph, lambda: calling(("look", {"number": 7}))), models=0, tools=1)
    assert found["messages"][-1]["content"] == f"404 {{'why': 'gone'}} closed {provider.url}/orders/7"
