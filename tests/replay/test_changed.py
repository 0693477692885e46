"""Replays of changed code end with status 1 and show the true first difference: step, lane, source line and field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.warm import command

from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline, resolve
from lockstep.testing import Answer, Provider, Request

AGENT = Path(__file__).parent / "agents" / "changing.py"
TASKS = Path(__file__).parent / "agents" / "changing_tasks.py"
MODEL = "model POST {host}/v1/chat/completions"


class First(NamedTuple):
    """The difference to be shown. `mark`: the comment at the line of the agent, "" where it has none.
    `recorded` and `now` begin so, or are whole where they are short."""

    code: str
    step: int
    lane: str
    subject: str
    path: str
    mark: str
    recorded: str
    now: str

    def at(self, host: str, draws: int) -> First:
        """With the provider's address in it, and how often the recorded agent drew."""
        found = {"{host}": host, "{draws}": str(draws), "{fewer}": str(draws - 1), "{more}": str(draws + 1)}
        parts = [found.get(part, part) if isinstance(part, str) else part for part in self]
        return First(*(part.replace("{host}", host) if isinstance(part, str) else part for part in parts))


CHANGES = {
    # Another request.
    "prompt": First("LS101", 4, "main", MODEL, "body.messages[1].content", "decision",
                    '"Refund [', '"Please, Refund ['),
    "temperature": First("LS101", 4, "main", MODEL, "body.temperature", "decision", "0.2", "0.7"),
    "query": First("LS101", 6, "main", "http GET {host}/v1/audit", "url", "audit",
                   '"http://{host}/v1/audit?ticket=4711"', '"http://{host}/v1/audit?ticket=4712"'),
    "method": First("LS101", 6, "main", "http DELETE {host}/v1/audit", "", "audit",
                    "http GET {host}/v1/audit", "http DELETE {host}/v1/audit"),
    "tool argument": First("LS101", 2, "main", "tool get_order", "arguments.order", "other tool argument",
                           "452", "453"),
    "other tool": First("LS101", 2, "main", "tool get_policy", "", "other tool", "tool get_order", "tool get_policy"),
    "state": First("LS101", 5, "main", "step triaged", "state.cents", "step", "4000", "4100"),
    "name of a step": First("LS101", 5, "main", "step triage", "", "step", "step triaged", "step triage"),
    # Another order, fewer and more calls.
    "order of calls": First("LS102", 2, "main", "tool get_policy", "", "tools", "tool get_order", "tool get_policy"),
    "first call left out": First("LS102", 2, "main", "tool get_policy", "", "tools",
                                 "tool get_order", "tool get_policy"),
    "last call left out": First("LS104", 9, "main", MODEL, "", "last", '{"method": "POST"', "(no call)"),
    "call put in": First("LS101", 3, "main", "tool get_order", "", "call put in", "tool get_policy", "tool get_order"),
    "call at the end": First("LS103", 10, "main", "tool get_policy", "", "call at the end", "", "tool get_policy {"),
    # Swallowed.
    "swallowed as Exception": First("LS101", 7, "main", "tool refund", "arguments.cents", "swallowed as Exception",
                                    "4000", "4500"),
    "swallowed as BaseException": First("LS101", 7, "main", "tool refund", "arguments.cents",
                                        "swallowed as BaseException", "4000", "4500"),
    # In a thread.
    "prompt in a thread": First("LS101", 8, "main/work.1", MODEL, "body.messages[1].content", "thread",
                                '"Anything else?"', '"Anything more?"'),
    "call put in in a thread": First("LS103", 9, "main/work.1", "tool get_policy", "", "call put in in a thread",
                                     "", "tool get_policy {"),
    "thread left out": First("LS104", 8, "main/work.1", MODEL, "", "thread", '{"method": "POST"', "(no call)"),
    # Reads.
    "fewer clock reads": First("LS105", 4, "main", MODEL, "time.monotonic", "decision", "1", "0"),
    "more clock reads": First("LS105", 4, "main", "read time.monotonic", "time.monotonic", "more clock reads",
                              "1 reads in this lane", "2 reads or more"),
    "clock read at the end": First("LS105", 10, "main", "read time.monotonic", "time.monotonic",
                                   "clock read at the end", "1 reads in this lane", "2 reads or more"),
    "fewer random draws": First("LS105", 4, "main", MODEL, "random", "decision", "{draws}", "{fewer}"),
    "more random draws": First("LS105", 4, "main", MODEL, "random", "decision", "{draws}", "{more}"),
    # Output and end.
    "output": First("LS106", 9, "main", "output stdout", "", "output", "audited /v1/audit quietly",
                    "audited /v1/audit loudly"),
    "output left out": First("LS106", 9, "main", "output stdout", "", "last", "done with answer 1:", "(nothing)"),
    "output at the end": First("LS106", 10, "main", "output stdout", "", "output at the end", "", "and again"),
    "exit status": First("LS107", 10, "launch", "end exit status", "", "", "exit 0", "exit 3"),
    "exception": First("LS107", 10, "main", "end", "error", "exception",
                       "no exception", "builtins.ValueError: changed"),
}  # fmt: skip


class Recording:
    """One recording of the agent, and the provider that must not be asked again."""

    def __init__(self, provider: Provider, store: Path) -> None:
        self.provider = provider
        self.host = provider.url.removeprefix("http://")
        self._environ = {**os.environ, **provider.environ, "LOCKSTEP_STORE": str(store)}
        self.command = [sys.executable, str(AGENT)]
        done = self.start("record", "--run", "case", "--", *self.command)
        _, words = done.communicate(timeout=60)
        assert done.returncode == 0, words
        # What the agent draws itself, and what libraries do while they are imported: httpx has a command line where
        # there is what that needs.
        with open_store(store) as opened:
            timeline = resolve(opened, "case:4").timeline
            asked = timeline.reader.body(timeline.stream.id, timeline.step(4).effects[0].seq)
        self.draws: int = asked["reads"]["random"]

    def start(self, *words: str) -> subprocess.Popen[str]:
        return command.start(
            *words,
            cwd=AGENT.parent,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def replay(self, *command: str) -> tuple[str, dict[str, Any]]:
        """The words for people, and the object for programs. Both must end with status 1, having asked nobody."""
        before = self.provider.requests, self.provider.connections
        both = self.start("replay", "case", "--", *command), self.start("replay", "case", "--json", "--", *command)
        (_, words), (told, _) = (each.communicate(timeout=60) for each in both)
        assert [each.returncode for each in both] == [1, 1], words
        assert (self.provider.requests, self.provider.connections) == before
        verdict = json.loads(told)
        assert verdict["identical"] is False
        return words[words.index("✗ diverged") :], verdict["divergence"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with Provider() as provider:
        yield Recording(provider, tmp_path_factory.mktemp("changed") / "store.db")


def line_of(mark: str, text: str) -> int:
    """The number of the line that bears this mark."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith(f"# mark: {mark}"))


def test_the_unchanged_agent_is_the_recorded_run(recording: Recording) -> None:
    before = recording.provider.requests
    done = recording.start("replay", "case", "--", *recording.command)
    _, words = done.communicate(timeout=60)
    assert (done.returncode, recording.provider.requests) == (0, before), words


@pytest.mark.parametrize("change", CHANGES)
def test_the_first_difference_is_shown(change: str, recording: Recording) -> None:
    expected = CHANGES[change].at(recording.host, recording.draws)
    words, told = recording.replay(*recording.command, change)

    kind, _, name = expected.subject.partition(" ")
    assert (told["code"], told["step"], told["lane"]) == (expected.code, expected.step, expected.lane)
    assert (told["kind"], told["name"], told["path"]) == (kind, name or kind, expected.path)
    assert told["same_until"] == expected.step - 1
    source = f"{AGENT.name}:{line_of(expected.mark, AGENT.read_text())} in " if expected.mark else ""
    assert told["source"].startswith(source) and bool(told["source"]) == bool(source)
    for side, shown in ((told["expected"], expected.recorded), (told["actual"], expected.now)):
        assert side.startswith(shown) and bool(side) == bool(shown)

    first, place, subject, recorded, now = words.splitlines()[:5]
    assert first.startswith(f"✗ diverged at step {expected.step}  {expected.code} ")
    assert place.strip() == "   ".join(part for part in (f"lane {expected.lane}", told["source"]) if part)
    assert subject.strip() == "   ".join(part for part in (expected.subject, expected.path) if part)
    assert recorded.split("recorded", 1)[1].strip().startswith(expected.recorded[:40] or "(nothing)")
    assert now.split("now", 1)[1].strip().startswith(expected.now[:40])
    same = f"steps 0–{expected.step - 1} were identical"
    assert same in words


def test_another_file_is_compared_like_the_recorded_one(recording: Recording, tmp_path: Path) -> None:
    changed = AGENT.read_text().replace("up to 50.00 without asking", "up to 500.00 without asking")
    changed = changed.replace('"What is ticket 4711 about?"', '"What is ticket 4711 about?", temperature=0.3')
    file = tmp_path / "changed.py"
    file.write_text(changed)
    words, told = recording.replay(sys.executable, str(file))
    line = next(n for n, text in enumerate(changed.splitlines(), 1) if "temperature=0.3" in text)
    assert (told["step"], told["path"], told["expected"], told["actual"]) == (1, "body.temperature", "0.2", "0.3")
    assert told["source"] == f"{file}:{line} in main"
    assert f"{file}:{line} in main" in words


# Concurrent tasks, replayed in process: code, step, lane, kind, path and mark. Step 0: the one that the lane's call
# closed, since who of the three is answered first is chance.
IN_TASKS = {
    "question of a task": ("LS101", 0, "main/ask.2", "model", "body.messages[0].content", "ask"),
    "swallowed by gather": ("LS101", 0, "main/ask.2", "model", "body.messages[0].content", "ask"),
    "tasks in another order": ("LS101", 0, "main/ask.1", "model", "body.messages[0].content", "ask"),
    "one task more": ("LS103", 2, "main/ask.4", "strand", "", "tasks"),
    "one task fewer": ("LS104", 0, "main/ask.3", "model", "", "ask"),
    "cancelled no more": ("LS102", 5, "main/lasting.1", "model", "", "lasting"),
    "cancelled now": ("LS102", 6, "main/prompt.1", "model", "", "prompt"),
    "stream read on": ("LS108", 7, "main", "model", "", "chunks"),
    "stream read less": ("LS102", 7, "main", "model", "", "closed"),
}


COLD = 5  # recordings in which it is a race who asks first


def slow_where_asked(request: Request) -> Answer:
    """What is to be cancelled is never answered."""
    delay = 60.0 if request.prompt == "slow: think hard" else 0.0
    return Answer("one two three four five six", delay=delay, gap=0.002 if "more" in request.prompt else 0.0)


def step_of(store: Path, run: str, lane: str) -> int:
    """The step that the call of this lane closed."""
    with open_store(str(store)) as opened:
        return next(step.number for step in Timeline(opened.run(run)).steps if step.lane == lane)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory, warmed: Any) -> Iterator[Callable[..., Any]]:
    """Records the tasks once; then replays them with a change."""
    store = tmp_path_factory.mktemp("tasks") / "store.db"
    with Provider(slow_where_asked) as provider:
        process = warmed(provider.environ, "3")
        recorded = process.record(store, "case", TASKS.name)
        assert (recorded.error, recorded.report.uncovered, recorded.report.faults) == ("", (), ())
        for number in range(COLD):
            process.record(store, f"cold-{number}", TASKS.name, "nothing", "cold")
        before = provider.requests, provider.connections

        def replay(change: str, run: str = "case", *more: str) -> Any:
            (done,) = process.replay(1, store, run, TASKS.name, change, *more)
            assert (provider.requests, provider.connections) == before
            return done, partial(step_of, store, run)

        yield replay


def test_the_unchanged_tasks_are_the_recorded_run(tasks: Callable[..., Any]) -> None:
    done, _ = tasks("nothing")
    assert done.report.identical


@pytest.mark.parametrize("change", IN_TASKS)
def test_the_first_difference_among_tasks_is_shown(change: str, tasks: Callable[..., Any]) -> None:
    code, step, lane, kind, path, mark = IN_TASKS[change]
    done, closed_by = tasks(change)
    unasked = step
    if not step:
        step = closed_by(lane)
        unasked = min(closed_by(f"main/ask.{number}") for number in range(int(lane[-1]), 4))
    found = done.report.difference
    assert done.report.identical is False
    assert (found.code, found.step, found.lane, found.kind, found.path) == (code, step, lane, kind, path)
    source = f"{TASKS.name}:{line_of(mark, TASKS.read_text())} in "
    assert found.source.startswith(source)
    assert found.same_until == unasked - 1
    first, place, subject, *_ = done.error.splitlines()
    assert first.startswith(f"✗ diverged at step {step}  {code} ")
    assert place.strip() == f"lane {lane}   {found.source}"
    assert subject.strip().endswith(path or found.name)


@pytest.mark.parametrize("number", range(COLD))
def test_a_task_fewer_is_seen_at_once_whoever_asked_first(number: int, tasks: Callable[..., Any]) -> None:
    done, closed_by = tasks("one task fewer", f"cold-{number}", "cold")
    found, step = done.report.difference, closed_by("main/ask.3")
    assert (found.code, found.step, found.lane, found.kind) == ("LS104", step, "main/ask.3", "model")
    # Known at once, so those that asked after it in the recording have not asked yet.
    assert found.same_until < step
