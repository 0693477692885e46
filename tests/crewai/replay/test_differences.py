"""What is done otherwise than it was recorded is the first difference, and never called identical."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of
from crewai import Crew
from crewai.flow import Flow, listen, start
from crewai.tools import tool

import lockstep
import lockstep_crewai
from lockstep.errors import Code, TargetError
from lockstep.testing import Provider


@pytest.fixture
def desk(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> str:
    """The run of a crew whose provider is gone."""
    crews.kickoff(lockstep_crewai.wrap(crews.sequential()))
    crew_runs.silence(provider, monkeypatch)
    return "crewai/desk"


def differs(run: str, make: Any, **options: Any) -> Any:
    """The difference of a replay that has one."""
    replay = lockstep.replay(run, make, **options)
    assert not replay.identical
    assert replay.report.difference is not None
    assert replay.report.live_calls == 0
    assert crews.ran == []
    return replay.report.difference


def changed(make: Callable[[], Any], change: Callable[[Any], Any]) -> Callable[[], Any]:
    def made() -> Any:
        target = make()
        return change(target) or target

    return made


def test_another_backstory_is_told_at_the_first_call_that_has_it(desk: str) -> None:
    def change(crew: Any) -> None:
        crew.agents[1].backstory = "You do no work."

    found = differs(desk, changed(crews.sequential, change))
    assert (found.code, found.kind, found.lane) == (Code.REQUEST, "model", "desk/letter")
    assert "You do no work." in found.actual


def test_a_tool_that_is_gone(desk: str) -> None:
    def change(crew: Any) -> None:
        crew.agents[0].tools = crew.tasks[0].tools = []

    found = differs(desk, changed(crews.sequential, change))
    assert (found.kind, found.lane) == ("model", "desk/research")


def test_a_guardrail_that_changes_what_a_task_comes_to(desk: str) -> None:
    def change(crew: Any) -> None:
        crew.tasks[1].guardrail = lambda output: (True, output.raw.upper())
        crew.tasks[1]._guardrail = crew.tasks[1].guardrail

    found = differs(desk, changed(crews.sequential, change))
    assert (found.code, found.kind, found.lane, found.name) == (Code.STATE, "task", "desk", "letter")
    assert found.path == "output.raw"
    assert "DEAR" in found.actual


def test_a_callback_that_changes_what_the_kickoff_comes_to(desk: str) -> None:
    def change(crew: Any) -> None:
        def other(result: Any) -> Any:
            result.raw = "another end"
            return result

        crew.after_kickoff_callbacks.append(other)

    found = differs(desk, changed(crews.sequential, change))
    assert (found.code, found.kind, found.path) == (Code.END, "turn", "output.raw")
    assert "another end" in found.actual


def test_a_callback_that_fails_is_another_end(desk: str) -> None:
    def change(crew: Any) -> None:
        def fails(result: Any) -> Any:
            raise RuntimeError("no end")

        crew.after_kickoff_callbacks.append(fails)

    found = differs(desk, changed(crews.sequential, change))
    assert found.code == Code.END
    assert "RuntimeError: no end" in found.actual


def test_other_inputs_than_the_ones_it_was_given(desk: str) -> None:
    def change(crew: Any) -> None:
        crew.before_kickoff_callbacks.append(lambda inputs: {**inputs, "order": 8})

    assert differs(desk, changed(crews.sequential, change)).lane == "desk/research"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda crew: crew.tasks.reverse(), r"task 1 is check \(of checker\), and was research \(of researcher\)"),
        (lambda crew: crew.tasks.pop(), r"task 3, check \(of checker\), is not there any more"),
        (
            lambda crew: crew.tasks.append(crews.task("more", crew.agents[0])),
            r"task 4, more \(of researcher\), was not there",
        ),
        (
            lambda crew: setattr(crew.tasks[1], "description", "Burn it."),
            r"task 2, letter \(of writer\), is told something else",
        ),
        (
            lambda crew: setattr(crew.tasks[0], "agent", crew.agents[1]),
            r"task 1 is research \(of writer\), and was research \(of researcher\)",
        ),
    ],
)
def test_another_crew_is_refused_with_the_first_task_that_differs(
    desk: str, change: Callable[[Any], Any], said: str
) -> None:
    def made() -> Any:
        crew = crews.sequential()
        change(crew)
        return crew

    with pytest.raises(TargetError, match=f"LS402 .* made another crew than the recorded one: {said}"):
        lockstep.replay(desk, made)


def test_something_else_than_a_crew_is_refused(desk: str) -> None:
    with pytest.raises(TargetError, match="LS402 alone made an agent, and the recorded run is one of a crew"):
        lockstep.replay(desk, crews.alone)
    with pytest.raises(TargetError, match="LS402 wrap takes a crew"):
        lockstep.replay(desk, lambda: 7)
    with pytest.raises(TargetError, match="LS402 a crew, agent or flow remembers what it has done"):
        lockstep.replay(desk, crews.sequential())
    with pytest.raises(TargetError, match="LS402 depth 'node' is nothing that a crew has"):
        lockstep.replay(desk, crews.sequential, depth="node")


def test_a_crew_that_was_used_is_refused(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(crews.INPUTS)
    with pytest.raises(TargetError, match=r"LS402 .* gave a Crew that was used already"):
        lockstep.replay("crewai/desk", lambda: crew)
    used = crews.sequential()
    used.kickoff(crews.INPUTS)
    with pytest.raises(TargetError, match=r"LS402 .* gave a Crew that was used already"):
        lockstep.replay("crewai/desk", lambda: used)


def test_a_factory_that_wraps_what_it_makes_is_fine(desk: str) -> None:
    assert lockstep.replay(desk, lambda: lockstep_crewai.wrap(crews.sequential())).identical
    with pytest.raises(lockstep.LockstepError):
        of.turns("crewai/desk-2")


# Flows: what they are made of is looked at as they run.


def counting(by: int = 1, said: str = "two", after: str = "first", fails: bool = False) -> type[Flow[Any]]:
    """A flow of two methods, the second of which comes after the first."""

    class Counts(Flow[dict[str, Any]]):
        @start()
        def first(self) -> str:
            self.state["n"] = by
            return "one"

        @listen(after)
        def second(self) -> str:
            self.state["n"] += 1
            if fails:
                raise LookupError("no more")
            return said

    return Counts


@pytest.fixture
def counts() -> str:
    lockstep_crewai.wrap(counting()()).kickoff()
    return "crewai/Counts"


def test_the_same_flow_is_identical(counts: str) -> None:
    assert lockstep.replay(counts, counting()).identical


def test_another_state_of_a_flow(counts: str) -> None:
    found = differs(counts, counting(by=2))
    assert (found.code, found.kind, found.name, found.path) == (Code.STATE, "method", "first", "state.n")
    assert "the flow's state" in found.reason
    assert (found.expected, found.actual) == ("1", "2")


def test_another_answer_of_a_method(counts: str) -> None:
    found = differs(counts, counting(said="three"))
    assert (found.code, found.name, found.path) == (Code.STATE, "second", "output")
    assert (found.expected, found.actual) == ('"two"', '"three"')


def test_a_method_that_fails_now(counts: str) -> None:
    found = differs(counts, counting(fails=True))
    assert (found.code, found.name, found.path) == (Code.STATE, "second", "output")


def test_a_method_that_runs_no_more_is_missing(counts: str) -> None:
    found = differs(counts, counting(after="never"))
    assert (found.code, found.name) == (Code.MISSING, "second")


def longer(more: bool) -> type[Flow[Any]]:
    class Long(Flow[dict[str, Any]]):
        @start()
        def first(self) -> str:
            return "one"

        @listen(first if more else "never")
        def second(self) -> str:
            return "two"

    return Long


def test_a_method_that_did_not_run(provider: Provider) -> None:
    lockstep_crewai.wrap(longer(False)()).kickoff()
    found = differs("crewai/Long", longer(True))
    assert (found.code, found.name) == (Code.EXTRA, "second")


def swapped(first: str, second: str) -> type[Flow[Any]]:
    class Swapped(Flow[dict[str, Any]]):
        @start()
        def begin(self) -> None:
            return None

        @listen(first)
        def a(self) -> str:
            return "a"

        @listen(second)
        def b(self) -> str:
            return "b"

    return Swapped


def test_methods_in_another_order(provider: Provider) -> None:
    lockstep_crewai.wrap(swapped("begin", "a")()).kickoff()
    found = differs("crewai/Swapped", swapped("b", "begin"))
    assert (found.code, found.expected, found.actual) == (Code.ORDER, "a", "b")


def test_an_error_is_replayed_as_one() -> None:
    class Failing(Flow[dict[str, Any]]):
        @start()
        def look(self) -> None:
            raise LookupError("no such order")

    with pytest.raises(LookupError):
        lockstep_crewai.wrap(Failing()).kickoff()
    replay = lockstep.replay("crewai/Failing", Failing)
    assert replay.identical
    assert isinstance(replay.error, LookupError)


# What a replay may not do.


def test_what_its_code_would_reach_by_itself_is_a_difference(provider: Provider) -> None:
    import socket

    address = provider.url.partition("://")[2].partition("/")[0].rpartition(":")

    class Reaches(Flow[dict[str, Any]]):
        @start()
        def look(self) -> str:
            with socket.create_connection((address[0], int(address[2]))):
                return "reached"

    lockstep_crewai.wrap(Reaches()).kickoff()
    found = differs("crewai/Reaches", Reaches)
    assert found.code == Code.NOT_COVERED
    assert "socket" in found.reason


def test_a_program_that_hides_what_stops_it_has_been_stopped(desk: str) -> None:
    """It goes on with nothing: no tool runs, and what it returns is nobody's result."""
    ran: list[str] = []

    @tool("look_up")
    def look_up(order: int) -> str:
        """Looks an order up."""
        ran.append("look_up")
        return "live"

    def change(crew: Crew) -> Any:
        crew.agents[0].backstory = "You are another."
        kickoff = type(crew).kickoff

        def hides(*args: Any, **options: Any) -> Any:
            try:
                return kickoff(crew, *args, **options)
            except BaseException:
                return look_up.run(order=7) and None

        object.__setattr__(crew, "kickoff", hides)

    replay = lockstep.replay(desk, changed(crews.sequential, change))
    assert replay.divergence is not None
    assert not replay.identical


def test_a_crew_that_waits_for_nothing_is_stuck() -> None:
    import threading

    waits = threading.Event()
    waits.set()

    class Waits(Flow[dict[str, Any]]):
        @start()
        def look(self) -> str:
            waits.wait(30)
            return "done"

    lockstep_crewai.wrap(Waits()).kickoff()
    waits.clear()
    try:
        found = differs("crewai/Waits", Waits, deadline=0.5)
    finally:
        waits.set()
    assert found.code in (Code.STUCK, Code.MISSING)
