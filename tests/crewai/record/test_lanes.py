"""What runs beside something else has a lane of its own, and lanes and steps are called by what the program calls them,
never by an id."""

from __future__ import annotations

import re
from typing import Any

import crews
import pytest
import recorded_crews as of
from crewai import Crew, Task
from crewai.flow import Flow, listen, start

import lockstep_crewai
from lockstep.testing import Provider

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


def test_a_task_without_a_name_is_called_by_what_it_is_told_as_it_was_written(provider: Provider) -> None:
    writer = crews.agent("writer")
    tasks = [
        Task(description="Write {order} down, and quickly!", expected_output="a line", agent=writer),
        Task(description="Write {order} down, and quickly!", expected_output="a line", agent=writer),
        Task(description="…", expected_output="a line", agent=writer),
    ]
    crew = lockstep_crewai.wrap(Crew(name="desk", agents=[writer], tasks=tasks))
    crew.kickoff(inputs={"order": 7})
    crew.kickoff(inputs={"order": 8})

    once = ["desk", "desk/write-order-down-and-quickly", "desk/write-order-down-and-quickly~2", "desk/task"]
    assert of.steps("crewai/desk") == [*once, *once]


def test_a_crew_without_a_name_is_a_crew_and_its_calls_are_in_lanes_of_its_tasks(provider: Provider) -> None:
    researcher = crews.agent("researcher", tools=[crews.LookUp()])
    lockstep_crewai.wrap(Crew(agents=[researcher], tasks=[crews.task("research", researcher)])).kickoff(crews.INPUTS)

    assert of.steps("crewai/crew") == ["crew", "crew/research"]
    assert of.lanes("crewai/crew") == ["crew/research"]


def test_tasks_at_once_have_lanes_in_the_order_in_which_the_crew_has_them(provider: Provider) -> None:
    lockstep_crewai.wrap(crews.async_tasks()).kickoff(crews.INPUTS)

    assert sorted(of.steps("crewai/at-once")[1:3]) == ["at-once/letter", "at-once/research"]
    assert of.steps("crewai/at-once")[3:] == ["at-once/check"]
    assert set(of.lanes("crewai/at-once")) == {"at-once/research", "at-once/letter", "at-once/check"}


@pytest.mark.parametrize("name", ["paying-for_each", "paying-for_each_async", "paying-akickoff_for_each"])
def test_each_input_has_a_lane(name: str, provider: Provider) -> None:
    kind = crews.named(name)
    result = kind.how(lockstep_crewai.wrap(kind.make()))

    expected = [f"till/input-{n}/refund" for n in (1, 2, 3)]
    assert of.steps("crewai/till")[0] == "till"
    assert sorted(of.steps("crewai/till")[1:]) == expected
    assert sorted(of.lanes("crewai/till")) == expected
    # By number, whichever was done first: what is in an input's lane is what its kickoff came to.
    by_lane = {f"{event.lane}": body["channels"]["output"]["value"]["raw"] for event, body in _done("crewai/till")}
    assert [by_lane[f"till/input-{n}"] for n in (1, 2, 3)] == [str(each) for each in result]


def _done(run: str) -> list[tuple[Any, Any]]:
    return [(event, body) for event, body in of.events(run, of.Kind.STEP) if event.what != "input"]


def test_what_a_flow_s_method_kicks_off_is_in_its_lane(provider: Provider) -> None:
    lockstep_crewai.wrap(crews.flow()).kickoff(crews.INPUTS)

    steps = of.steps("crewai/RefundFlow")
    assert steps[:3] == ["RefundFlow", "RefundFlow/look", "RefundFlow/size"]
    assert sorted(steps[3:-1]) == ["RefundFlow/asked", "RefundFlow/paid", "RefundFlow/paid/till/refund"]
    assert steps[-1] == "RefundFlow/told"
    assert set(of.lanes("crewai/RefundFlow")) == {
        "RefundFlow/look", "RefundFlow/asked/researcher", "RefundFlow/paid/till/refund",
    }  # fmt: skip


def test_a_method_that_runs_again_has_a_number(provider: Provider) -> None:
    class Loop(Flow[dict[str, Any]]):
        @start()
        def first(self) -> str:
            return crews.model().call("first?")

        @listen(first)
        def twice(self) -> list[str]:
            agent = crews.agent("writer")
            return [str(agent.kickoff(text)) for text in ("a letter", "another letter")]

    lockstep_crewai.wrap(Loop()).kickoff()
    assert of.lanes("crewai/Loop") == ["Loop/first", "Loop/twice/writer", "Loop/twice/writer~2"]


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_no_id_of_crewai_s_is_a_name(kind: crews.Kind, provider: Provider) -> None:
    kind.how(lockstep_crewai.wrap(kind.make()))
    run = f"crewai/{kind.run}"
    names = [*of.steps(run), *of.lanes(run)]
    assert len(of.steps(run)) > 1
    assert [name for name in names if _UUID.search(name)] == []
    assert of.faults(run) == []
