"""Hooks of the program's own are called as they would be without us, and what they make of a step is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import crews
import pytest
import recorded_crews as of
from crewai.events import crewai_event_bus
from crewai.events.types.hook_events import HookDispatchedEvent
from crewai.flow import Flow, start
from crewai.hooks.dispatch import (
    InterceptionPoint,
    get_hooks,
    get_scoped_hooks,
    register,
    register_scoped,
    scoped_hooks,
)
from crewai.hooks.dispatch import unregister as forget

import lockstep_crewai
from lockstep.testing import Provider


@pytest.fixture
def shouting() -> Iterator[list[str]]:
    """A global hook that changes what every step comes to."""
    seen: list[str] = []

    def shout(context: Any) -> Any:
        seen.append(context.step_name)
        context.payload.raw = context.payload.raw.upper()

    register(InterceptionPoint.POST_STEP, shout)
    yield seen
    forget(InterceptionPoint.POST_STEP, shout)


def test_what_a_hook_makes_of_a_step_is_recorded(shouting: list[str], provider: Provider) -> None:
    result = lockstep_crewai.wrap(crews.sequential()).kickoff(crews.INPUTS)
    assert shouting == ["research", "letter", "check"]
    assert of.state("crewai/desk", 3)["output"]["raw"] == result.raw == result.raw.upper()


def test_hooks_of_a_scope_of_the_program_s_own_are_called_inside_of_it_and_steps_are_recorded(
    provider: Provider,
) -> None:
    seen: list[str] = []

    class Scoped(Flow[dict[str, Any]]):
        @start()
        def look(self) -> str:
            with scoped_hooks():
                register_scoped(InterceptionPoint.POST_STEP, lambda context: seen.append(context.step_name))
                return str(crews.sequential().kickoff(crews.INPUTS))

    with scoped_hooks():
        register_scoped(InterceptionPoint.PRE_STEP, lambda context: seen.append(f"before {context.step_name}"))
        lockstep_crewai.wrap(Scoped()).kickoff()
    assert seen == ["before look", "research", "letter", "check"]
    assert of.steps("crewai/Scoped") == [
        "Scoped", *(f"Scoped/look/desk/{name}" for name in ("research", "letter", "check")), "Scoped/look"
    ]  # fmt: skip
    assert of.faults("crewai/Scoped") == []


def test_no_hook_of_ours_is_left_behind(provider: Provider) -> None:
    before = {point: get_hooks(point) for point in InterceptionPoint}
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(crews.INPUTS)
    assert {point: get_hooks(point) for point in InterceptionPoint} == before
    assert not any(get_scoped_hooks(point) for point in InterceptionPoint)


def test_a_step_that_no_hook_was_told_of_is_said(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lockstep_crewai.hooks._hooks", dict)
    result = lockstep_crewai.wrap(crews.sequential()).kickoff(crews.INPUTS)
    assert result.raw.startswith("approved")
    assert of.steps("crewai/desk") == ["desk"]
    assert len(of.faults("crewai/desk")) == 3
    assert "the step desk/letter: LookupError: CrewAI has told no hook of it" in caplog.text


def test_a_step_that_cannot_be_recorded_is_said_and_changes_nothing(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("lockstep_crewai.canonical.output", fails)
    result = lockstep_crewai.wrap(crews.sequential()).kickoff(crews.INPUTS)
    assert result.raw.startswith("approved")
    assert "the step desk/research: RuntimeError: a fault of ours" in caplog.text
    assert "what a kickoff returned: RuntimeError: a fault of ours" in caplog.text


def test_two_crews_in_one_process_do_not_touch_each_other(provider: Provider) -> None:
    """One is kicked off by a callback of the other, and none of it is recorded where it is not wrapped."""
    plain, wrapped = crews.sequential(), crews.sequential()
    results: list[Any] = []
    plain.tasks[0].callback = lambda output: results.append(wrapped.kickoff(crews.INPUTS))
    lockstep_crewai.wrap(wrapped)
    plain.kickoff(crews.INPUTS)

    assert of.steps("crewai/desk") == ["desk", "desk/research", "desk/letter", "desk/check"]
    assert of.state("crewai/desk", 3)["output"]["raw"] == results[0].raw
    assert len(of.turns("crewai/desk")) == 1


def test_listeners_are_told_of_the_program_s_own_hooks_only(shouting: list[str], provider: Provider) -> None:
    told: list[tuple[str, int]] = []

    def hear(source: Any, event: Any) -> None:
        told.append((event.interception_point, event.hook_count))

    crewai_event_bus.register_handler(HookDispatchedEvent, hear)
    try:
        for crew in (crews.sequential(), lockstep_crewai.wrap(crews.sequential())):
            crew.kickoff(crews.INPUTS)
            crewai_event_bus.flush()
            assert sorted(told) == [("post_step", 1)] * 3
            told.clear()
    finally:
        crewai_event_bus.off(HookDispatchedEvent, hear)
