"""Chat models, in every way that a node may ask one."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableParallel
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel
from recorded import WAYS, InSession, Native, both, turn_of
from scripted import Asked, Scripted, Streaming, says

import lockstep
from lockstep.errors import Code, Divergence
from lockstep.session.native import Memory
from lockstep_langgraph import turns

HELLO: Any = {"messages": [("user", "hello")]}


class OverloadedError(RuntimeError):
    pass


def graph_of(node: Any, *more: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile()


def plain(found: Any) -> Any:
    if isinstance(found, BaseMessage):
        return found.model_dump()
    return [plain(each) for each in found] if isinstance(found, list) else found


def node_that_returns(make: Callable[[], Any]) -> Callable[[], Any]:
    """A program whose one node hands out what `make` gives."""
    got: list[Any] = []

    def node(state: Any) -> Any:
        got.append(make())
        return {}

    graph = graph_of(node)

    def program() -> Any:
        got.clear()
        graph.invoke(HELLO)
        return plain(got)

    return program


def awaited_node_that_returns(make: Callable[[], Any]) -> Callable[[], Any]:
    got: list[Any] = []

    async def node(state: Any) -> Any:
        got.append(await make())
        return {}

    graph = graph_of(node)

    def program() -> Any:
        got.clear()
        asyncio.run(graph.ainvoke(HELLO))
        return plain(got)

    return program


ASK = [HumanMessage("hello")]


@pytest.mark.parametrize("way", WAYS)
def test_a_node_that_streams_by_hand(way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("a few words"), asked=asked)
    pieces = both(way, asked, node_that_returns(lambda: list(model.stream(ASK))), models=1, tools=0)
    assert len(pieces[0]) >= 4
    assert len({piece["id"] for piece in pieces[0]}) == 1
    assert pieces[0][0]["id"].startswith("lc_run--")


@pytest.mark.parametrize("way", WAYS)
def test_a_node_that_streams_by_hand_and_awaits(way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("a few words"), asked=asked)

    async def drawn() -> list[Any]:
        return [chunk async for chunk in model.astream(ASK)]

    pieces = both(way, asked, awaited_node_that_returns(drawn), models=1, tools=0)
    assert len(pieces[0]) >= 4


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_the_node_reads_no_further(way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("a few words more"), asked=asked)

    def first_two() -> list[Any]:
        stream = model.stream(ASK)
        found = [next(stream), next(stream)]
        stream.close()
        return found

    assert len(both(way, asked, node_that_returns(first_two), models=1, tools=0)[0]) == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_cannot_stream_is_streamed(way: Any) -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    both(way, asked, node_that_returns(lambda: list(model.stream(ASK))), models=1, tools=0)


@pytest.mark.parametrize("way", WAYS)
def test_several_at_once(way: Any) -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    questions: Any = [[HumanMessage(f"question {n % 2}")] for n in range(4)]
    answers = both(way, asked, node_that_returns(lambda: model.batch(questions)), models=4, tools=0)
    assert len({answer["content"] for answer in answers[0]}) == 4


def test_work_that_a_task_sends_to_other_threads_has_lanes_of_its_own() -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    run = Native()
    chain = RunnableParallel(one=model, two=model)
    run.record(node_that_returns(lambda: [model.batch([ASK, ASK]), chain.invoke(ASK), model.invoke(ASK)]))
    lanes = sorted(effect[2] for effect in run.effects())
    assert lanes[0] == "main/node"
    assert len(set(lanes)) == 5
    assert all(re.fullmatch(r"main/node>\d+", lane) for lane in lanes[1:])


@pytest.mark.parametrize("way", WAYS)
def test_several_at_once_by_tasks(way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says("hi"), asked=asked)

    async def gathered() -> list[Any]:
        return await asyncio.gather(*(model.ainvoke(f"question {n % 2}") for n in range(4)))

    both(way, asked, awaited_node_that_returns(gathered), models=4, tools=0)


@pytest.mark.parametrize("way", WAYS)
def test_several_prompts_in_one_call(way: Any) -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)

    def generated() -> Any:
        result = model.generate([[HumanMessage("a")], [HumanMessage("b")]])
        return [plain(each[0].message) for each in result.generations]  # type: ignore[attr-defined]

    both(way, asked, node_that_returns(generated), models=2, tools=0)


class Order(BaseModel):
    """An order."""

    id: int


@pytest.mark.parametrize("way", WAYS)
def test_structured_output(way: Any) -> None:
    asked = Asked()
    model = Streaming(says=says([("Order", {"id": 7})]), asked=asked)
    chain = model.bind_tools([Order], tool_choice="any") | PydanticToolsParser(tools=[Order], first_tool_only=True)
    found = both(way, asked, node_that_returns(lambda: chain.invoke(ASK)), models=1, tools=0)
    assert found == [Order(id=7)]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_provider_s_error_was_is_raised_again_and_tried_again(way: Any) -> None:
    asked = Asked()

    def say(messages: list[BaseMessage]) -> AIMessage | Exception:
        return AIMessage("at last") if asked.models % 3 == 0 else OverloadedError(f"busy {asked.models}")

    model = Scripted(says=say, asked=asked)
    retried = model.with_retry(
        retry_if_exception_type=(OverloadedError,), stop_after_attempt=5, wait_exponential_jitter=False
    )
    run = way()
    program = node_that_returns(lambda: retried.invoke(ASK))
    before = run.record(program)
    assert asked.models == 3
    asked.clear()
    assert run.replay(program) == before
    assert (asked.models, run.difference, run.identical) == (0, None, True)
    assert len(run.effects()) == 3


@pytest.mark.parametrize("way", WAYS)
def test_another_model_that_stands_in_for_one_that_fails(way: Any) -> None:
    asked = Asked()
    failing = Scripted(says=says(ValueError("no")), asked=asked)
    other = Scripted(model="scripted-2", says=says("hi"), asked=asked)
    run = way()
    program = node_that_returns(lambda: failing.with_fallbacks([other]).invoke(ASK))
    before = run.record(program)
    asked.clear()
    assert run.replay(program) == before
    assert (asked.models, run.identical) == (0, True)
    assert [effect[1] for effect in run.effects()] == ["scripted-1", "scripted-2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_breaks_off_breaks_off_again(way: Any) -> None:
    asked = Asked()

    class Breaking(Streaming):
        def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
            asked.model()
            yield ChatGenerationChunk(message=AIMessageChunk("half a "))
            raise ConnectionError("gone")

    model = Breaking(says=says("hi"), asked=asked)

    def drawn() -> Any:
        found: list[Any] = []
        with pytest.raises(ConnectionError, match="gone"):
            model.invoke(ASK, stream=True)
        with pytest.raises(ConnectionError, match="gone"):
            for chunk in model.stream(ASK):
                found.append(chunk.content)
        return found

    assert both(way, asked, node_that_returns(drawn), models=2, tools=0) == [["half a "]]


@pytest.mark.parametrize("way", WAYS)
def test_a_provider_that_tells_of_its_tokens_by_itself(way: Any) -> None:
    """Some models stream inside of `_generate`: only the callbacks hear of it."""
    asked = Asked()

    class Telling(Scripted):
        def _generate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
        ) -> ChatResult:  # fmt: skip
            said = super()._generate(messages)
            for word in str(said.generations[0].message.content).split():
                if run_manager is not None:
                    run_manager.on_llm_new_token(word, chunk=None, logprobs=[0.5])
            return said

    class Hears(BaseCallbackHandler):
        def __init__(self) -> None:
            self.told: list[Any] = []

        def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
            self.told.append([token, kwargs.get("logprobs")])

    model = Telling(says=says("two words"), asked=asked)

    def told() -> Any:
        hears = Hears()
        model.invoke(ASK, {"callbacks": [hears]})
        return hears.told

    assert len(both(way, asked, node_that_returns(told), models=1, tools=0)[0]) == 3
    asked.clear()

    async def atold() -> Any:
        hears = Hears()
        await model.ainvoke(ASK, {"callbacks": [hears]})
        return hears.told

    assert len(both(way, asked, awaited_node_that_returns(atold), models=1, tools=0)[0]) == 3


@pytest.mark.parametrize("way", WAYS)
def test_several_answers_to_choose_from(way: Any) -> None:
    asked = Asked()

    class Several(Scripted):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            asked.model()
            choices = [ChatGeneration(message=AIMessage(text)) for text in ("one", "two")]
            return ChatResult(generations=choices, llm_output={"n": 2})

    model = Several(says=says("hi"), asked=asked)

    def generated() -> Any:
        result = model.generate([ASK])
        return [[plain(one.message) for one in each] for each in result.generations]  # type: ignore[attr-defined]

    both(way, asked, node_that_returns(generated), models=1, tools=0)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_made_of_another_has_it_as_its_child(way: Any) -> None:
    asked = Asked()
    inner = Scripted(says=says("hi"), asked=asked)

    class Outer(BaseChatModel):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            said = inner.invoke(messages)
            return ChatResult(generations=[ChatGeneration(message=AIMessage(f"({said.content})"))])

        @property
        def _llm_type(self) -> str:
            return "outer"

    run = way()
    program = node_that_returns(lambda: Outer().invoke(ASK))
    before = run.record(program)
    asked.clear()
    assert run.replay(program) == before
    assert (asked.models, run.identical) == (0, True)
    ((kind, name, _, children),) = run.effects()
    assert (kind, name) == ("model", "outer")
    assert [child[:2] for child in children] == [["model", "scripted-1"]]


@pytest.mark.parametrize("way", WAYS)
def test_another_prompt_is_told_by_its_place(way: Any) -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    run = way()
    run.record(node_that_returns(lambda: model.invoke([HumanMessage("below 50")])))
    difference = None
    try:
        run.replay(node_that_returns(lambda: model.invoke([HumanMessage("below 500")])))
    except Divergence as divergence:
        difference = divergence.difference
    told = run.difference if difference is None else difference
    assert asked.models == 1
    assert "messages[0].content" in str(told)


@pytest.mark.parametrize("way", WAYS)
def test_other_parameters_are_another_call(way: Any) -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    run = way()
    run.record(node_that_returns(lambda: model.invoke(ASK)))
    try:
        run.replay(node_that_returns(lambda: model.invoke(ASK, stop=["."])))
    except Divergence as divergence:
        run.difference = divergence.difference
    assert "parameters" in str(run.difference)
    assert asked.models == 1


def test_a_model_is_limited_as_it_is_without_us() -> None:
    asked = Asked()
    limiter = InMemoryRateLimiter(requests_per_second=1000, check_every_n_seconds=0.001)
    model = Scripted(says=says("hi"), asked=asked, rate_limiter=limiter)
    both(InSession, asked, node_that_returns(lambda: model.invoke(ASK)), models=1, tools=0)


def test_a_call_in_a_lane_of_its_task() -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    run = Native()
    run.record(node_that_returns(lambda: model.invoke(ASK)))
    assert run.effects() == [["model", "scripted-1", "main/node", []]]


@pytest.mark.parametrize(("model", "way"), [(Scripted, Native), (Streaming, InSession)])
def test_a_cache_answers_what_it_answered_whatever_it_knows_by_now(model: type[Scripted], way: Any) -> None:
    asked = Asked()
    asking = model(says=says("hi"), asked=asked, cache=InMemoryCache())

    def twice() -> Any:
        return [asking.invoke("one"), asking.invoke("one"), asking.invoke("two")]

    run = way()
    program = node_that_returns(twice)
    before = run.record(program)
    assert asked.models == 2
    assert run.replay(program) == before
    assert (run.difference, run.identical) == (None, True)
    assert asked.models == 2
    assert len(run.effects()) == 3
    assert len({said["content"] for said in before[0]}) == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_cache_that_knew_nothing_is_not_asked_when_it_knows(way: Any) -> None:
    asked = Asked()
    asking = Streaming(says=says("hi"), asked=asked, cache=InMemoryCache())

    async def once() -> Any:
        return await asking.ainvoke("one")

    both(way, asked, awaited_node_that_returns(once), models=1, tools=0)


def test_a_call_on_a_thread_without_the_task_s_context_stops_a_replay() -> None:
    asked = Asked()
    model = Scripted(says=says("hi"), asked=asked)
    stopped: list[tuple[Any, ...]] = []

    class Replay:
        def stops(self, *told: Any) -> None:
            stopped.append(told)
            raise InterruptedError

        def checkpoint_id(self, namespace: str, keep: bool) -> None:
            """None of its own: asked for once some test before has replayed."""

    def asks() -> None:
        with suppress(InterruptedError):
            model.invoke(ASK)

    def on_a_thread() -> Any:
        thread = threading.Thread(target=asks)
        thread.start()
        thread.join()
        return None

    program = node_that_returns(on_a_thread)
    with turn_of(Memory(), bytes(16)):
        current: Any = turns.current.get()
        current.replay = Replay()
        program()
    assert asked.models == 0
    assert [told[0] for told in stopped] == [Code.NOT_COVERED]


def test_a_model_that_cannot_describe_itself_answers_as_without_us() -> None:
    asked = Asked()

    class Shy(Scripted):
        @property
        def _identifying_params(self) -> Any:
            if sys._getframe(1).f_globals["__name__"].startswith("lockstep_langgraph"):
                raise RuntimeError("no")
            return {}

    model = Shy(says=says("hi"), asked=asked)
    with lockstep.record("shy") as session:
        assert node_that_returns(lambda: model.invoke(ASK).content)()[0].startswith("hi")
    assert any("a model call" in fault for fault in session.faults)


async def _drawn(stream: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in stream]


if hasattr(BaseChatModel, "stream_events"):  # the oldest langchain-core that we support has none

    @pytest.mark.parametrize("way", WAYS)
    def test_events_of_the_newest_protocol(way: Any) -> None:
        asked = Asked()
        model = Streaming(says=says("a few words"), asked=asked)

        def streamed() -> Any:
            stream = model.stream_events(ASK, version="v3")
            return [list(stream.text), plain(stream.output)]

        both(way, asked, node_that_returns(streamed), models=1, tools=0)
        asked.clear()

        async def astreamed() -> Any:
            stream = await model.astream_events(ASK, version="v3")
            return [await _drawn(stream.text), plain(await stream.output)]

        both(way, asked, awaited_node_that_returns(astreamed), models=1, tools=0)
