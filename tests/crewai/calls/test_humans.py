"""Humans who are asked, recorded and not asked again."""

from __future__ import annotations

import asyncio
import builtins
import io
import sys
from typing import Any

import pytest
from asked import LANE, Tape
from crew_events import Heard
from crewai import Agent, Crew, Task
from crewai.core.providers import human_input
from crewai.core.providers.human_input import SyncHumanInputProvider
from crewai.flow import Flow, human_feedback, listen, start
from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.input_provider import InputResponse
from crewai.hooks.tool_hooks import ToolCallHookContext

from lockstep.errors import Code, Divergence
from lockstep.testing import Answer, Provider


class Keyboard:
    """Somebody who types these lines. `asked`: the prompts so far."""

    def __init__(self, *lines: str) -> None:
        self.lines = [*lines]
        self.asked: list[str] = []

    def type(self, prompt: object = "") -> str:
        self.asked.append(str(prompt))
        return self.lines.pop(0)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    typing = Keyboard("a", "b", "c")
    monkeypatch.setattr(builtins, "input", typing.type)
    return typing


def crew() -> Crew:
    agent = Agent(role="writer", goal="write", backstory="You do your work.", llm="openai/gpt-4o")
    task = Task(description="write", expected_output="a text", agent=agent, human_input=True)
    return Crew(agents=[agent], tasks=[task])


def test_feedback_on_a_task_is_not_asked_for_again(provider: Provider, tape: Tape, keyboard: Keyboard) -> None:
    provider.script = lambda request: Answer(f"text {len(request.json['messages'])}")
    keyboard.lines = ["shorter", ""]
    first = tape.record(lambda: crew().kickoff().raw)
    assert keyboard.asked == ["", ""]
    assert [(kind, name) for _, kind, name in tape.calls()] == [
        ("model", "gpt-4o"), ("human", "input"), ("model", "gpt-4o"), ("human", "input"),
    ]  # fmt: skip
    assert tape.request(1)["about"] == "the result of a task"
    assert (tape.outcome(1), tape.outcome(3)) == ("shorter", "")
    provider.stop()
    assert tape.replay(lambda: crew().kickoff().raw) == first
    assert len(keyboard.asked) == 2


# CrewAI gives up a transport that it could not make, and asyncio cannot say which.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_feedback_in_a_coroutine_is_not_asked_for_again(
    provider: Provider, tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script = lambda request: Answer(f"text {len(request.json['messages'])}")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))  # no pipe: the line comes from a thread
    typing = Keyboard("shorter", "")
    monkeypatch.setattr(builtins, "input", typing.type)
    first = tape.record(lambda: asyncio.run(crew().akickoff()).raw)
    assert len(typing.asked) == 2
    assert [(kind, name) for _, kind, name in tape.calls() if kind == "human"] == [("human", "input")] * 2
    provider.stop()
    assert tape.replay(lambda: asyncio.run(crew().akickoff()).raw) == first
    assert len(typing.asked) == 2


class Elsewhere(SyncHumanInputProvider):
    """Asks not at the terminal."""

    asked = 0

    @staticmethod
    def _prompt_input(crew: Any) -> str:
        Elsewhere.asked += 1
        return "shorter" if Elsewhere.asked == 1 else ""


class Otherwise(SyncHumanInputProvider):
    """Does it all itself."""

    def handle_feedback(self, formatted_answer: Any, context: Any) -> Any:
        return formatted_answer


@pytest.fixture
def provided() -> Any:
    token = None

    def by(provider: Any) -> None:
        nonlocal token
        token = human_input.set_provider(provider)

    yield by
    if token is not None:
        human_input.reset_provider(token)


def test_a_provider_that_asks_elsewhere_is_not_asked_again(provider: Provider, tape: Tape, provided: Any) -> None:
    provider.script = lambda request: Answer(f"text {len(request.json['messages'])}")
    provided(Elsewhere())
    first = tape.record(lambda: crew().kickoff().raw)
    provider.stop()
    assert tape.replay(lambda: crew().kickoff().raw) == first
    assert Elsewhere.asked == 2


def test_a_provider_that_nobody_can_see_is_told_and_its_replay_stops_there(
    provider: Provider, tape: Tape, provided: Any
) -> None:
    provider.script = [Answer("text")]
    provided(Otherwise())
    assert tape.record(lambda: crew().kickoff().raw) == "text"
    assert len(tape.faults) == 1 and "override only _prompt_input" in tape.faults[0]
    assert isinstance(tape.serve(lambda: crew().kickoff().raw), Divergence)
    assert tape.difference is not None and tape.difference.code == Code.UNSERVABLE


class Asking(Flow[Any]):
    @start()
    def gather(self) -> Any:
        return [self.ask("which order?"), self.ask("sure?", timeout=5, metadata={"to": "me"})]


def test_what_a_flow_asks_is_not_asked_again(tape: Tape, keyboard: Keyboard, heard: Heard) -> None:
    keyboard.lines = ["7", "yes"]
    first = tape.record(lambda: Asking().kickoff())
    told = heard.taken()
    assert first == ["7", "yes"] and len(keyboard.asked) == 2
    assert tape.calls() == [(f"{LANE}/Asking/gather", "human", "ask")] * 2
    assert tape.request(1) == {"message": "sure?", "metadata": {"to": "me"}, "timeout": 5}
    assert tape.replay(lambda: Asking().kickoff()) == first
    assert len(keyboard.asked) == 2
    assert heard.taken() == told


class Named(Flow[Any]):
    """Has a method of its own that is called as CrewAI's."""

    @start()
    def ask(self) -> str:  # type: ignore[override]
        return "no question"


def test_a_method_that_only_has_its_name_asks_nobody(tape: Tape) -> None:
    assert tape.record(lambda: Named().kickoff()) == "no question"
    assert tape.calls() == []


class Window:
    """Somebody behind a window, who is answered for by number."""

    asked = 0

    def request_input(self, message: str, flow: Any, metadata: Any = None) -> Any:
        Window.asked += 1
        if message == "which order?":
            return InputResponse(text="9", metadata={"by": "clerk"})
        raise OSError("closed")


def test_an_input_provider_is_not_asked_again(tape: Tape) -> None:
    histories: list[Any] = []

    def use() -> Any:
        flow = Asking(input_provider=Window())
        found = flow.kickoff()
        histories.append([{**each, "timestamp": None} for each in flow._input_history])
        return found

    assert tape.record(use) == ["9", None]
    assert tape.outcome(0) == {"text": "9", "metadata": {"by": "clerk"}} and tape.outcome(1) is None
    assert tape.replay(use) == ["9", None]
    assert histories[0] == histories[1]
    assert Window.asked == 2


class Reviewed(Flow[Any]):
    @start()
    @human_feedback(message="good?", emit=["yes", "no"], llm="openai/gpt-4o", default_outcome="yes")
    def draft(self) -> str:
        return "a draft"

    @listen("no")
    def again(self) -> str:
        return "another draft"


def test_feedback_on_a_method_is_not_asked_for_again(
    provider: Provider, tape: Tape, keyboard: Keyboard, heard: Heard
) -> None:
    provider.script = [Answer('{"outcome": "no"}')]
    keyboard.lines = ["make it shorter"]
    first = tape.record(lambda: Reviewed().kickoff())
    told = heard.taken()
    assert first == "another draft"
    assert [(kind, name) for _, kind, name in tape.calls()] == [("human", "input"), ("model", "gpt-4o")]
    assert tape.request(0) == {"prompt": "Your feedback: ", "message": "good?", "output": "a draft"}
    provider.stop()
    assert tape.replay(lambda: Reviewed().kickoff()) == first
    assert keyboard.asked == ["Your feedback: "]
    assert heard.taken() == told


class Desk:
    """Takes feedback, and says who gave it."""

    asked = 0

    def request_feedback(self, context: Any, flow: Any) -> Any:
        Desk.asked += 1
        if context.message == "wait":
            raise HumanFeedbackPending(context=context, callback_info={"ticket": Desk.asked})
        return ""


def test_a_feedback_provider_is_not_asked_again(tape: Tape) -> None:
    class Desked(Flow[Any]):
        @start()
        @human_feedback(message="good?", provider=Desk())
        def draft(self) -> str:
            return "a draft"

    Desk.asked = 0
    first = tape.record(lambda: Desked().kickoff().feedback)
    assert tape.replay(lambda: Desked().kickoff().feedback) == first == ""
    assert Desk.asked == 1
    assert tape.calls() == [(f"{LANE}/Desked/draft", "human", "feedback")]


def test_a_flow_that_waits_for_feedback_waits_again(tape: Tape, tmp_path: Any) -> None:
    from crewai.flow.persistence import SQLiteFlowPersistence

    class Waiting(Flow[Any]):
        @start()
        @human_feedback(message="wait", provider=Desk())
        def draft(self) -> str:
            return "a draft"

    def use() -> Any:
        return Waiting(persistence=SQLiteFlowPersistence(str(tmp_path / "flows.db"))).kickoff()

    Desk.asked = 0
    first, again = tape.record(use), tape.replay(use)
    assert isinstance(first, HumanFeedbackPending) and isinstance(again, HumanFeedbackPending)
    assert first.callback_info == again.callback_info == {"ticket": 1}
    assert Desk.asked == 1


def test_what_a_hook_asks_is_not_asked_again(tape: Tape, keyboard: Keyboard) -> None:
    context: Any = ToolCallHookContext(tool_name="refund", tool_input={}, tool=None)  # type: ignore[arg-type]
    keyboard.lines = ["approve "]
    assert tape.record(lambda: context.request_human_input("May it?")) == "approve"
    assert tape.request() == {"prompt": "", "message": "May it?"}
    assert tape.replay(lambda: context.request_human_input("May it?")) == "approve"
    assert len(keyboard.asked) == 1
