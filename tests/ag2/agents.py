"""Agents of each kind, whose models are scripted by AG2 itself: what the tests record, replay and fork.

`MAKERS` has a factory of each. `live` says whether its model is there to be asked: a replay gets one that has nothing
to say, and tools that count.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

from ag2 import Agent, Context
from ag2.agent import TaskConfig
from ag2.compact import CompactTrigger, TailWindowCompact
from ag2.events import ModelMessageChunk, ToolCallEvent, ToolResult
from ag2.knowledge import MemoryKnowledgeStore
from ag2.knowledge.config import KnowledgeConfig
from ag2.middleware import HistoryLimiter, RetryMiddleware, approval_required
from ag2.observers import observer
from ag2.testing import TestConfig
from ag2.tools import tool
from ag2.tools.subagents import background_agent_tool, persistent_stream
from pydantic import BaseModel

import lockstep

# What AG2 1.0 does not know yet.
_KNOWN = inspect.signature(TestConfig).parameters
_OPTIONS = {name: value for name, value in {"model": "scripted", "raise_tool_errors": False}.items() if name in _KNOWN}
ran: list[str] = []  # tools that ran, and chunks that were heard


def call(name: str, number: int, **arguments: Any) -> ToolCallEvent:
    return ToolCallEvent(name, id=f"call-{name}-{number}", arguments=json.dumps(arguments))


def says(live: bool, *turns: Any) -> TestConfig:
    """A model that says these, one after the other; in a replay, nothing."""
    return TestConfig(*(turns if live else ()), **_OPTIONS)


def _note(name: str) -> None:
    ran.append(name)


@tool
def look(where: str) -> str:
    """Looks somewhere."""
    _note(f"look {where}")
    return f"nothing in {where}"


@tool
async def wait(seconds: float) -> str:
    """Waits."""
    _note("wait")
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


@tool
def count(what: list[str]) -> dict[str, int]:
    """Counts."""
    _note("count")
    return {"count": len(what)}


@tool
def fail(code: int) -> str:
    """Fails."""
    _note("fail")
    raise ValueError(f"code {code}")


@tool
def remember(context: Context, value: int) -> str:
    """Keeps it in the context."""
    _note("remember")
    context.variables["value"] = value
    return "kept"


@tool
def later(context: Context) -> str:
    """Puts a message into the inbox."""
    _note("later")
    context.enqueue("And one thing more.")
    return "queued"


@tool
def finish() -> ToolResult:
    """Ends the turn."""
    _note("finish")
    return ToolResult("That is all.", final=True)


@tool(middleware=[approval_required()])
def pay(cents: int) -> str:
    """Pays."""
    _note("pay")
    return f"paid {cents}"


@tool
async def inquire(context: Context) -> str:
    """Asks somebody."""
    _note("inquire")
    return "they say " + await context.input("Your name?")


for each in (look, wait, count, remember, later, finish, inquire):
    lockstep.mark(each.model.call, effect="read")


def plain(live: bool) -> Agent:
    return Agent("plain", "You answer.", config=says(live, "Hello."))


def tools(live: bool) -> Agent:
    turns = ([call("look", 1, where="the box"), call("wait", 1, seconds=0.01)], [call("count", 1, what=["a", "b"])])
    return Agent("tools", "You look.", config=says(live, *turns, "It is empty."), tools=[look, wait, count])


def parallel(live: bool) -> Agent:
    """Equal calls at once, of which the first ends last."""
    turn = [call("wait", n, seconds=0.03 - n / 100) for n in range(3)] + [call("wait", 9, seconds=0.01)]
    return Agent("parallel", "You wait.", config=says(live, turn, "All waited."), tools=[wait])


def failing_tool(live: bool) -> Agent:
    turns = ([call("fail", 1, code=7), call("look", 2, where=3), call("nothing", 3)], "It failed.")
    return Agent("failing-tool", "You try.", config=says(live, *turns), tools=[fail, look])


def streaming(live: bool) -> Agent:
    async def heard(event):  # type: ignore[no-untyped-def]
        ran.append(f"heard {event.content}")

    chunks = [ModelMessageChunk(text) for text in ("Once ", "upon ")]
    return Agent(
        "streaming", "You tell.", config=says(live, *chunks, "Once upon a time."),
        observers=[observer(ModelMessageChunk, heard)],
    )  # fmt: skip


def humans(live: bool) -> Agent:
    turn = [call("pay", 1, cents=400), call("inquire", 2)]
    hook: Any = (lambda event: "yes") if live else None
    return Agent("humans", "You ask.", config=says(live, turn, "Done."), tools=[pay, inquire], hitl_hook=hook)


def variables(live: bool) -> Agent:
    def prompt(context: Context) -> str:
        return f"The value is {context.variables.get('value')}."

    turns = ([call("remember", 1, value=7)], "Kept.")
    return Agent("variables", prompt, config=says(live, *turns), tools=[remember], variables={"value": 0})


def inbox(live: bool) -> Agent:
    return Agent("inbox", "You queue.", config=says(live, [call("later", 1)], "Both."), tools=[later])


def final(live: bool) -> Agent:
    return Agent("final", "You end.", config=says(live, [call("finish", 1)]), tools=[finish])


def delegating(live: bool) -> Agent:
    turns = ([call("look", 1, where="a book")], "Found it.")
    worker = Agent("worker", "You search.", config=says(live, *turns), tools=[look])
    asked = [call("task_worker", n, objective=f"part {n}") for n in (1, 2)]
    return Agent("boss", "You delegate.", config=says(live, asked, "Done."), tools=[worker.as_tool(description="asks")])


def persisting(live: bool) -> Agent:
    worker = Agent("clerk", "You remember.", config=says(live, "First."))
    asked = [call("task_clerk", n, objective=f"part {n}") for n in (1, 2)]
    tools = [worker.as_tool(description="asks", stream=persistent_stream())]
    return Agent("persisting", "You delegate.", config=says(live, asked[:1], asked[1:], "Done."), tools=tools)


def subtasks(live: bool) -> Agent:
    asked = call("run_subtasks", 1, tasks=["one", "two"])
    worker = TaskConfig(config=says(live, "A part."))
    return Agent("subtasks", "You split.", config=says(live, asked, "Whole."), tasks=worker)


def background(live: bool) -> Agent:
    worker = Agent("digger", "You dig.", config=says(live, "Dug."))
    asked = [
        call("background_task_digger", 1, objective="a hole"),
        call("wait", 2, seconds=0.5),
    ]  # long after the digger
    tools = [background_agent_tool(worker, description="digs"), wait]
    return Agent("background", "You plan.", config=says(live, asked, "Planned.", "Noted."), tools=tools)


def by_hand(live: bool) -> Agent:
    other = Agent("other", "You advise.", config=says(live, "Do it."))

    @tool
    async def consult(question: str) -> str:
        """Asks another agent."""
        _note("consult")
        return str((await other.ask(question)).body)

    asked = [call("consult", 1, question="Shall I?")]
    return Agent("by-hand", "You consult.", config=says(live, asked, "I do."), tools=[consult])


def retrying(live: bool) -> Agent:
    middleware = [RetryMiddleware(max_retries=2), HistoryLimiter(3)]
    turns = (RuntimeError("429"), [call("look", 1, where="the box")], "Empty.")
    return Agent("retrying", "You try.", config=says(live, *turns), tools=[look], middleware=middleware)


def compacting(live: bool) -> Agent:
    knowledge = KnowledgeConfig(
        store=MemoryKnowledgeStore(), compact=TailWindowCompact(target=2), compact_trigger=CompactTrigger(max_events=2)
    )  # fmt: skip
    return Agent("compacting", "You talk.", config=says(live, "One.", "Two.", "Three."), knowledge=knowledge)


class Number(BaseModel):
    number: int


def structured(live: bool) -> Agent:
    return Agent("structured", "You count.", config=says(live, '{"number": 3}'), response_schema=Number)


def failing_model(live: bool) -> Agent:
    turns = ([call("look", 1, where="the box")], RuntimeError("429"))
    return Agent("failing-model", "You try.", config=says(live, *turns), tools=[look])


MAKERS: dict[str, Callable[[bool], Agent]] = {
    made.__name__: made
    for made in (
        plain, tools, parallel, failing_tool, streaming, humans, variables, inbox, final, delegating, persisting,
        subtasks, background, by_hand, retrying, compacting, structured, failing_model,
    )
}  # fmt: skip
