"""LangGraph's ordinary agent as a subject of `lockstep.conformance`: `create_agent` with the checkpointer, in each of
the ways to run it.

Needs langchain and langchain-openai beside LangGraph.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import Any

import lockstep
from lockstep.conformance import outside, telling
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.log.store import open_store

_STREAMED = ["values", "messages"]  # modes of a stream: its last state is the agent's word


class LangGraph:
    """Runs agents as a program does that has the checkpointer, and replays, forks and bisects their threads."""

    modes = (
        Mode("invoke", False), Mode("stream", False), Mode("ainvoke", True), Mode("astream", True),
        Mode("astream_events", True),
    )  # fmt: skip
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = (
        "lockstep.session.native.journal:Journal.emit",
        "lockstep_langgraph.answers:asked",
        "lockstep_langgraph.asked:returned",
    )
    core_hooks: tuple[str, ...] = telling.NATIVE_HOOKS
    # A checkpointer that says that it has kept a state has kept it, and without the secrets in it.
    relied: tuple[str, ...] = (
        "lockstep.session.secrets:Secrets.hide",
        "lockstep.session.native.journal:Journal.step",
        "lockstep.log.sqlite.shared:SharedStream.append",
    )

    def run(self, work: Work) -> Done:
        from langgraph.checkpoint.memory import InMemorySaver

        return _talk(work, InMemorySaver(), "thread")

    def record(self, work: Work) -> Done:
        from msgspec.structs import replace

        from lockstep_langgraph import LockstepCheckpointer

        thread = _unused(work)
        saver = LockstepCheckpointer(work.store)
        try:
            done = _talk(work, saver, thread)
            faults = tuple(saver.faults)
        finally:
            saver.close()
        return replace(done, run=f"langgraph/{quote(thread)}", faults=faults)

    def replay(self, work: Work, run: str) -> Done:
        pieces: list[str] = []
        replay = lockstep.replay(run, agent(work, None, pieces), store=work.store)
        outputs = () if replay.error is not None else tuple(map(_word, replay.results))
        return telling.replayed(replay, run, outputs, pieces)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        pieces: list[str] = []
        run = telling.fork(address, agent(work, None, pieces), edits=edits, live=[*live], store=work.store)
        outputs = tuple(map(_word, run.results)) if run.error is None and run.state == "complete" else ()
        return telling.forked(run, outputs, pieces)

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        def judge(view: Any) -> bool | None:
            return bad(_word(view.result)) if view.state == "complete" else None

        verdict = lockstep.bisect(run, agent(work, None, []), bad=judge, store=work.store)
        return telling.found(verdict)


def agent(work: Work, saver: Any, pieces: list[str]) -> Any:
    """The agent of a scenario. Texts that its model streams go to `pieces`."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import after_agent
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import AIMessage
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    scenario = work.scenario

    class Hears(BaseCallbackHandler):
        def on_llm_new_token(self, token: Any, **_: Any) -> None:
            if token:
                pieces.append(token)

    @after_agent
    def ends(state: Any, runtime: Any) -> Any:
        """What the agent's own code adds to the model's last word."""
        last = state["messages"][-1]
        return {"messages": [AIMessage(last.text + scenario.ending, id=last.id)]}

    import httpx

    # Clients of their own, which keep no connection: forks and probes run on event loops of their own.
    limits = httpx.Limits(max_keepalive_connections=0)
    model = ChatOpenAI(
        model="gpt-4o",
        base_url=f"{work.url}/v1",
        api_key=SecretStr(scenario.key),
        streaming=scenario.streams,
        callbacks=[Hears()],
        http_client=httpx.Client(limits=limits),
        http_async_client=httpx.AsyncClient(limits=limits),
    )
    tools = [_tool(work, tool) for tool in scenario.tools]
    return create_agent(model, tools, system_prompt=scenario.system, middleware=[ends], checkpointer=saver)


def _tool(work: Work, tool: Tool) -> Any:
    from langchain_core.tools import StructuredTool, ToolException

    def use(argument: str) -> Any:
        """Looks it up."""
        try:
            return outside.use(work.url, tool.name, argument)
        except outside.ToolFailed as failed:
            raise ToolException(str(failed)) from failed

    async def ause(argument: str) -> Any:
        """Looks it up."""
        try:
            return await outside.ause(work.url, tool.name, argument)
        except outside.ToolFailed as failed:
            raise ToolException(str(failed)) from failed

    own: dict[str, Any] = {"coroutine": ause} if work.mode.asynchronous else {"func": use}
    made = StructuredTool.from_function(**own, name=tool.name, handle_tool_error=True)
    lockstep.mark(made, effect=tool.effect)
    return made


def _talk(work: Work, saver: Any, thread: str) -> Done:
    """Gives the agent the prompts, each as a turn of the thread."""
    pieces: list[str] = []
    words: list[str] = []
    try:
        graph = agent(work, saver, pieces)
        config = {"configurable": {"thread_id": thread}}
        if work.mode.asynchronous:
            words = asyncio.run(_aturns(work, graph, config))
        else:
            words = [*_turns(work, graph, config)]
    except Exception as error:
        return Done(error=telling.raised(error), pieces=tuple(pieces))
    return Done(outputs=tuple(words), pieces=tuple(pieces))


def _turns(work: Work, graph: Any, config: Any) -> Iterator[str]:
    for prompt in work.scenario.prompts:
        given = {"messages": [("user", prompt)]}
        if work.mode.name == "stream":
            yield _word([*graph.stream(given, config, stream_mode=_STREAMED)])
        else:
            yield _word(graph.invoke(given, config))


async def _aturns(work: Work, graph: Any, config: Any) -> list[str]:
    words: list[str] = []
    for prompt in work.scenario.prompts:
        given = {"messages": [("user", prompt)]}
        if work.mode.name == "ainvoke":
            words.append(_word(await graph.ainvoke(given, config)))
            continue
        stream: AsyncIterator[Any] = (
            graph.astream(given, config, stream_mode=_STREAMED)
            if work.mode.name == "astream"
            else graph.astream_events(given, config, version="v2")
        )
        words.append(_word([item async for item in stream]))
    return words


def _word(result: Any) -> str:
    """The agent's last word in what a turn returned: a state, what was streamed, or events."""
    if isinstance(result, list):
        last = result[-1]
        if isinstance(last, dict):
            result = last["data"]["output"]
        else:
            result = next(state for mode, state in reversed(result) if mode == "values")
    if not result:
        return ""
    last = result["messages"][-1]
    return str(last["content"] if isinstance(last, dict) else last.text)  # a probe's result is read from the record


def _unused(work: Work) -> str:
    """A thread that the store does not have."""
    with open_store(work.store, create=True) as store:
        name, number = work.scenario.name, 1
        while store.has_run(f"langgraph/{quote(name)}"):
            number += 1
            name = f"{work.scenario.name}-{number}"
    return name


subject = LangGraph()
