"""`lockstep bisect` of recorded commands."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest

from lockstep.testing import Provider, Request

PYTHON = sys.executable

AGENT = """
import hashlib, os, sys, uuid
import lockstep

class Overcharged(Exception):
    pass

@lockstep.tool(effect="read")
def look(number, known):
    with open(os.environ["MADE"], "a") as file:
        file.write("x")
    bad = os.environ.get("PLANTED") == str(number)
    return {"note": uuid.uuid4().hex, "owed": 4000 if bad else 450}

def settle(owed):
    if owed > 1000:
        raise Overcharged(owed)

def main(steps):
    known, owed = "", 0
    for number in range(1, steps + 1):
        found = look(number, known)
        known = hashlib.sha256((known + found["note"]).encode()).hexdigest()[:16]
        owed = max(owed, found["owed"])
        pass  # change
    print("owed", owed)
    settle(owed)

main(int(sys.argv[1]))
"""


@pytest.fixture
def bisect(lockstep, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`lockstep bisect` with the surroundings of the agent."""
    (tmp_path / "agent.py").write_text(AGENT)

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return lockstep("bisect", *words, env={"MADE": str(tmp_path / "made"), **env})

    return run


@pytest.fixture
def record(lockstep, tmp_path: Path, bisect) -> Callable[..., None]:
    """Records the agent, with a bad answer or none."""

    def run(steps: int, planted: int = 0, name: str = "refund", program: str = "agent.py") -> None:
        env = {"MADE": str(tmp_path / "made"), "PLANTED": str(planted)}
        lockstep("record", "--run", name, "--", PYTHON, program, str(steps), env=env)
        (tmp_path / "made").unlink()

    return run


def made(tmp_path: Path) -> int:
    """How many calls have really happened since the recording."""
    return (tmp_path / "made").stat().st_size if (tmp_path / "made").exists() else 0


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_answer_that_made_a_run_bad_is_named_with_what_to_do_next(bisect, record, lockstep, tmp_path: Path) -> None:
    record(16, 12)
    done = bisect("refund")
    assert (done.returncode, done.stdout) == (0, "")
    said = done.stderr
    assert "would call live: tool look ×16" in said
    assert "✗ culprit  refund:12.1  tool look" in said
    assert "kept, the run is bad (2 of 2 probes); left out, it is good (2 of 2)" in said
    assert re.search(r"its answer +owed 4000 +where a live call says +450", said)
    assert re.search(r"4 probes, \d+ live calls", said)
    assert int(re.search(r"(\d+) live calls", said)[1]) == made(tmp_path)  # type: ignore[index]
    commands = re.findall(r"lockstep ((?:show|fork) .*)", said)
    assert commands[-1] == "fork refund:12 --set 12.1:owed=450"
    for command in commands[:-1]:
        assert lockstep(*command.split()).returncode == 0


TALKING = """
import json, sys
import httpx

class Overcharged(Exception):
    pass

def main(url, steps):
    note, owed = "", 0
    with httpx.Client() as client:
        for number in range(steps):
            asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{number} {note}"}]}
            said = client.post(url, json=asked).json()["choices"][0]["message"]["content"]
            told = json.loads(said)
            note, owed = told["note"], max(owed, told["owed"])
    if owed > 1000:
        raise Overcharged(owed)

main(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.parametrize("planted", [1, 6, 12])
def test_a_models_answer_that_made_a_run_bad_is_named(bisect, lockstep, tmp_path: Path, planted: int) -> None:
    state = {"calls": 0, "planted": planted}

    def answer(request: Request) -> str:
        state["calls"] += 1
        owed = 4000 if state["calls"] == state["planted"] else 450
        return json.dumps({"note": uuid.uuid4().hex, "owed": owed})

    (tmp_path / "talking.py").write_text(TALKING)
    with Provider(answer) as provider:
        url = f"{provider.url}/v1/chat/completions"
        lockstep("record", "--run", "refund", "--", PYTHON, "talking.py", url, "12")
        state.update(calls=0, planted=0)
        found = told(bisect("refund", "--json"))
    assert (found["verdict"], found["effect"]) == ("culprit", f"{planted}.1")
    assert found["probes"] <= ceil(log2(12)) + 1
    assert found["live_calls"] == state["calls"]
    assert [(change["path"], change["a"], change["b"]) for change in found["changes"]] == [
        ("answer.content.owed", "4000", "450")
    ]


def test_json_says_it_in_one_object(bisect, record) -> None:
    record(8, 3)
    done = bisect("refund", "--json")
    found = told(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert (found["verdict"], found["step"], found["effect"], found["confidence"]) == ("culprit", 3, "3.1", 1.0)
    assert found["probes"] == len(found["tried"]) <= ceil(log2(8)) + 1
    assert found["live_calls"] == sum(8 - int(probe["at"]) for probe in found["tried"])


def test_a_command_is_asked_about_the_run_and_its_probes(bisect, record, tmp_path: Path) -> None:
    record(8, 3)
    (tmp_path / "is_wrong.sh").write_text(
        f'echo "$LOCKSTEP_RUN" >> asked; ! {PYTHON} -m lockstep log "$LOCKSTEP_RUN" --json | grep -q \'"exit": 1\'\n'
    )
    found = told(bisect("refund", "--json", "--bad", "sh ./is_wrong.sh"))
    assert (found["verdict"], found["effect"]) == ("culprit", "3.1")
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["refund", *(probe["address"] for probe in found["tried"])]


def test_no_probe_is_made_twice(bisect, record, tmp_path: Path) -> None:
    record(8, 5)
    first = told(bisect("refund", "--json"))
    before = made(tmp_path)
    again = told(bisect("refund", "--json"))
    assert made(tmp_path) == before
    assert [probe["address"] for probe in again["tried"]] == [probe["address"] for probe in first["tried"]]
    assert (again["effect"], again["live_calls"]) == ("5.1", 0)
    assert bisect("refund", "--json", "--again").returncode == 0
    assert made(tmp_path) == 2 * before


def test_a_changed_program_is_probed_anew(bisect, record, tmp_path: Path) -> None:
    record(8, 5)
    bisect("refund")
    (tmp_path / "agent.py").write_text(AGENT.replace("pass  # change", "owed = min(owed, 900)"))
    found = told(bisect("refund", "--json"))
    assert not any(probe["found"] for probe in found["tried"])
    assert (found["verdict"], found["step"]) == ("not-reproducible", None)


def test_the_probes_that_are_kept_are_listed(bisect, record) -> None:
    record(8, 5)
    assert "no probes of refund are kept" in bisect("log", "refund").stdout
    found = told(bisect("refund", "--json"))
    listed = bisect("log", "refund")
    assert listed.returncode == 0
    rows = [line.split() for line in listed.stdout.splitlines()[1:]]
    assert [row[1] for row in rows] == [probe["address"] for probe in found["tried"]]
    kept = json.loads(bisect("log", "refund", "--json").stdout)
    assert [(row["address"], row["judged"], row["why"]) for row in kept] == [
        (probe["address"], probe["judged"], probe["why"]) for probe in found["tried"]
    ]
    bisect("refund", "--again")
    twice = [row["at"] for row in json.loads(bisect("log", "refund", "--json").stdout)]
    assert sorted(twice) == sorted(2 * [row["at"] for row in kept])


def test_a_run_that_ended_well_is_not_bad(bisect, record) -> None:
    record(8)
    done = bisect("refund")
    assert done.returncode == 1
    assert "✗ not reproducible  refund: it is not bad: exit 0" in done.stderr
    assert "lockstep bisect refund --bad CMD" in done.stderr


def test_a_fault_in_the_code_is_told_from_a_bad_answer(bisect, record, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(AGENT.replace("settle(owed)\n\nmain", "settle(9 * owed)\n\nmain"))
    record(8, program="broken.py")
    done = bisect("refund")
    assert done.returncode == 1
    assert "✗ in the code  refund" in done.stderr
    assert "it is bad even with every answer new: the cause is in the code, not in an answer" in done.stderr


def test_a_probe_that_is_killed_is_skipped(bisect, record, tmp_path: Path) -> None:
    """What is asked anew about number 2 kills the program: the first two cuts cannot be judged."""
    (tmp_path / "brittle.py").write_text(
        AGENT.replace(
            "    bad =",
            '    if number == 2 and "PLANTED" not in os.environ:\n        os.kill(os.getpid(), 9)\n    bad =',
        )
    )
    record(8, 2, program="brittle.py")
    done = bisect("refund")
    assert done.returncode == 1
    assert "? ambiguous  the culprit is at or before refund:2" in done.stderr
    assert done.stderr.count("killed by SIGKILL") == 2


def test_where_probes_are_refused_the_flag_that_lets_them_run_is_told(bisect, record, tmp_path: Path) -> None:
    paying = AGENT.replace(
        "def settle", '@lockstep.tool(effect="mutating")\ndef pay(owed, known):\n    return "paid"\n\ndef settle'
    ).replace("pass  # change", "number == 6 and pay(owed, known)")
    (tmp_path / "paying.py").write_text(paying)
    record(8, 3, program="paying.py")
    for _ in range(2):  # the second time the probes are found
        done = bisect("refund")
        assert done.returncode == 1
        assert "? ambiguous  the culprit is at or before refund:6" in done.stderr
        assert "refused: tool pay(" in done.stderr
        assert re.search(r"to let it run +--live pay$", done.stderr, re.MULTILINE)
    found = told(bisect("refund", "--json", "--live", "pay"))
    assert (found["verdict"], found["effect"]) == ("culprit", "3.1")


def test_a_run_without_answers_has_nothing_to_search(bisect, lockstep) -> None:
    lockstep("record", "--run", "refund", "--", PYTHON, "-c", "raise SystemExit(3)")
    done = bisect("refund")
    assert done.returncode == 1
    assert "✗ not recorded  refund: no answer from outside was recorded in it" in done.stderr


# Ctrl-C is ignored in what a background shell starts.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_an_interrupted_search_goes_on_where_it_was(bisect, record, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        AGENT.replace("pass  # change", "time.sleep(0.02)").replace("import hashlib", "import time, hashlib")
    )
    record(16, 3, program="slow.py")
    with subprocess.Popen(
        [PYTHON, "-c", INTERRUPTIBLE, "-m", "lockstep", "bisect", "refund"],
        cwd=tmp_path,
        env={**os.environ, "MADE": str(tmp_path / "made")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as search:
        while made(tmp_path) < 9:  # the first probe makes eight calls
            time.sleep(0.01)
        os.killpg(search.pid, signal.SIGINT)
        assert search.stderr is not None
        said = search.stderr.read()
    assert search.returncode == 130, said
    assert "the same command goes on from there" in said
    found = told(bisect("refund", "--json"))
    assert (found["verdict"], found["effect"]) == ("culprit", "3.1")
    assert found["tried"][0]["found"] and not found["tried"][-1]["found"]


def test_the_probes_of_a_command_come_from_one_start_of_its_interpreter(bisect, record, tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(AGENT.replace('file.write("x")', 'file.write(f"{os.getppid()}:{os.getpid()} ")'))
    record(8, 5, program="told.py")
    found = told(bisect("refund", "--json"))
    assert found["verdict"] == "culprit"
    calls = {tuple(call.split(":")) for call in (tmp_path / "made").read_text().split()}
    assert len({parent for parent, _ in calls}) == 1
    assert len(calls) == sum(probe["live"] > 0 for probe in found["tried"])


def test_a_command_that_is_no_python_program_by_itself_is_started_for_each_probe(
    bisect, record, lockstep, tmp_path: Path
) -> None:
    (tmp_path / "run.sh").write_text(f"echo started >> starts\n{PYTHON} agent.py 4\n")
    lockstep("record", "--run", "refund", "--", "sh", "run.sh", env={"MADE": str(tmp_path / "made"), "PLANTED": "2"})
    (tmp_path / "starts").unlink()
    found = told(bisect("refund", "--json"))
    assert (found["verdict"], found["effect"]) == ("culprit", "2.1")
    assert (tmp_path / "starts").read_text().count("started") == found["probes"]


def test_another_command_than_the_recorded_one_is_searched(bisect, record, tmp_path: Path) -> None:
    record(8, 5)
    (tmp_path / "other.py").write_text(AGENT.replace("pass  # change", "owed = min(owed, 900)"))
    found = told(bisect("refund", "--json", "--", PYTHON, "other.py", "8"))
    assert (found["verdict"], found["tried"][-1]["at"]) == ("not-reproducible", "8")


def test_where_the_program_is_not_the_recorded_one_every_probe_is_skipped(bisect, record, tmp_path: Path) -> None:
    record(4, 2)
    (tmp_path / "other.py").write_text(AGENT.replace('known, owed = "", 0', 'known, owed = "else", 0'))
    found = told(bisect("refund", "--json", "--", PYTHON, "other.py", "4"))
    assert found["verdict"] == "ambiguous"
    assert {probe["why"].partition(":")[0] for probe in found["tried"] if probe["at"] != "0"} == {
        "its served part diverged"
    }


CODED = """
import os, uuid
import lockstep

@lockstep.tool(effect="read")
def look(number, known):
    return {"note": uuid.uuid4().hex, "owed": 4000 if os.environ.get("PLANTED") == str(number) else 450}

def main():
    known, owed = "", 0
    for number in range(1, 9):
        found = look(number, known)
        known, owed = found["note"], max(owed, found["owed"])
    print("owed", owed)
    if owed > 1000:
        raise ValueError(owed)

if __name__ == "__main__":
    with lockstep.record("refund"):
        main()
"""


def test_a_run_that_was_recorded_in_code_is_searched_by_calling_its_target(lockstep, tmp_path: Path) -> None:
    (tmp_path / "coded.py").write_text(CODED)
    subprocess.run(
        [PYTHON, "coded.py"], cwd=tmp_path, env={**os.environ, "PLANTED": "6"}, capture_output=True, check=False
    )
    nobody = lockstep("bisect", "refund")
    assert (nobody.returncode, "LS401" in nobody.stderr) == (125, True)
    done = lockstep("bisect", "refund", "--target", "coded:main", "--json")
    assert (told(done)["verdict"], told(done)["effect"]) == ("culprit", "6.1"), done.stderr
    assert "owed" in done.stderr
    again = told(lockstep("bisect", "refund", "--target", "coded:main", "--json"))
    assert all(probe["found"] for probe in again["tried"])


# With a run that went right.


STEADY = AGENT.replace("uuid.uuid4().hex", "str(7 * number)")


def test_with_a_good_run_the_first_other_answer_is_told_for_free_and_the_one_that_matters_is_named(
    bisect, record, tmp_path: Path
) -> None:
    (tmp_path / "steady.py").write_text(STEADY.replace('"owed":', '"seen": uuid.uuid4().hex, "owed":'))
    record(8, 0, "good", program="steady.py")
    record(8, 6, program="steady.py")
    done = bisect("refund", "--good", "good")
    assert done.returncode == 0, done.stderr
    assert "first another answer at refund:1.1  tool look" in done.stderr
    assert "✗ culprit  refund:6.1  tool look" in done.stderr
    assert re.search(r"owed 4000 +where the good run says +450", done.stderr)
    assert made(tmp_path) == 0  # the two records have all the answers


def test_of_two_runs_with_the_same_answers_none_is_to_blame(bisect, record, tmp_path: Path) -> None:
    (tmp_path / "steady.py").write_text(STEADY)
    record(4, 0, "good", program="steady.py")
    (tmp_path / "steady.py").write_text(STEADY.replace("pass  # change", "owed = 5000"))
    record(4, program="steady.py")
    done = bisect("refund", "--good", "good")
    assert done.returncode == 1
    assert "✗ not recorded  refund: no answer in it differs from one of good" in done.stderr


# Wrong use.


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nowhere"], 2, "LS205"),
        (["refund:2"], 125, "LS402 bisect takes a run, and refund:2 is a step of one"),
        (["refund", "--bad", "./nowhere.sh"], 125, "LS406"),
        (["refund", "--bad", "kill -9 $$"], 125, "LS406"),
        (["refund", "--bad", "exit 125"], 125, "LS406 nobody can say whether refund is bad"),
        (["refund", "--good", "nowhere"], 2, "LS205"),
        (["refund", "--tail", "sometimes"], 2, "sometimes"),
        (["refund", "--", "./no-such-agent"], 125, "LS401"),
    ],
)
def test_wrong_use_is_told(bisect, record, words: list[str], status: int, said: str) -> None:
    record(4, 2)
    done = bisect(*words)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_where_no_probe_could_finish_none_is_made(bisect, record, tmp_path: Path) -> None:
    (tmp_path / "posting.py").write_text(
        AGENT.replace("    settle(owed)", '    import subprocess\n    subprocess.run(["true"])\n    settle(owed)')
    )
    record(4, 2, program="posting.py")
    done = bisect("refund")
    assert done.returncode == 2
    assert "LS301 no probe could finish: each would have to run process true for real" in done.stderr
    assert "--live true" in done.stderr
    assert made(tmp_path) == 0
    found = told(bisect("refund", "--json", "--live", "true"))
    assert (found["verdict"], found["effect"]) == ("culprit", "2.1")
