"""A chat of many steps, kept by one checkpointer: what each of its methods takes, and what is left in its file.

    python saved_chat.py SAVER STEPS ROOM FIGURES

Every step is one superstep that adds a message of some 220 characters to the list of all of them; no two are equal.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

LETTERS = "abcdefghijklmnopqrstuvwxyz"
AT = 50  # the step near which an early put is looked at
AROUND = 20
READS = 3  # of which the median counts: one of them may meet the collector of garbage


def text(number: int) -> str:
    chance = random.Random(number)
    words = ("".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(40))
    return " ".join(words)[:220]


def graph(saver: Any, steps: int, is_async: bool) -> Any:
    def talk(state: MessagesState) -> dict[str, Any]:
        number = len(state["messages"])
        message = (AIMessage if number % 2 else HumanMessage)(text(number), id=f"message-{number}")
        return {"messages": [message]}

    async def talk_async(state: MessagesState) -> dict[str, Any]:
        return talk(state)

    builder = StateGraph(MessagesState)
    builder.add_node("talk", talk_async if is_async else talk)
    builder.add_edge(START, "talk")
    builder.add_conditional_edges("talk", lambda state: "talk" if len(state["messages"]) <= steps else END)
    return builder.compile(checkpointer=saver)


@asynccontextmanager
async def opened(kind: str, room: Path) -> AsyncIterator[Any]:
    """The checkpointer, as its own documentation has it."""
    if kind == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver()
    elif kind == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        connection = sqlite3.connect(room / "chat.db", check_same_thread=False)
        yield SqliteSaver(connection)
        connection.close()
    elif kind == "async-sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(room / "chat.db")) as saver:
            yield saver
    else:
        from lockstep_langgraph import LockstepCheckpointer

        saver = LockstepCheckpointer(room / "chat.db")
        yield saver
        saver.close()


def timed(saver: Any, name: str, wall: list[float], cpu: list[float]) -> None:
    """From now on it is written down how long each call of a method takes, and how long its thread works for it."""
    method = getattr(saver, name)

    @functools.wraps(method)
    def sync(*args: Any, **more: Any) -> Any:
        began, worked = time.perf_counter(), time.thread_time()
        found = method(*args, **more)
        cpu.append(time.thread_time() - worked)
        wall.append(time.perf_counter() - began)
        return found

    @functools.wraps(method)
    async def waited(*args: Any, **more: Any) -> Any:
        began, worked = time.perf_counter(), time.thread_time()
        found = await method(*args, **more)  # which need not be a coroutine function
        cpu.append(time.thread_time() - worked)
        wall.append(time.perf_counter() - began)
        return found

    setattr(saver, name, waited if name.startswith("a") else sync)


async def took(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    found = function()
    if inspect.isawaitable(found):
        await found
    return time.perf_counter() - began


async def all_of(items: Any) -> int:
    if hasattr(items, "__aiter__"):
        return len([item async for item in items])
    return len(list(items))


async def measured(kind: str, steps: int, room: Path) -> dict[str, float]:
    """Every figure in seconds, or bytes."""
    is_async = "async" in kind
    wall: list[float] = []
    cpu: list[float] = []
    writes: list[float] = []
    config: Any = {"configurable": {"thread_id": "chat"}, "recursion_limit": steps + 10}
    async with opened(kind, room) as saver:
        timed(saver, "aput" if is_async else "put", wall, cpu)
        timed(saver, "aput_writes" if is_async else "put_writes", writes, [])
        chat = graph(saver, steps, is_async)
        state, history, listed = chat.get_state, chat.get_state_history, saver.list
        if is_async:
            state, history, listed = chat.aget_state, chat.aget_state_history, saver.alist
        first = {"messages": [HumanMessage("hello", id="message-0")]}
        run = await took(lambda: (chat.ainvoke if is_async else chat.invoke)(first, config))
        if len(wall) < steps:
            raise RuntimeError(f"{kind} was given {len(wall)} checkpoints for {steps} steps")

        async def read(function: Callable[[], Any]) -> float:
            return statistics.median([await took(function) for _ in range(READS)])

        found = {
            "run": run,
            "put": statistics.median(wall),
            "put: CPU": statistics.median(cpu),
            "put_writes": statistics.median(writes),
            "put near step 50": statistics.median(wall[AT - AROUND : AT + AROUND]),
            "put at the end": statistics.median(wall[-2 * AROUND :]),
            "latest": await read(lambda: state(config)),
            "list": await read(lambda: all_of(listed(config))),
            "history": await read(lambda: all_of(history(config))),
        }
    found["bytes"] = float(sum(file.stat().st_size for file in room.glob("chat.db*") if file.is_file()))
    if kind.startswith("ours"):
        # As another process finds it that goes on with the thread.
        async with opened(kind, room) as saver:
            chat = graph(saver, steps, is_async)
            found["latest, opened"] = await took(lambda: (chat.aget_state if is_async else chat.get_state)(config))
    return found


def main() -> None:
    kind, steps, room, figures = sys.argv[1:]
    Path(figures).write_text(json.dumps(asyncio.run(measured(kind, int(steps), Path(room)))))


if __name__ == "__main__":
    main()
