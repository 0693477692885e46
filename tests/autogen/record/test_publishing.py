"""The message hook of autogen-core, for programs with a runtime of their own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import looking
import pytest
from autogen_core import (
    AgentId,
    DefaultInterventionHandler,
    DropMessage,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    message_handler,
)

import lockstep
from lockstep_autogen import LockstepInterventionHandler


@dataclass
class Order:
    """What the agents of these tests say."""

    number: int


class Clerk(RoutedAgent):
    """Answers with the next number; to an odd one with nothing."""

    @message_handler
    async def on_order(self, message: Order, ctx: MessageContext) -> Order | None:
        return Order(message.number + 1) if message.number % 2 == 0 else None


class _Twice(DefaultInterventionHandler):
    """A user's handler, which edits what is sent and drops what is too much."""

    async def on_send(self, message: Any, *, message_context: Any, recipient: Any) -> Any:
        return DropMessage if message.number > 100 else Order(message.number * 2)


async def _talk(*numbers: int, handler: LockstepInterventionHandler) -> list[Any]:
    runtime = SingleThreadedAgentRuntime(intervention_handlers=[handler, _Twice()])
    await Clerk.register(runtime, "clerk", lambda: Clerk("a clerk"))
    runtime.start()
    answers: list[Any] = []
    for number in numbers:
        answers.append(await runtime.send_message(Order(number), AgentId("clerk", "desk")))
    await runtime.stop_when_idle()
    return answers


def test_each_message_is_a_step_as_it_was_before_any_handler_changed_it() -> None:
    handler = LockstepInterventionHandler("orders")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", r"Intervention handler on_response returned None", RuntimeWarning)
        answers = asyncio.run(_talk(3, handler=handler))
    handler.close()
    assert answers == [Order(7)]
    assert looking.runs() == {"autogen/orders": "complete"}
    with looking.run("autogen/orders") as seen:
        assert seen.names == ["user", "clerk/desk"]
        first, second = (seen.state(number)["messages"][0] for number in (0, 1))
        assert (first["kind"], first["to"], first["type"]) == ("send", "clerk/desk", "Order")
        assert first["content"]["number"] == 3
        assert (second["kind"], second["content"]["number"]) == ("response", 7)


def test_a_message_that_has_no_answer_brings_no_warning() -> None:
    program = f"""
import asyncio, sys, warnings
sys.path.insert(0, {__file__.rpartition("/")[0]!r})
import test_publishing as t
from autogen_core import AgentId, SingleThreadedAgentRuntime
async def run():
    runtime = SingleThreadedAgentRuntime(intervention_handlers=[t.LockstepInterventionHandler("orders")])
    await t.Clerk.register(runtime, "clerk", lambda: t.Clerk("a clerk"))
    runtime.start()
    print(await runtime.send_message(t.Order(3), AgentId("clerk", "desk")))
    await runtime.stop_when_idle()
asyncio.run(run())
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("None\n", "")
    assert looking.runs() == {"autogen/orders": "complete"}  # its process has ended


def test_a_fault_of_the_hook_reaches_no_message(
    monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("lockstep_autogen.layout.body_of", broken)
    assert asyncio.run(_talk(3, 5, handler=LockstepInterventionHandler("orders"))) == [Order(7), Order(11)]
    assert [record.getMessage() for record in told.records] == [
        "lockstep could not record: a message: ZeroDivisionError: a fault of ours"
    ]


def test_in_a_session_messages_are_steps_of_its_run_and_are_compared() -> None:
    numbers = [3, 5]

    def program() -> Any:
        return asyncio.run(_talk(*numbers, handler=LockstepInterventionHandler("orders")))

    with lockstep.record("core"):
        assert program() == [Order(7), Order(11)]
    assert looking.runs() == {"core": "complete"}
    replay = lockstep.replay("core", program)
    assert replay.identical and replay.result == [Order(7), Order(11)]
    numbers[1] = 6
    replay = lockstep.replay("core", program)
    assert replay.divergence is not None
    assert "messages.value[0].content.number" in replay.divergence
