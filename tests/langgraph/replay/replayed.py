"""Records a thread and replays it."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from langchain_core.messages import BaseMessage
from scripted import Asked

from lockstep.adapter.native import Played, ReplayOptions
from lockstep.log.store import open_store
from lockstep_langgraph import replaying
from lockstep_langgraph.checkpointer import LockstepCheckpointer

THREAD: Any = {"configurable": {"thread_id": "t"}}


def saver() -> LockstepCheckpointer:
    return LockstepCheckpointer(os.environ["LOCKSTEP_STORE"])


def replay(graph: Any, thread: str = "t", branch: str = "main", **options: Any) -> Played:
    store = os.environ["LOCKSTEP_STORE"]
    with open_store(store) as opened:
        reader = opened.run(f"langgraph/{thread}", branch)
        return replaying.replay(reader, graph, ReplayOptions(store=store, **options))


async def areplay(graph: Any, thread: str = "t", **options: Any) -> Played:
    store = os.environ["LOCKSTEP_STORE"]
    with open_store(store) as opened:
        return await replaying.areplay(opened.run(f"langgraph/{thread}"), graph, ReplayOptions(store=store, **options))


def identical(graph: Any, asked: Asked, thread: str = "t", **options: Any) -> Played:
    """A replay that is the recorded run, in which nothing was asked outside."""
    asked.clear()
    played = replay(graph, thread, **options)
    assert played.report.difference is None, played.report.difference
    assert played.report.identical, played.report
    assert (asked.models, asked.tools) == (0, [])
    return played


def run(graph: Any, entry: str, given: Any, config: Any = THREAD, **options: Any) -> Any:
    """Runs a turn, as a program does; what it gave or raised."""

    async def asynchronous() -> Any:
        if entry == "ainvoke":
            return await graph.ainvoke(given, config, **options)
        if entry == "astream":
            return [item async for item in graph.astream(given, config, **options)]
        return [item async for item in graph.astream_events(given, config, version="v2", **options)]

    try:
        if entry == "invoke":
            return graph.invoke(given, config, **options)
        if entry == "stream":
            return [*graph.stream(given, config, **options)]
        return asyncio.run(asynchronous())
    except Exception as error:
        return error


def plain(value: Any) -> Any:
    """As data that can be compared, messages with their ids."""
    if isinstance(value, BaseMessage):
        return {"class": type(value).__name__, **value.model_dump()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def raised(error: Any) -> tuple[type, str]:
    assert isinstance(error, Exception), error
    return type(error), str(error)
