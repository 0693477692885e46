"""On the command line: the target is `module:function`, and a recording that was killed is replayed up to there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browser_site import Site

PROGRAM = """
import os, signal
import lockstep_playwright

def drive(context):
    page = context.new_page()
    page.goto(os.environ["SITE"] + "/form/1")
    page.fill("#name", "joe")
    page.click("#send")
    if "KILLED" in os.environ:
        page.title()
        os.kill(os.getpid(), signal.SIGKILL)
    return page.title()

if __name__ == "__main__":
    with lockstep_playwright.launch() as context:
        print(drive(context))
"""


@pytest.fixture
def place(tmp_path: Path, site: Site, chromium: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "crawl.py").write_text(PROGRAM)
    monkeypatch.setenv("SITE", site.url)
    monkeypatch.setenv("LOCKSTEP_CHROMIUM", chromium)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lockstep", *words], capture_output=True, text=True, check=False)


def test_a_script_of_one_tap_is_replayed_and_forked_by_its_function(place: Path, site: Site):
    recorded = subprocess.run([sys.executable, "crawl.py"], capture_output=True, text=True, check=True)
    assert recorded.stdout == "form 1\n"
    forked = lockstep("fork", "playwright/crawl:2", "--target", "crawl:drive", "--json")
    assert (forked.returncode, json.loads(forked.stdout)["reused"]) == (0, 1)
    with site.gone() as canary:
        replayed = lockstep("replay", "playwright/crawl", "--target", "crawl:drive")
        assert replayed.returncode == 0, replayed.stderr
        assert "✓ identical   4 steps" in replayed.stderr
        assert canary.connects() == []
    untold = lockstep("replay", "playwright/crawl")
    assert "LS401" in untold.stderr
    assert "function of a browser context" in untold.stderr


def test_a_recording_that_was_killed_is_replayed_up_to_the_cut(place: Path, site: Site):
    killed = subprocess.run(
        [sys.executable, "crawl.py"], env={**os.environ, "KILLED": "1"}, capture_output=True, check=False
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert "interrupted" in lockstep("runs").stdout
    site.kill()
    replayed = lockstep("replay", "playwright/crawl", "--target", "crawl:drive")
    assert replayed.returncode == 0, replayed.stderr
    assert "identical up to the cut" in replayed.stderr
