"""Calls that go outside of the process: to a provider over HTTP, to a tool's own server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from recorded import WAYS, InSession

from lockstep.log.store import open_store
from lockstep.testing import Provider
from lockstep.testing.answers import Answer, ToolCall

SERVER = """
import itertools, logging
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

logging.disable()
shop, seen = FastMCP("shop", log_level="ERROR"), open("{seen}", "a")

def tell(text):
    seen.write(text + "\\n")
    seen.flush()
    return text

@shop.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look(number: int) -> str:
    return tell(f"looked at {{number}}")

@shop.tool(annotations=ToolAnnotations(destructiveHint=True))
def pay(cents: int) -> str:
    if cents > 100:
        raise ValueError(tell("too much"))
    return tell(f"paid {{cents}}")

shop.run()
"""


@pytest.mark.parametrize("way", WAYS)
def test_tools_of_an_mcp_server(way: Any, tmp_path: Path) -> None:
    seen, server = tmp_path / "seen", tmp_path / "server.py"
    server.write_text(SERVER.format(seen=seen))
    client = MultiServerMCPClient({
        "shop": {"command": sys.executable, "args": [str(server)], "transport": "stdio"}
    })  # fmt: skip
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(asyncio.run(client.get_tools()), handle_tool_errors=True))
    builder.add_edge(START, "tools")
    graph = builder.compile()
    called = [("look", {"number": 7}), ("pay", {"cents": 500})]

    def program() -> Any:
        calls: Any = [{"name": name, "args": args, "id": f"call-{n}"} for n, (name, args) in enumerate(called)]
        found = asyncio.run(graph.ainvoke({"messages": [AIMessage("", tool_calls=calls)]}))
        return [message.model_dump() for message in found["messages"]]

    run = way()
    before = run.record(program)
    assert sorted(run.classes()) == ["mutating", "read"]
    assert sorted(seen.read_text().splitlines()) == ["looked at 7", "too much"]
    seen.write_text("")
    assert run.replay(program) == before
    assert run.identical
    assert seen.read_text() == ""


def model(provider: Provider, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", base_url=f"{provider.url}/v1", api_key=lambda: "lockstep-testing", **options)


SCRIPT = [Answer(calls=(ToolCall("get_order", {"order_id": 1}),)), Answer("Refunded for good")]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_provider_s_answer_over_http_is_inside_of_the_model_s(streaming: bool) -> None:
    with Provider(SCRIPT) as provider:

        @tool
        def get_order(order_id: int) -> str:
            """Looks up an order."""
            return f"order {order_id}"

        graph = create_agent(model(provider, streaming=streaming), [get_order])

        def program() -> Any:
            found = graph.invoke({"messages": [("user", "broken")]})
            return [message.model_dump() for message in found["messages"]]

        run = InSession()
        before = run.record(program)
        asked = provider.requests
    assert before[-1]["content"] == "Refunded for good"
    assert streaming or before[-1]["usage_metadata"]["output_tokens"] > 0
    shape = [[effect[:2], [child[0] for child in effect[3]]] for effect in run.effects()]
    assert shape == [
        [["model", "gpt-4o"], ["model"]],
        [["tool", "get_order"], []],
        [["model", "gpt-4o"], ["model"]],
    ]
    assert run.replay(program) == before
    assert run.identical
    assert provider.requests == asked == 2


def test_what_a_provider_refused_is_tried_again_by_its_client_inside_of_one_call() -> None:
    with Provider([Answer("busy", status=503), Answer("at last")]) as provider:
        asking = model(provider, max_retries=2)

        def program() -> Any:
            return asking.invoke("hello").content

        run = InSession()
        assert run.record(program) == "at last"
    ((_, _, _, children),) = run.effects()
    assert len(children) == 2
    assert run.replay(program) == "at last"
    assert run.identical


def test_a_provider_s_refusal_is_raised_again() -> None:
    with Provider([Answer("no such model", status=404)]) as provider:
        asking = model(provider, max_retries=0)

        def program() -> Any:
            try:
                asking.invoke("hello")
            except Exception as error:
                return [type(error).__name__, str(error), getattr(error, "status_code", None)]
            return None

        run = InSession()
        before = run.record(program)
    assert (before[0].endswith("NotFoundError"), before[2]) == (True, 404)
    assert run.replay(program) == before
    assert run.identical


def test_a_key_is_nowhere_in_what_is_recorded(tmp_path: Path) -> None:
    key = "sk-proj-4f9Kd82LmQz7XvB1nRt6Yw3Ec5Ua0PjH"
    with Provider([Answer("hi")]) as provider:
        asking = ChatOpenAI(model="gpt-4o", base_url=f"{provider.url}/v1", api_key=key)  # type: ignore[arg-type]
        run = InSession()
        run.record(lambda: asking.invoke("hello").content)
    with open_store(None) as store:
        assert key.encode() not in Path(store.path).read_bytes()
