"""What users of CrewAI asked for or tripped over, by the issue or pull request of crewAIInc/crewAI, and what is done
here instead."""

from __future__ import annotations

import gc
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crew_events
import crew_runs
import crew_script
import crews
import pytest
from crewai import Crew, Task
from crewai.hooks import after_llm_call, before_tool_call, clear_all_global_hooks
from crewai.tools import tool

import lockstep
import lockstep_crewai
from lockstep.errors import LockstepError, TargetError
from lockstep.testing import Provider

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}")
_HERE = Path(__file__).parents[1]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What Lockstep's logger says."""
    caplog.set_level(logging.WARNING, "lockstep")
    return caplog


# Forks and addresses.


def test_1776_a_fork_reuses_all_that_came_before_and_says_what_is_live(
    provider: Provider, command: crew_runs.Command
) -> None:
    run, _ = crew_runs.recorded(crews.named("sequential"))
    crews.ran.clear()
    said = command("fork", f"{run}:2", "--target", "crews:sequential")
    assert (provider.requests, crews.ran) == (5, [])  # the check alone is made again
    assert "served 0–2 · live from 3.1" in said
    fork = lockstep.fork(f"{run}:2", crews.sequential)
    assert (provider.requests, crews.ran) == (6, [])
    assert [each.raw for each in fork.result.tasks_output][2] == "approved (6)"


def test_3999_steps_have_names_that_are_the_same_in_every_run(provider: Provider) -> None:
    kind = crews.named("sequential")
    named = []
    for run in ("crewai/one", "crewai/two"):
        kind.how(lockstep_crewai.wrap(kind.make(), run=run))
        found = crew_runs.steps(run)
        named.append([step.name for step in found])
        lanes = str([[effect.lane for effect in step.effects] for step in found])
        assert not _UUID.search(lanes + str(named))
    assert named[0] == named[1]
    assert [name for name in named[0] if name in ("research", "letter", "check")] == ["research", "letter", "check"]
    once = lockstep.fork("crewai/one:1", crews.sequential)
    again = lockstep.fork(f"{once.address}:2", crews.sequential)
    assert again.state == "complete"


@pytest.mark.parametrize("name", ["paying-for_each", "paying-for_each_async"])
def test_6650_6704_all_inputs_are_in_one_run_each_in_a_lane_of_its_own(name: str, provider: Provider) -> None:
    run, results = crew_runs.recorded(crews.named(name))
    paid = [effect for _, effect in crew_runs.calls(run, "tool") if effect.name == "issue_refund"]
    lanes = sorted(effect.lane for effect in paid)
    assert [re.search(r"input-\d", lane)[0] for lane in lanes] == ["input-1", "input-2", "input-3"]  # type: ignore[index]
    for n, result in enumerate(results, 1):
        asked = [effect for _, effect in crew_runs.calls(run, "model") if f"input-{n}" in effect.lane]
        said = crew_runs.timeline(run, lambda timeline, asked=asked: [timeline.outcome(each) for each in asked])
        assert str(result) in str(said)


def _other_order() -> Crew:
    crew = crews.sequential()
    crew.tasks[1].name = "poem"
    crew.tasks[1].description = "Do the poem of {order}."
    return crew


def test_7154_a_changed_crew_is_refused_with_the_first_task_that_differs(provider: Provider) -> None:
    run, _ = crew_runs.recorded(crews.named("sequential"))
    before = provider.requests
    with pytest.raises(TargetError, match=r"task 2 is poem .*, and was letter"):
        lockstep.replay(run, _other_order)
    with pytest.raises(TargetError, match=r"task 2 is poem .*, and was letter.* only tasks that begin after its cut"):
        lockstep.fork(f"{run}:2", _other_order)
    with pytest.raises(TargetError, match=r"task 2 is poem .*, and was letter"):
        lockstep.bisect(run, _other_order, bad=lambda run: True)
    assert provider.requests == before


def test_7154_tasks_past_the_cut_of_a_fork_may_be_others(
    provider: Provider, command: crew_runs.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, result = crew_runs.recorded(crews.named("sequential"))
    before = provider.requests
    fork = lockstep.fork(f"{run}:1", _other_order)
    assert (fork.state, fork.live, provider.requests - before) == ("complete", 2, 2)
    assert fork.result.tasks_output[0].raw == result.tasks_output[0].raw
    assert fork.report.changed == ("task 2 is poem (of writer), and was letter (of writer)",)
    assert [step.name for step in crew_runs.steps(fork.address)] == ["input", "research", "poem", "check"]
    monkeypatch.setattr(crews, "longer", _longer, raising=False)
    said = command("fork", f"{run}:2", "--target", "crews:longer")
    assert "changed: task 3, check (of checker), is told something else" in said
    assert "changed: task 4, poem (of writer), was not there" in said
    longer = "crewai/desk@fork-2"
    assert [step.name for step in crew_runs.steps(longer)] == ["input", "research", "letter", "check", "poem"]

    # The branch is of the crew that it was made with.
    crew_runs.silence(provider, monkeypatch)
    assert lockstep.replay(fork.address, _other_order).identical
    assert lockstep.replay(longer, _longer).identical
    with pytest.raises(TargetError, match=r"task 2 is letter .*, and was poem"):
        lockstep.replay(fork.address, crews.sequential)


def _longer() -> Crew:
    crew = crews.sequential()
    crew.tasks[2].expected_output = "a word"
    crew.tasks.append(crews.task("poem", crew.agents[1]))
    return crew


# People.


def _asking() -> Crew:
    friend = crews.agent("friend")
    return Crew(name="people", agents=[friend], tasks=[crews.task("letter", friend, human_input=True)])


def test_1774_what_people_answered_is_served_and_nobody_is_asked_again(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["be kinder", ""])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    run, result = crew_runs.recorded(crews.Kind(_asking, crews.kickoff, "people", 2))
    assert result.raw.startswith("a kinder text")
    assert len(crew_runs.calls(run, "human")) == 2

    def asked(*_: Any) -> str:
        raise AssertionError("nobody is to be asked")

    monkeypatch.setattr("builtins.input", asked)
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay(run, _asking), result)


# What cannot be stored.


class Opaque:
    """Something that is no data."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __str__(self) -> str:
        return "it is open"


@tool("look_up")
def opening(order: int) -> Any:
    """Looks an order up."""
    crews.ran.append("look_up")
    return Opaque()


def _functions() -> Crew:
    """Functions, guardrails, lambdas and classes, none of which CrewAI's checkpoints can hold."""
    judge = crews.agent("judge")
    researcher = crews.agent("researcher", tools=[opening], step_callback=lambda *_: None)
    tasks = [
        crews.task("verdict", judge, output_pydantic=crews.Verdict),
        crews.task("research", researcher, guardrail=lambda output: (True, output.raw), callback=lambda *_: None),
    ]
    return Crew(name="functions", agents=[judge, researcher], tasks=tasks, task_callback=lambda *_: None)


def test_5620_5544_7398_7410_nothing_live_is_stored_and_what_is_no_data_is_named(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture
) -> None:
    run, result = crew_runs.recorded(crews.Kind(_functions, crews.kickoff, "functions", 3))
    assert isinstance(result.tasks_output[0].pydantic, crews.Verdict)
    assert result.raw.startswith("order 7 cost")
    crew_runs.silence(provider, monkeypatch)
    replay = lockstep.replay(run, _functions)
    assert crews.ran == []
    # Only what the tool returned is no data: the recording says so with its place, and the replay stops there.
    why = "a _thread.lock can't be stored, at $.lock"
    assert [record.getMessage() for record in told.records if record.name == "lockstep"] == [
        f"lockstep could not record: result of tool look_up: StoreError: LS207 {why}"
    ]
    assert f"LS110 this answer could not be recorded: StoreError: LS207 {why}" in replay.divergence
    assert len(crew_runs.steps(run)) == 3


# Effects that were made before.


def _paying_twice() -> Crew:
    """A guardrail that fails once has the agent pay again."""
    clerk = crews.agent("clerk", tools=[crews.LookUp(), crews.issue_refund])
    told: list[str] = []

    def once(output: Any) -> Any:
        told.append(output.raw)
        return (True, output.raw) if len(told) > 1 else (False, "say it again")

    guarded = crews.task("refund", clerk, guardrail=lambda output: once(output))
    return Crew(name="twice", agents=[clerk], tasks=[guarded])


def test_5802_a_tool_that_a_retry_calls_again_is_counted_and_never_called_twice_in_silence(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, command: crew_runs.Command, caplog: pytest.LogCaptureFixture
) -> None:
    run, result = crew_runs.recorded(crews.Kind(_paying_twice, crews.kickoff, "twice", 6))
    assert crews.ran.count("issue_refund") == 2
    paid = [address for address, effect in crew_runs.calls(run, "tool") if effect.name == "issue_refund"]
    assert len(paid) == 2
    log = command("log", run)
    assert log.count("issue_refund") >= 2

    crews.ran.clear()
    before = provider.requests
    fork = lockstep.fork(f"{run}:0", _paying_twice)  # its models are asked again, and no tool runs that may pay
    assert (fork.state, provider.requests - before, crews.ran) == ("complete", 6, [])
    assert "reused 4" in command("log", fork.address)
    assert "once more" not in caplog.text
    allowed = lockstep.fork(f"{run}:0", _paying_twice, live=["issue_refund"])
    assert (allowed.state, crews.ran) == ("complete", ["issue_refund", "issue_refund"])
    assert "tool issue_refund runs for real once more with the same request: 2 times in this fork" in caplog.text
    crews.ran.clear()
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay(run, _paying_twice), result)
    assert crews.ran == []


def _cached() -> Crew:
    crew = crews.twins()
    crew.cache = True
    return crew


def test_6509_equal_calls_are_served_one_by_one_and_never_made_one(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, result = crew_runs.recorded(crews.named("twins"))
    looked = [effect for _, effect in crew_runs.calls(run, "tool")]
    outcomes = crew_runs.timeline(run, lambda timeline: [str(timeline.outcome(each)) for each in looked])
    assert sorted(outcome[-6:] for outcome in outcomes) == ["look 1", "look 2"]
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay(run, crews.twins), result)


# Hooks and listeners.


@pytest.fixture
def own_hooks() -> Any:
    """Hooks of the user's own: one looks on, one forbids a tool."""
    heard: list[str] = []

    @after_llm_call
    def looks_on(context: Any) -> None:
        heard.append("llm")

    @before_tool_call
    def forbids(context: Any) -> bool | None:
        return False if context.tool_name == "issue_refund" else None

    yield heard
    clear_all_global_hooks()


def test_6529_5697_users_hooks_work_the_same_recorded_and_not(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, own_hooks: list[str]
) -> None:
    provider.script = crew_script.settled
    monkeypatch.setattr(crews, "numbered", False)
    kind = crews.named("paying")
    plain = crews.alike(kind.how(kind.make()))
    ran, heard = list(crews.ran), list(own_hooks)
    crews.ran.clear()
    own_hooks.clear()
    run, result = crew_runs.recorded(kind)
    assert crews.alike(result) == plain
    assert crews.ran == ran == ["look_up"]
    assert own_hooks == heard != []
    crew_runs.silence(provider, monkeypatch)
    own_hooks.clear()
    crew_runs.is_again(lockstep.replay(run, kind.make), result)
    assert own_hooks == heard


def _fault(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a fault of ours")


def test_6859_6298_a_fault_of_ours_is_told_while_recording_and_stops_a_replay(
    provider: Provider, told: pytest.LogCaptureFixture
) -> None:
    kind = crews.named("sequential")
    run, _ = crew_runs.recorded(kind)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("lockstep_crewai.layout.body_of", _fault)
        _, result = crew_runs.recorded(kind)
        assert result.raw.startswith("approved")
        assert "a fault of ours" in told.text
        before, ran = provider.requests, list(crews.ran)
        try:
            identical = lockstep.replay(run, kind.make).identical
        except (LockstepError, ZeroDivisionError):
            identical = False
        assert not identical
        assert (provider.requests, crews.ran) == (before, ran)


_WATCH = """
import os, sys

def told(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        with open(os.environ["WATCHED"], "a") as file:
            print(event, arguments[1] if event == "socket.connect" else arguments[0], file=file)

sys.addaudithook(told)
"""


def test_3907_3315_4525_2536_1532_3789_commands_send_nothing_ask_nothing_and_leave_the_home_alone(
    provider: Provider, tmp_path: Path
) -> None:
    run, _ = crew_runs.recorded(crews.named("sequential"))
    home, watch = tmp_path / "home", tmp_path / "watch"
    home.mkdir()
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(_WATCH)
    (watch / "connections").write_text("")
    path = os.pathsep.join(filter(None, [str(watch), str(_HERE), os.environ.get("PYTHONPATH")]))
    own = {"HOME": str(home), "PYTHONPATH": path, "WATCHED": str(watch / "connections")}
    switches = ("CREWAI_", "OTEL_", "XDG_")
    usual = {name: value for name, value in os.environ.items() if not name.startswith(switches)}
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "replay", run, "--target", "crews:sequential"], env={**usual, **own},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "identical" in done.stderr, done.stderr
    assert done.returncode == 0
    assert (watch / "connections").read_text() == ""
    assert [each for each in home.rglob("*") if each.is_file()] == []  # CrewAI makes folders there, empty ones


# Tokens.


def _sharing() -> Crew:
    """Two agents with one model, whose tokens CrewAI counts twice."""
    llm = crews.model()
    researcher, checker = crews.agent("researcher", tools=[crews.LookUp()], llm=llm), crews.agent("checker", llm=llm)
    tasks = [crews.task("research", researcher), crews.task("check", checker)]
    return Crew(name="sharing", agents=[researcher, checker], tasks=tasks)


def test_7259_tokens_are_counted_once_however_many_agents_share_a_model(provider: Provider) -> None:
    run, result = crew_runs.recorded(crews.Kind(_sharing, crews.kickoff, "sharing", 3))
    asked = [effect for _, effect in crew_runs.calls(run, "model")]
    used = crew_runs.timeline(run, lambda timeline: [timeline.outcome(each)["usage"] for each in asked])
    assert len(used) == provider.requests == 3
    assert result.token_usage.successful_requests == 6  # CrewAI's own number
    assert sum(each["total_tokens"] for each in used) * 2 == result.token_usage.total_tokens


# Threads.


class _Late(Task):
    """Its agent is set to work after that of another one that began with it."""

    def prompt(self) -> str:
        time.sleep(0.1)
        return super().prompt()


def _same_agent(late: str) -> Callable[[], Crew]:
    """Two tasks at once for one agent, which CrewAI cannot do: the late one is refused."""

    def make() -> Crew:
        scout, writer = crews.agent("scout", tools=[crews.slowly]), crews.agent("writer")
        both = [
            (_Late if name == late else Task)(
                name=name, description=f"Do the {name}.", expected_output="a line", agent=scout, async_execution=True
            )
            for name in ("north", "south")
        ]
        return Crew(name="crash", agents=[scout, writer], tasks=[*both, crews.task("letter", writer, context=both)])

    return make


@pytest.mark.parametrize(("late", "other"), [("north", "south"), ("south", "north")])
def test_7332_tasks_that_crash_each_other_are_both_on_record_and_the_same_one_crashes_again(
    late: str, other: str, provider: Provider, command: crew_runs.Command
) -> None:
    provider.jitter = (0.25, 0.25)
    crew = lockstep_crewai.wrap(_same_agent(late)())
    with pytest.raises(RuntimeError, match="already running"):
        crew.kickoff(inputs=crews.INPUTS)
    log = command("log", "crewai/crash")
    assert log.splitlines()[0].endswith("failed")
    (marked,) = [line for line in log.splitlines() if "●" in line and "already running" in line]
    assert f"● {late}" in marked
    # The other one may still be at it when the kickoff has failed, and is recorded till its end.
    until = time.monotonic() + 20
    while all(step.name != other for step in crew_runs.steps("crewai/crash")) and time.monotonic() < until:
        time.sleep(0.02)
    asked = {effect.lane.split("/")[1] for step in crew_runs.steps("crewai/crash") for effect in step.effects}
    assert asked == {other}

    # Whichever comes first now: the recorded one is refused.
    for make in (_same_agent(late), _same_agent(other)):
        again = lockstep.replay("crewai/crash", make)
        assert again.identical, again.divergence
        assert "already running" in str(again.error)


def test_7332_a_crash_that_nothing_is_known_of_is_never_taken_for_the_recorded_one(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.jitter = (0.25, 0.25)
    crew = lockstep_crewai.wrap(_same_agent("south")())
    # As a recording has it that knew nothing of this.
    monkeypatch.setattr("lockstep_crewai.recording.Recording.busy", lambda *_: None)
    with pytest.raises(RuntimeError, match="already running"):
        crew.kickoff(inputs=crews.INPUTS)
    again = lockstep.replay("crewai/crash", _same_agent("north"))
    assert not again.identical
    assert again.divergence is not None


def test_3982_5376_pieces_of_crews_that_stream_at_once_are_kept_apart(
    provider: Provider, heard: crew_events.Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.jitter = (0.0, 0.02)
    kind = crews.named("streaming")
    results: dict[str, Any] = {}

    def run(name: str) -> None:
        results[name] = kind.how(lockstep_crewai.wrap(kind.make(), run=f"crewai/{name}"))

    both = [threading.Thread(target=run, args=(name,)) for name in ("left", "right")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    events = {event.type for event in heard.events("tool_usage_finished")}
    assert events == {"tool_usage_finished"}
    heard.taken()
    crew_runs.silence(provider, monkeypatch)
    for name, result in results.items():
        crew_runs.is_again(lockstep.replay(f"crewai/{name}", kind.make), result)
        told, pieces = heard.taken()
        assert told["tool_usage_finished"] == 1
        assert "".join(piece for role, piece in pieces if role == "checker") == result.raw
        said = [
            crew_runs.timeline(f"crewai/{name}", lambda timeline, each=each: [*timeline.parts(each)])
            for _, each in crew_runs.calls(f"crewai/{name}", "model")
        ]
        assert all(said)
        assert sum(map(len, said)) == len(pieces)


def _watched(callback: Any) -> Any:
    def make() -> Crew:
        crew = crews.paying()
        crew.step_callback = callback
        return crew

    return make


def test_1563_469_steps_do_not_hang_on_callbacks(provider: Provider) -> None:
    seen: list[Any] = []
    names = []
    for make in (crews.paying, _watched(seen.append)):
        run = f"crewai/{len(names)}"
        crews.kickoff(lockstep_crewai.wrap(make(), run=run))
        names.append([(step.name, [effect.name for effect in step.effects]) for step in crew_runs.steps(run)])
    assert names[0] == names[1]
    assert len(seen) < 3  # CrewAI calls it once
    before = len(seen)
    assert lockstep.replay("crewai/1", _watched(seen.append)).identical
    assert len(seen) == 2 * before


# Long processes.


def test_6056_6109_a_long_process_does_not_grow(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())

    def ours(times: int) -> int:
        for _ in range(times):
            crews.kickoff(crew)
        gc.collect()
        return sum(str(type(each).__module__).startswith("lockstep") for each in gc.get_objects())

    few = ours(4)
    many = ours(20)
    assert many - few < 60, (few, many)  # of 80 calls and 60 tasks
