"""Plain Python's conformance, by the command, and the table in the README, which is made of it."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.conformance import CAPABILITIES, Report, outside, plain_command, run, run_adapter
from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import gives
from lockstep.conformance.world import World, heard

ROOT = Path(__file__).parents[2]
TABLE = runpy.run_path(str(ROOT / "docs" / "table.py"))


def _conformance(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lockstep", "conformance", *words], capture_output=True, text=True, check=False
    )


# All of it is made at the first test that asks: half a minute on a quiet machine.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def report() -> Report:
    return run_adapter("python")


def test_plain_python_passes_all_of_it_sync_and_async(report: Report) -> None:
    assert report.failures == {}
    assert report.modes == ("sync", "async")
    assert report.passed


def test_programs_under_record_pass_too() -> None:
    """What differs from agents in process; all of it is tried by the command in the guide."""
    tried = ["records_steps", "changed_call_diverges", "output_diverges", "refused_side_effects"]
    report = run(plain_command.subject, reference="lockstep.conformance.plain_command:subject", only=tried)
    assert report.failures == {}
    assert report.passed


def test_the_kept_report_is_what_plain_python_does(report: Report) -> None:
    kept: Report = TABLE["kept"]()["python"]
    assert (kept.capabilities, kept.modes) == (report.capabilities, report.modes), report.failures
    assert [*report.capabilities] == [*CAPABILITIES]


def test_the_table_in_the_readme_is_made_of_the_kept_reports() -> None:
    text = (ROOT / "README.md").read_text()
    assert TABLE["page"](text, TABLE["kept"]()) == text, "run `make docs`"


def test_every_capability_is_explained_in_the_guide() -> None:
    guide = (ROOT / "docs" / "adapters.md").read_text()
    from lockstep.conformance import capabilities

    for capability in CAPABILITIES:
        assert f"| `{capability}` | {capabilities.told(capability)} |" in guide


def test_the_command_answers_programs_with_the_capabilities() -> None:
    done = _conformance("python", "--only", "records_steps", "--only", "output_diverges", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["capabilities"] == {"records_steps": "passed", "output_diverges": "passed"}


def test_the_command_prints_what_failed_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "from lockstep.conformance.plain import SYNC, Plain\n"
        "class Mine(Plain):\n    modes = (SYNC,)\nsubject = Mine()\n"
    )
    monkeypatch.chdir(tmp_path)
    done = _conformance("mine:subject", "--only", "sync_and_async", "--only", "output_diverges")
    assert done.returncode == 1, done.stderr
    assert "✗ sync_and_async  failed" in done.stdout
    assert "✓ output_diverges" in done.stdout
    assert "there are only modes ['sync']" in done.stdout
    assert "✗ 1 of 2 passed" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["langchian"], "LS408 there is no adapter langchian"),
        (["nowhere:subject"], "LS407 the conformance subject nowhere:subject cannot be loaded"),
        (["json:dumps"], "LS407 json:dumps is no conformance subject"),
        (["python", "--only", "flying"], "there is no capability flying. Known are records_steps"),
    ],
)
def test_what_there_is_nothing_to_try_of_is_wrong_usage(words: list[str], told: str) -> None:
    done = _conformance(*words)
    assert done.returncode == 2
    assert told in done.stderr


# What the tests stand on: the world.


def test_the_world_counts_tool_calls_past_every_tap() -> None:
    scenario = Scenario("one", says=(Says(),), tools=(Tool("look", fails=1), Tool("open", gives="object")))
    with World() as world:
        world.begin(scenario)
        with pytest.raises(outside.ToolFailed, match="look is not to be had"):
            outside.use(world.url, "look", "at it")
        found = outside.use(world.url, "look", "at it")
        opened = outside.use(world.url, "open", "it")
    assert [(seen.name, seen.argument) for seen in world.seen] == [("look", "at it"), ("look", "at it"), ("open", "it")]
    assert found == f"found {world.seen[1].answer} for at it"
    assert isinstance(opened, outside.Opaque) and world.seen[2].answer in str(opened)


def test_answers_are_new_in_each_act_unless_acts_are_to_be_compared() -> None:
    scenario = Scenario("one", says=(Says((Call("look", "at it"),)),), tools=(Tool("look"),))

    def answers(world: World, *, same: bool) -> str:
        world.begin(scenario, same=same)
        return str(outside.use(world.url, "look", "at it"))

    with World() as world:
        assert answers(world, same=True) == answers(world, same=True)
        assert answers(world, same=False) != answers(world, same=False)


def test_an_answer_that_is_repeated_is_not_given() -> None:
    assert gives('{"content": "found w1-amber"}', "w1-amber")
    assert not gives('{"content": "I heard ~w1-amber"}', "w1-amber")
    assert gives("~w1-amber and w1-amber", "w1-amber")
    assert heard("I heard ~w1-amber ~w2-basil and say m3-cedar") == ("w1-amber", "w2-basil")
