"""Forks of what runs in threads and loops at once, and of runs that did not come to an end."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import branches
import crew_runs as runs
import crews
import pytest
from crewai import Crew, Flow
from crewai.flow import and_, human_feedback, listen, start

import lockstep
import lockstep_crewai
from lockstep.errors import Code, EditError, StoreError
from lockstep.session.native import Journal
from lockstep.testing import Answer, Provider


class Beside(Flow[dict[str, Any]]):
    """Two methods at once in one loop, one of which asks without letting the other go on."""

    @start()
    def begin(self) -> str:
        return "go"

    @listen(begin)
    async def awaits(self) -> str:
        said = await crews.model().acall("first?")
        return f"{said}, {await crews.model().acall('second?')}"

    @listen(begin)
    async def blocks(self) -> str:
        return str(crews.model().call("at once?"))

    @listen(and_(awaits, blocks))
    def end(self) -> str:
        return "both"


def test_a_call_that_keeps_its_loop_from_going_on_is_not_waited_for_by_it(provider: Provider) -> None:
    kind = crews.Kind(Beside, crews.kickoff, "Beside", 3)
    run, _ = runs.recorded(kind)
    for step in branches.done(run):
        fork = lockstep.fork(f"{run}:{step.number}", Beside, edits={str(step.number): "EDITED"}, deadline=5.0)
        assert fork.divergence is None, (step.name, fork.divergence)
        assert (fork.state, fork.edited) == ("complete", 1)
        branches.is_again(fork, kind)


def test_what_ran_beside_an_edited_answer_is_served_past_it(provider: Provider) -> None:
    kind = crews.named("async_tasks")
    run, _ = runs.recorded(kind)
    letter = next(at for at, effect in runs.calls(run, "model") if effect.lane.endswith("/letter"))
    last = branches.done(run)[-1].number
    crews.ran.clear()
    fork = lockstep.fork(f"{run}:{last}", kind.make, edits={letter: "EDITED"})
    assert (fork.state, fork.edited, fork.live, crews.ran) == ("complete", 1, 1, [])
    assert [task.raw for task in fork.result.tasks_output][1] == "EDITED"
    branches.is_again(fork, kind)


# People and files.


def asking() -> Crew:
    """A person says something to what a task came to."""
    friend = crews.agent("friend")
    return Crew(name="asks", agents=[friend], tasks=[crews.task("note", friend, human_input=True)])


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was typed: first a wish, then that it will do."""
    asked: list[str] = []

    def read(prompt: object = "") -> str:
        asked.append(str(prompt))
        return "be kinder" if len(asked) == 1 else ""

    monkeypatch.setattr(builtins, "input", read)
    return asked


def test_a_person_is_not_asked_again_for_what_was_typed(typed: list[str], provider: Provider) -> None:
    kind = crews.Kind(asking, crews.kickoff, "asks", 2)
    run, result = runs.recorded(kind)
    assert (len(typed), "kinder" in result.raw) == (2, True)
    typed.clear()
    (first, _), *_ = runs.calls(run, "human")
    fork = lockstep.fork(f"{run}:1", asking, edits={first: ""})
    assert (fork.state, fork.edited, typed) == ("complete", 1, [])
    assert "kinder" not in fork.result.raw
    branches.is_again(fork, kind)
    fork = lockstep.fork(f"{run}:1", asking, edits={first: "be longer"})
    assert (fork.state, fork.reused, typed) == ("complete", 1, [])


class Reviewed(Flow[dict[str, Any]]):
    """A person says whether it goes out, and a model makes one of two words of that."""

    @start()
    @human_feedback(message="ok?", emit=["approved", "rejected"], llm="openai/gpt-4o", default_outcome="rejected")
    def draft(self) -> str:
        return "a draft"

    @listen("approved")
    def send(self) -> str:
        return "sent"

    @listen("rejected")
    def drop(self) -> str:
        return "dropped"


def test_what_a_person_said_and_what_was_made_of_it_are_edited(
    monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    monkeypatch.setattr(builtins, "input", lambda prompt="": "it is fine")
    provider.script = lambda request: Answer("approved" if "it is fine" in str(request.json) else "rejected")
    kind = crews.Kind(Reviewed, crews.kickoff, "Reviewed", 1)
    run, result = runs.recorded(kind)
    assert result == "sent"
    monkeypatch.setattr(builtins, "input", lambda prompt="": pytest.fail("nobody is to be asked"))
    (said, _), *_ = runs.calls(run, "human")
    for edits, asked in (({"1": "rejected"}, False), ({said: "not like this"}, True)):
        fork = lockstep.fork(f"{run}:1", Reviewed, edits=edits)
        assert (fork.state, fork.result, fork.live > 0) == ("complete", "dropped", asked)
        branches.is_again(fork, kind)


def test_only_another_file_is_written_past_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    monkeypatch.chdir(tmp_path)

    def make() -> Crew:
        crew = crews.sequential()
        crew.tasks[1].output_file = "letter.txt"
        crew.tasks[2].output_file = "check.txt"
        return crew

    kind = crews.Kind(make, crews.kickoff, "desk", 4)
    run, _ = runs.recorded(kind)
    for name in ("letter.txt", "check.txt"):
        Path(name).unlink()
    fork = lockstep.fork(f"{run}:3", make)
    assert (fork.state, Path("letter.txt").exists(), Path("check.txt").exists()) == ("complete", False, False)
    fork = lockstep.fork(f"{run}:2", make, edits={"2": "EDITED"})
    assert Path("letter.txt").read_text() == "EDITED"
    assert Path("check.txt").read_text() == fork.result.raw
    branches.is_again(fork, kind)


# Of runs without an end.


def test_a_run_that_was_cut_off_is_forked_from_its_last_step(
    monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    kind = crews.named("sequential")
    crew = kind.make()

    def stop(output: Any) -> None:
        raise KeyboardInterrupt

    crew.tasks[1].callback = stop
    with pytest.raises(KeyboardInterrupt):
        kind.how(lockstep_crewai.wrap(crew))
    fork = lockstep.fork("crewai/desk:2", kind.make)
    assert (fork.state, fork.live, len(fork.result.tasks_output)) == ("complete", 1, 3)
    branches.is_again(fork, kind)
    fork = lockstep.fork("crewai/desk:2", kind.make, edits={"2": "EDITED"})
    assert (fork.state, fork.live, fork.result.tasks_output[1].raw) == ("complete", 1, "EDITED")


def test_a_task_that_failed_has_no_output_to_edit(provider: Provider) -> None:
    kind = crews.named("sequential")
    script = provider.script
    provider.script = lambda request: Answer(status=400) if request.number >= 4 else script(request)
    with pytest.raises(Exception, match="400"):
        kind.how(lockstep_crewai.wrap(kind.make()))
    provider.script = script
    with pytest.raises(EditError, match=r"3 has no output: .*400"):
        lockstep.fork("crewai/desk:3", kind.make, edits={"3": "EDITED"})


def test_a_branch_that_cannot_be_written_stops_the_fork(monkeypatch: pytest.MonkeyPatch, provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    plain = Journal.step

    def step(self: Journal, lane: str, name: str, *args: Any, **more: Any) -> int:
        if name == "letter":
            raise StoreError(Code.UNWRITABLE, "no room")
        return plain(self, lane, name, *args, **more)

    monkeypatch.setattr(Journal, "step", step)
    fork = lockstep.fork(f"{run}:1", kind.make)
    assert (fork.state, fork.live) == ("diverged", 1)
    assert "no room" in str(fork.divergence)
