"""Bisects whose probes Temporal workers make, from the command line."""

import json
import shutil
import signal
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from probe_site import GRAPHS, PLANTED, PYTHON, STEPS, Site, until
from tests.warm import command

PROBES = 6  # that a search over 64 steps takes for this place


def told(done: Any) -> dict[str, Any]:
    """A verdict, without what no two bisects have alike: times."""
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    found.pop("seconds")
    for probe in found["tried"]:
        probe.pop("seconds")
    return dict(found)


def answers(found: dict[str, Any]) -> tuple[Any, ...]:
    return found["verdict"], found["effect"], [(probe["at"], probe["judged"]) for probe in found["tried"]]


def test_two_workers_give_the_serial_answer_and_each_has_made_some_of_it(site: Site) -> None:
    shutil.copytree(site.folder, alone := site.folder.parent / "alone", ignore=shutil.ignore_patterns("one", "two"))
    serial = told(site.lockstep("bisect", "refund", "--json", LOCKSTEP_STORE=str(alone / "store.db")))
    before = site.made
    found = told(site.lockstep("bisect", "refund", "--workers", site.where, "--json"))
    assert found == serial
    assert (found["verdict"], found["effect"], len(found["tried"])) == ("culprit", f"{PLANTED}.1", PROBES)
    assert site.made - before == found["live_calls"] > 0
    # Each has the recording once, with branches of its own.
    kept = [json.loads(site.lockstep("log", "refund", "--json", LOCKSTEP_STORE=str(path)).stdout)
            for name in ("one", "two") for path in (site.folder / name).rglob("store.db")]  # fmt: skip
    own = [{*one["branches"]} - {"main"} for one in kept]
    assert len(own) == 2 and own[0] and own[1] and not own[0] & own[1]
    assert {f"refund@{name}" for name in own[0] | own[1]} == {probe["address"] for probe in found["tried"]}
    # What came back is a branch like any other: whole, and its own program again.
    first = found["tried"][0]["address"]
    assert site.lockstep("verify", first).returncode == 0
    again = told(site.lockstep("bisect", "refund", "--json"))
    assert (answers(again), again["live_calls"]) == (answers(found), 0)


def test_several_probes_at_once_give_the_same_answer(site: Site) -> None:
    site.record("several")
    before = site.made
    found = told(site.lockstep("bisect", "several", "--workers", site.where, "--jobs", "2", "--json"))
    assert (found["verdict"], found["effect"]) == ("culprit", f"{PLANTED}.1")
    # Of a probe that was ended as needless, one call may be between here and there. A worker that is too busy to say
    # that it lives has its probe made by another one: what it did itself is known to nobody.
    assert site.made - before >= found["live_calls"] - found["ended"] > 0
    again = told(site.lockstep("bisect", "several", "--workers", site.where, "--jobs", "2", "--json"))
    assert (again["effect"], again["live_calls"]) == (found["effect"], 0)


def test_a_thread_of_a_framework_is_searched_by_the_target_that_a_worker_has(site: Site) -> None:
    shutil.copytree(site.folder, alone := site.folder.parent / "apart", ignore=shutil.ignore_patterns("one", "two"))
    words = ("bisect", "langgraph/t", "--target", GRAPHS, "--json")
    serial = told(site.lockstep(*words, LOCKSTEP_STORE=str(alone / "store.db")))
    before = site.made
    found = told(site.lockstep(*words, "--workers", site.where))
    assert found == serial
    assert (found["verdict"], found["task"]) == ("culprit", "n5")
    assert site.made > before
    assert site.lockstep("verify", found["tried"][0]["address"], "--times", "0").returncode == 0


def test_a_bisect_that_was_killed_goes_on_and_makes_no_probe_twice(site: Site) -> None:
    site.record("killed")
    before = site.made
    first = command.start(
        "bisect", "killed", "--workers", site.where, cwd=site.folder, env=site.env(), stdin=DEVNULL, stdout=DEVNULL,
        stderr=DEVNULL,
    )  # fmt: skip
    until(lambda: site.made - before > 40)  # amid the second probe
    first.kill()
    first.wait(30)
    found = told(site.lockstep("bisect", "killed", "--workers", site.where, "--json"))
    assert (found["verdict"], found["effect"], len(found["tried"])) == ("culprit", f"{PLANTED}.1", PROBES)
    assert site.made - before == sum(probe["asked"] for probe in found["tried"])


def test_a_worker_runs_its_own_users_program_and_nothing_that_is_sent(site: Site) -> None:
    (site.folder / "other.py").write_text("open('ran', 'w')")
    for words, why in (
        (("--", PYTHON, "other.py"), "is bisected with"),
        (("--", PYTHON, "agent.py", "7"), "is bisected with"),
        (("--target", "other:main"), "is bisected with"),
    ):
        done = site.lockstep("bisect", "refund", "--workers", site.where, "--again", "--json", *words)
        assert done.returncode == 125, done.stderr
        error = json.loads(done.stdout)["error"]
        assert (error["code"], why in error["message"]) == ("LS402", True)
    assert not (site.folder / "ran").exists()
    # The same command, of another agent: nobody could tell whose answer it were.
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "agent.py").write_text((site.folder / "agent.py").read_text() + "# changed\n")
    done = command.run(
        "bisect", "refund", "--workers", site.where, "--json", "--", *site.agent, cwd=elsewhere, env=site.env()
    )
    assert "other files" in json.loads(done.stdout)["error"]["message"]


def test_a_worker_that_dies_amid_a_probe_has_it_made_by_another(site: Site) -> None:
    queue, site.queue = site.queue, f"{site.queue}-dying"
    try:
        with site.worker("three", TAKES="0.05") as dying:
            before = site.made
            with command.start(
                "bisect", "refund", "--workers", site.where, "--again", "--json", cwd=site.folder, env=site.env(),
                stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True,
            ) as going:  # fmt: skip
                until(lambda: site.made > before)
                dying.send_signal(signal.SIGKILL)
                dying.wait(30)
                lost = site.made - before
                assert lost < STEPS // 2  # of the 32 calls of the first probe
                with site.worker("four"):
                    out, _ = going.communicate(timeout=60)
        found = json.loads(out)
        assert (found["verdict"], found["effect"], len(found["tried"])) == ("culprit", f"{PLANTED}.1", PROBES)
        assert lost <= site.made - before - found["live_calls"] <= lost + 1  # what it was at died with it
    finally:
        site.queue = queue


@pytest.mark.parametrize("where", ["127.0.0.1:1/probes", "127.0.0.1:7233/"])
def test_where_no_workers_can_be_is_said(site: Site, where: str) -> None:
    done = site.lockstep("bisect", "refund", "--workers", where, "--again", "--json")
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert (error["code"], "--workers" in error["message"]) in (("LS401", True), ("LS402", False))
