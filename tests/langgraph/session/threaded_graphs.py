"""Graphs of each sort that a session has to follow, with a model and tools that count what reaches them."""

from __future__ import annotations

import asyncio
import itertools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt

from lockstep_langgraph import LockstepCheckpointer

SAVERS: dict[str, Callable[[], Any]] = {
    "lockstep": LockstepCheckpointer,
    "memory": InMemorySaver,
    "beside": lambda: LockstepCheckpointer(wrap=InMemorySaver()),
}

REACHED: list[str] = []
_number = itertools.count(1)
_lock = threading.Lock()


def reach(what: str) -> int:
    """Something outside is asked: it never gives the same answer twice."""
    with _lock:
        REACHED.append(what)
        return next(_number)


class Model(BaseChatModel):
    """Wants orders first, then says what it was told."""

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        number = reach("model")
        told = [message.content for message in messages if isinstance(message, ToolMessage)]
        said = AIMessage(f"#{number}: {told[-1]}" if told else f"#{number}")
        if not told and "order" in str(messages[-1].content):
            wanted = [{"name": "get_order", "args": {"order": n}, "id": f"call-{number}-{n}"} for n in (1, 2)]
            said = AIMessage("", tool_calls=wanted)
        return ChatResult(generations=[ChatGeneration(message=said)])

    @property
    def _llm_type(self) -> str:
        return "counting"


@tool
def get_order(order: int) -> str:
    """An order."""
    return f"order {order}, {reach('tool')}"


class State(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    found: Annotated[list[str], operator.add]
    approved: str


def _with_tools(saver: Any, think: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("agent", think)
    builder.add_node("tools", ToolNode([get_order]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)


def agent(saver: Any) -> Any:
    return _with_tools(saver, lambda state: {"messages": [Model().invoke(state["messages"])]})


def aagent(saver: Any) -> Any:
    async def think(state: State) -> State:
        return {"messages": [await Model().ainvoke(state["messages"])]}

    return _with_tools(saver, think)


def nested(saver: Any) -> Any:
    inner = StateGraph(State)
    inner.add_node("search", lambda state: {"found": [Model().invoke("inner").content]})
    inner.add_node("sort", lambda state: {"found": ["sorted"]})
    inner.add_edge(START, "search")
    inner.add_edge("search", "sort")
    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"found": [Model().invoke("plan").content]})
    builder.add_node("research", inner.compile())
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "research")
    return builder.compile(checkpointer=saver)


def fan_out(saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("worker", lambda state: {"found": [f"{state['n']}: {Model().invoke('same').content}"]})
    builder.add_node("join", lambda state: {"found": ["joined"]})
    builder.add_conditional_edges(START, lambda state: [Send("worker", {"n": n}) for n in range(3)], ["worker"])
    builder.add_edge("worker", "join")
    return builder.compile(checkpointer=saver)


def asking(saver: Any) -> Any:
    def ask(state: State) -> State:
        said = Model().invoke("before").content
        return {"approved": f"{interrupt('may I?')} {said}"}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("act", lambda state: {"found": [get_order.invoke({"order": 7}), state["approved"]]})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "act")
    return builder.compile(checkpointer=saver)


def thread(id: str = "t-1") -> Any:
    return {"configurable": {"thread_id": id}}


def _seen(values: Any) -> Any:
    """What a state holds, ids of messages included."""
    messages = [(message.type, message.id, message.content) for message in values.get("messages", [])]
    return messages, values.get("found"), values.get("approved")


def _history(graph: Any, config: Any) -> list[Any]:
    return [(each.config["configurable"]["checkpoint_id"], each.next) for each in graph.get_state_history(config)]


def two_turns(saver: Any) -> Any:
    graph = agent(saver)
    graph.invoke({"messages": [HumanMessage("where is my order?")]}, thread())
    last = graph.invoke({"messages": [HumanMessage("thanks")]}, thread())
    return _seen(last), _history(graph, thread()), _seen(graph.get_state(thread()).values)


def two_turns_async(saver: Any) -> Any:
    async def run() -> Any:
        graph = aagent(saver)
        await graph.ainvoke({"messages": [HumanMessage("where is my order?")]}, thread())
        last = await graph.ainvoke({"messages": [HumanMessage("thanks")]}, thread())
        return _seen(last), [each.next async for each in graph.aget_state_history(thread())]

    return asyncio.run(run())


def streamed(saver: Any) -> Any:
    asked = {"messages": [HumanMessage("where is my order?")]}
    chunks = agent(saver).stream(asked, thread(), stream_mode=["updates", "values"])
    return [(mode, sorted(chunk)) for mode, chunk in chunks]


def subgraphs(saver: Any) -> Any:
    graph = nested(saver)
    return _seen(graph.invoke({"found": []}, thread())), _seen(graph.invoke({"found": []}, thread()))


def parallel_tasks(saver: Any) -> Any:
    return _seen(fan_out(saver).invoke({"found": []}, thread()))


def parallel_tasks_async(saver: Any) -> Any:
    async def run() -> Any:
        return _seen(await fan_out(saver).ainvoke({"found": []}, thread()))

    return asyncio.run(run())


def threads_at_once(saver: Any) -> Any:
    graph, found = agent(saver), {}

    def talk(id: str) -> None:
        found[id] = _seen(graph.invoke({"messages": [HumanMessage("where is my order?")]}, thread(id)))

    running = [threading.Thread(target=talk, args=(f"t-{n}",)) for n in (1, 2, 3)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return [found[id] for id in sorted(found)]


def tasks_at_once(saver: Any) -> Any:
    async def run() -> Any:
        graph = aagent(saver)
        asked = {"messages": [HumanMessage("where is my order?")]}
        return [_seen(each) for each in await asyncio.gather(*(graph.ainvoke(asked, thread(f"t-{n}")) for n in (1, 2)))]

    return asyncio.run(run())


def human(saver: Any) -> Any:
    graph = asking(saver)
    stopped = graph.invoke({"found": []}, thread())
    waits = graph.get_state(thread()).next
    return sorted(stopped), waits, _seen(graph.invoke(Command(resume="yes"), thread()))


def edited_state(saver: Any) -> Any:
    graph = agent(saver)
    graph.invoke({"messages": [HumanMessage("hello")]}, thread())
    at = graph.update_state(thread(), {"messages": [AIMessage("as it should be", id="edited")]}, as_node="agent")
    earlier = [each.config for each in graph.get_state_history(thread())][-2]
    again = graph.invoke(None, earlier)
    return at["configurable"]["checkpoint_id"], _seen(again), len(_history(graph, thread()))


def failed(saver: Any) -> Any:
    def fail(state: State) -> State:
        if not state.get("approved"):
            raise ValueError("no order")
        return {"found": ["went well"]}

    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"found": [Model().invoke("x").content]})
    builder.add_node("fail", fail)
    builder.add_edge(START, "first")
    builder.add_edge("first", "fail")
    graph = builder.compile(checkpointer=saver)
    try:
        graph.invoke({"found": []}, thread())
    except ValueError as error:
        raised = str(error)
    graph.update_state(thread(), {"approved": "yes"}, as_node="first")
    return raised, _seen(graph.invoke(None, thread()))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    made.__name__: made
    for made in (
        two_turns, two_turns_async, streamed, subgraphs, parallel_tasks, parallel_tasks_async, threads_at_once,
        tasks_at_once, human, edited_state, failed,
    )
}  # fmt: skip


def without_saver() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Programs whose graphs have none."""

    def asked() -> Any:
        return {"messages": [HumanMessage("where is my order?")]}

    yield "agent", lambda: _seen(agent(None).invoke(asked()))
    yield "async agent", lambda: _seen(asyncio.run(aagent(None).ainvoke(asked())))
    yield "subgraph", lambda: _seen(nested(None).invoke({"found": []}))
    yield "fan-out", lambda: _seen(fan_out(None).invoke({"found": []}))
