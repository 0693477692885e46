"""What models and tools of a graph answer is recorded, and served in a replay: they are not asked again."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from recorded import WAYS, InSession, Native, both
from scripted import Asked, Scripted, Streaming, says

ORDERS: Any = [[("get_order", {"order_id": 452}), ("get_policy", {"about": "refunds"})], "Refunded"]
QUESTION: Any = {"messages": [("user", "My order 452 is broken")]}


def plain(message: Any) -> Any:
    return message.model_dump() if isinstance(message, BaseMessage) else message


def agent(asked: Asked, model: type[Scripted] = Streaming, script: Any = ORDERS) -> Any:
    """A tool-calling agent, whose tools give something new each time."""

    @tool
    def get_order(order_id: int) -> str:
        """Looks up an order."""
        get_stream_writer()({"looking": order_id})
        return f"order {order_id}: total {asked.tool('get_order')}"

    @tool
    async def get_policy(about: str) -> str:
        """Looks up a policy."""
        return f"{about}: {asked.tool('get_policy')}"

    get_policy.func = lambda about: f"{about}: {asked.tool('get_policy')}"  # type: ignore[attr-defined]
    return create_agent(model(says=says(*script), asked=asked), [get_order, get_policy])


def said(result: Any) -> list[Any]:
    return [plain(message) for message in result["messages"]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [Scripted, Streaming])
def test_an_agent_that_is_invoked(model: type[Scripted], way: Any) -> None:
    asked = Asked()
    graph = agent(asked, model)
    both(way, asked, lambda: said(graph.invoke(QUESTION)), models=2, tools=2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [Scripted, Streaming])
def test_an_agent_that_is_awaited(model: type[Scripted], way: Any) -> None:
    asked = Asked()
    graph = agent(asked, model)
    both(way, asked, lambda: said(asyncio.run(graph.ainvoke(QUESTION))), models=2, tools=2)


MODES = ["messages", "updates", "custom", "values"]


def streamed(mode: str, item: Any) -> Any:
    if mode == "messages":
        message, about = item
        return [mode, plain(message), sorted(about)]
    if mode == "custom":
        return [mode, item]
    return [mode, repr(item)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [Scripted, Streaming])
def test_an_agent_that_is_streamed_gives_the_same_pieces(model: type[Scripted], way: Any) -> None:
    asked = Asked()
    graph = agent(asked, model)

    def program() -> list[Any]:
        return sorted((streamed(*item) for item in graph.stream(QUESTION, stream_mode=MODES)), key=repr)

    pieces = both(way, asked, program, models=2, tools=2)
    assert ["custom", {"looking": 452}] in pieces


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [Scripted, Streaming])
def test_an_agent_that_is_streamed_by_an_async_program_gives_the_same_pieces(model: type[Scripted], way: Any) -> None:
    asked = Asked()
    graph = agent(asked, model)

    async def drawn() -> list[Any]:
        return [streamed(*item) async for item in graph.astream(QUESTION, stream_mode=MODES)]

    pieces = both(way, asked, lambda: sorted(asyncio.run(drawn()), key=repr), models=2, tools=2)
    assert ["custom", {"looking": 452}] in pieces


class Heard(BaseCallbackHandler):
    """What LangChain told the program's own callbacks."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def _tell(self, *what: Any) -> None:
        self.told.append(repr(what))

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self._tell("model", [[plain(message) for message in each] for each in messages])

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self._tell("token", token, plain(chunk.message) if chunk else None, chunk and chunk.generation_info)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        said = [[(plain(one.message), one.generation_info) for one in each] for each in response.generations]
        self._tell("said", said, response.llm_output)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self._tell("model failed", repr(error))

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        self._tell("tool", serialized, input_str)

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        self._tell("tool said", plain(output))

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        self._tell("tool failed", repr(error))


@pytest.mark.parametrize(("model", "way"), [(Scripted, Native), (Streaming, Native), (Streaming, InSession)])
@pytest.mark.parametrize("entry", ["invoke", "ainvoke", "stream", "astream"])
def test_the_program_s_callbacks_hear_the_same(model: type[Scripted], way: Any, entry: str) -> None:
    asked = Asked()
    graph = agent(asked, model)
    runs: list[list[str]] = []

    def program() -> list[str]:
        heard = Heard()
        config: Any = {"callbacks": [heard]}
        match entry:
            case "invoke":
                graph.invoke(QUESTION, config)
            case "ainvoke":
                asyncio.run(graph.ainvoke(QUESTION, config))
            case "stream":
                list(graph.stream(QUESTION, config, stream_mode="messages"))
            case _:

                async def drawn() -> None:
                    async for _ in graph.astream(QUESTION, config, stream_mode="messages"):
                        pass

                asyncio.run(drawn())
        runs.append(heard.told)
        return sorted(heard.told)

    unrecorded = program()
    asked.clear()
    both(way, asked, program, models=2, tools=2)
    recorded = runs[1]
    assert sorted(map(_bare, recorded)) == sorted(map(_bare, unrecorded))


def _bare(told: str) -> str:
    """Without what is new each time: ids and tokens."""
    return re.sub(r"#\d+|call_\d+_|[0-9a-f]{8}-[0-9a-f-]{27}|(?<=: )\d+|total \d+", "…", told)


@pytest.mark.parametrize("way", WAYS)
def test_events_are_the_same(way: Any) -> None:
    asked = Asked()
    graph = agent(asked)

    async def events() -> list[str]:
        return [
            repr((event["event"], event["name"], event["data"], event["tags"], sorted(event["metadata"])))
            async for event in graph.astream_events(QUESTION, version="v2")
        ]

    unrecorded = asyncio.run(events())
    asked.clear()
    recorded = both(way, asked, lambda: sorted(asyncio.run(events())), models=2, tools=2)
    assert sorted(map(_bare, unrecorded)) == sorted(map(_bare, recorded))
    assert any("on_chat_model_stream" in event for event in recorded)
