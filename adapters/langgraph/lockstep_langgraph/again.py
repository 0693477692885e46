"""A recorded invocation made again: the same method, with the same options."""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep_langgraph.asked import EVENTS
from lockstep_langgraph.checkpointer import BRANCH


class Invocation(msgspec.Struct, frozen=True):
    """What is invoked: `entry` is the method's name, and `given` its input."""

    graph: Any
    entry: str
    given: Any
    config: dict[str, Any]
    options: dict[str, Any]

    @property
    def asynchronous(self) -> bool:
        return is_async(self.entry)


def made(graph: Any, entry: str, request: Any, load: Any, thread: str) -> Invocation:
    """The invocation that a turn's request tells of, on a thread. `load` makes objects of its data."""
    given, config, options = (load(request[name], name) for name in ("input", "config", "options"))
    configurable = {**config.get("configurable", {}), "thread_id": thread}
    configurable.pop(BRANCH, None)
    return Invocation(graph, entry, given, {**config, "configurable": configurable}, dict(options))


def is_async(entry: str) -> bool:
    return entry.startswith("a")


def run(invocation: Invocation) -> Any:
    """Makes it, where it is synchronous: gives what it returned, or all that it streamed."""
    graph, given, config, options = invocation.graph, invocation.given, invocation.config, invocation.options
    if invocation.entry == "invoke":
        return graph.invoke(given, config, **invoked(options))
    return list(graph.stream(given, config, **options))


async def arun(invocation: Invocation) -> Any:
    """The same of one that is asynchronous."""
    graph, given, config, options = invocation.graph, invocation.given, invocation.config, invocation.options
    if invocation.entry == "ainvoke":
        return await graph.ainvoke(given, config, **invoked(options))
    if invocation.entry == EVENTS:
        options = {"version": "v2", **options}
        return [event async for event in graph.astream_events(given, config, **options)]
    return [item async for item in graph.astream(given, config, **options)]


def invoked(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `invoke`, of which `options` are those that it gave to `stream`."""
    if options.get("stream_mode") == ["updates", "values"]:
        return {**options, "stream_mode": "values"}
    return options
