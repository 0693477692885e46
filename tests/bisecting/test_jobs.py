"""Several probes at once, and bisects that were killed and go on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import overcharging
import pytest

import lockstep as lib
from lockstep.debugger import parting, search
from lockstep.debugger.search import BAD, GOOD
from lockstep.errors import Code, TargetError

PYTHON = sys.executable

AGENT = """
import hashlib, os, sys, time, uuid
import lockstep

class Overcharged(Exception):
    pass

@lockstep.tool(effect="read")
def look(number, known):
    with open(os.environ["MADE"], "a") as file:
        file.write("x")
    time.sleep(float(os.environ.get("SLOW", "0")))
    bad = os.environ.get("PLANTED") == str(number)
    return {"note": uuid.uuid4().hex, "owed": 4000 if bad else 450}

known, owed = "", 0
for number in range(1, int(sys.argv[1]) + 1):
    found = look(number, known)
    known = hashlib.sha256((known + found["note"]).encode()).hexdigest()[:16]
    owed = max(owed, found["owed"])
if owed > 1000:
    raise Overcharged(owed)
"""


def _searched(last: int, culprit: int, jobs: int, weights: Sequence[float] = ()) -> tuple[int | None, list[int], float]:
    """What is found of a steady run, the probes in the order in which they ended, and how long it took."""
    known, course = search.whole(last), parting.falling(last, weights)
    flying: dict[int, float] = {}
    ended: list[int] = []
    clock = 0.0
    while wanted := parting.at_once(known, flying, jobs, course):
        assert len(wanted) <= jobs and len(set(wanted)) == len(wanted)
        flying = {cut: flying.get(cut, course.costs[cut]) for cut in wanted}
        first = min(flying, key=lambda cut: flying[cut])
        spent = flying.pop(first)
        clock += spent
        flying = {cut: left - spent for cut, left in flying.items()}
        ended.append(first)
        known = search.told(known, first, BAD if first >= culprit else GOOD)
    return known.found, ended, clock


@pytest.mark.parametrize("last", [2, 3, 16, 52])
def test_several_at_once_find_what_single_probes_find_in_less_time(last: int) -> None:
    alone = together = guided = 0.0
    for culprit in range(1, last + 1):
        weights = [0.5 / last + (0.5 if number == culprit else 0.0) for number in range(1, last + 1)]
        for jobs, more in ((1, ()), (4, ()), (4, weights)):
            found, _, spent = _searched(last, culprit, jobs, more)
            assert found == culprit
            alone, together = alone + spent * (jobs == 1), together + spent * (jobs == 4 and not more)
            guided += spent * bool(more)
    assert together < (0.5 if last > 8 else 1.0) * alone
    assert guided < 0.4 * alone or last < 8


@pytest.mark.parametrize("culprit", range(1, 17))
def test_one_job_searches_by_single_probes_as_ever(culprit: int) -> None:
    known, order = search.whole(16), []
    while (cut := search.following(known)) is not None:
        order.append(cut)
        known = search.told(known, cut, BAD if cut >= culprit else GOOD)
    assert _searched(16, culprit, 1)[1] == order


@pytest.fixture
def bisect(lockstep, tmp_path: Path) -> Any:
    """A run of twelve answers, the fifth of them bad, and what searches it."""
    (tmp_path / "agent.py").write_text(AGENT)
    made = {"MADE": str(tmp_path / "made")}
    done = lockstep("record", "--run", "refund", "--", PYTHON, "agent.py", "12", env={**made, "PLANTED": "5"})
    assert done.returncode == 1, done.stderr
    return lambda *words, **env: lockstep("bisect", "refund", *words, env={**made, **env})


# Ctrl-C is ignored in what a background shell starts.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def _told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_command_is_searched_by_several_jobs_and_what_they_made_is_there_for_other_bisects(bisect, lockstep) -> None:
    found = _told(bisect("--jobs", "4", "--json", SLOW="0.03"))
    assert (found["verdict"], found["effect"], found["confidence"]) == ("culprit", "5.1", 1.0)
    kept = json.loads(lockstep("bisect", "log", "refund", "--json").stdout)
    # What was ended before its end has left no branch.
    assert {probe["address"] for probe in kept} == {probe["address"] for probe in found["tried"]}
    # The same experiments, whoever asks for them, and however.
    surely = _told(bisect("--json", "--confidence", "0.9"))
    again = {probe["address"] for probe in surely["tried"] if probe["found"]}
    assert again and again == {probe["address"] for probe in surely["tried"]} & {probe["address"] for probe in kept}


def test_repeated_probes_are_made_at_once_too_and_no_number_twice(bisect) -> None:
    found = _told(bisect("--jobs", "3", "--json", "--confidence", "0.9"))
    assert (found["verdict"], found["effect"], found["ended"]) == ("culprit", "5.1", 0)
    addresses = [probe["address"] for probe in found["tried"]]
    assert len(set(addresses)) == len(addresses)
    again = _told(bisect("--jobs", "2", "--json", "--confidence", "0.9"))
    assert again["live_calls"] < found["live_calls"]


@pytest.mark.parametrize(
    ("jobs", "number", "status"), [(1, signal.SIGKILL, -9), (4, signal.SIGKILL, -9), (4, signal.SIGINT, 130)]
)
def test_one_that_is_ended_leaves_no_process_and_goes_on_as_it_was_asked(
    bisect, tmp_path: Path, jobs: int, number: int, status: int
) -> None:
    made = tmp_path / "made"
    before = made.stat().st_size
    with subprocess.Popen(
        [PYTHON, "-c", INTERRUPTIBLE, "-m", "lockstep", "bisect", "refund", "--jobs", str(jobs), "--confidence", "0.9"],
        cwd=tmp_path, env={**os.environ, "MADE": str(made), "SLOW": "0.05"}, stderr=subprocess.PIPE,
    ) as search:  # fmt: skip
        # At least one has ended, and others are under way.
        while made.stat().st_size < before + (34 if jobs > 1 else 14) and search.poll() is None:
            time.sleep(0.01)
        search.send_signal(number)
        assert search.stderr is not None
        said = search.stderr.read()
    assert search.returncode == status, said
    while _living(tmp_path):
        time.sleep(0.05)
    ended = {probe["address"] for probe in json.loads(_log(tmp_path)) if probe["judged"] != "skip"}
    assert ended
    found = _told(bisect("--resume", "--json"))
    assert (found["verdict"], found["effect"]) == ("culprit", "5.1")
    assert found["posterior"] and found["rescue"] is not None, "it was asked with a confidence"
    assert {probe["address"] for probe in found["tried"] if probe["found"]} == ended
    assert not [probe for probe in found["tried"] if probe["judged"] == "skip"]
    done = bisect("--resume")
    assert done.returncode == 2 and "LS206 no bisect of refund was interrupted" in done.stderr


def _log(directory: Path) -> str:
    words = [PYTHON, "-m", "lockstep", "bisect", "log", "refund", "--json"]
    return subprocess.run(words, cwd=directory, capture_output=True, text=True, check=True).stdout


def _living(directory: Path) -> list[str]:
    """Processes that run the agent of this directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == directory:
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return [words for words in found if "agent.py" in words or "bisect" in words]


def test_a_good_run_s_answers_are_tried_at_once_too(bisect, lockstep, tmp_path: Path) -> None:
    fine = lockstep("record", "--run", "fine", "--", PYTHON, "agent.py", "12", env={"MADE": str(tmp_path / "made")})
    assert fine.returncode == 0, fine.stderr
    one = _told(bisect("--good", "fine", "--shrink", "--json"))
    found = _told(bisect("--good", "fine", "--shrink", "--jobs", "3", "--json", "--again"))
    assert (found["effect"], found["causes"], found["minimal"]) == ("5.1", ["5.1"], True)
    assert found["shrunk"] == one["shrunk"] and found["shrunk"]


@pytest.mark.parametrize("words", [("--resume", "--bad", "x"), ("--jobs", "0")])
def test_wrong_use_is_told(bisect, words: tuple[str, ...]) -> None:
    done = bisect(*words)
    assert done.returncode == 2 and words[-2] in done.stderr


def test_in_code_other_processes_import_the_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "site_of_planted.py").write_text(
        "import overcharging\n\n\ndef target():\n    return overcharging.agent(8)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))
    monkeypatch.setattr(overcharging, "planted", 3)
    with pytest.raises(overcharging.Overcharged), lib.record("refund", store=tmp_path / "store.db"):
        overcharging.agent(8)
    monkeypatch.setattr(overcharging, "planted", 0)
    with pytest.raises(TargetError) as told:
        lib.bisect("refund", lambda: overcharging.agent(8), jobs=2)
    assert told.value.code == Code.BAD_TARGET and "at the top of a module" in told.value.message
    found = lib.bisect("refund", "site_of_planted:target", jobs=2)
    assert (found.verdict, found.effect) == ("culprit", "3.1")
