"""A program that drives a browser, recorded with no line changed: a replay needs no browser, no driver and no site."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser_site import Site

import lockstep
import lockstep_playwright  # noqa: F401  as the program of a session in code does that taps a context
from lockstep.errors import Code

AGENTS = Path(__file__).with_name("wire_agents.py")
CLI = [sys.executable, "-c", "from lockstep.cli import main; main()"]


def _lockstep(*words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": path + os.environ["PATH"]}
    return subprocess.run([*CLI, *words], capture_output=True, text=True, check=False, env=env)


def _recorded(site: Site, chromium: str, name: str) -> str:
    done = _lockstep("record", "--run", name, "--", sys.executable, str(AGENTS), name, site.url, chromium)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["busy", "crowded"])
def test_the_same_comes_of_it_with_the_site_gone(site: Site, chromium: str, name: str) -> None:
    printed = _recorded(site, chromium, name)
    with site.gone() as canary:
        for path in ("", "/elsewhere/bin:"):  # another terminal
            replayed = _lockstep("replay", name, path=path)
            assert (replayed.returncode, replayed.stdout) == (0, printed), replayed.stderr
        assert canary.connects() == []


def test_another_action_is_named(site: Site, chromium: str, tmp_path: Path) -> None:
    _recorded(site, chromium, "crowded")
    changed = tmp_path / "changed_agents.py"
    changed.write_text("# One line more.\n" + AGENTS.read_text().replace('fill("#item"', 'fill("#thing"'))
    replayed = _lockstep("replay", "crowded", "--", sys.executable, str(changed), "crowded", site.url, chromium)
    assert replayed.returncode == 1
    assert 'fill {"selector": "#item"' in replayed.stderr
    assert 'fill {"selector": "#thing"' in replayed.stderr
    assert "changed_agents.py:" in replayed.stderr


def test_actions_are_steps(site: Site, chromium: str) -> None:
    _recorded(site, chromium, "busy")
    log = json.loads(_lockstep("log", "busy", "--json").stdout)
    names = [step["name"] for step in log["steps"]]
    assert names[:6] == [
        "", "new page", f"goto {site.url}/basket", "evaluate double(21)",
        "evaluate [Math.random(), {at: new Date()}]", 'fill "#item" = "tea"',
    ]  # fmt: skip
    shown = json.loads(_lockstep("show", "busy/context-1:4", "--json").stdout)
    assert shown["name"] == 'fill "#item" = "tea"'


def test_a_moved_line_is_no_difference(site: Site, chromium: str, tmp_path: Path) -> None:
    printed = _recorded(site, chromium, "crowded")
    moved = tmp_path / "moved_agents.py"
    moved.write_text("# One line more.\n" + AGENTS.read_text())
    replayed = _lockstep("replay", "crowded", "--", sys.executable, str(moved), "crowded", site.url, chromium)
    assert (replayed.returncode, replayed.stdout) == (0, printed), replayed.stderr


def test_a_session_in_code_does_the_same(site: Site, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    selectors = ["li"]

    def shop() -> Any:
        with sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=chromium).new_page()
            page.goto(f"{site.url}/basket")
            page.fill("#item", "tea")
            page.click("#add")
            return page.inner_text(selectors[0]), page.evaluate("Math.random()")

    with lockstep.record("shop"):
        bought = shop()
    site.kill()
    replay = lockstep.replay("shop", shop)
    assert (replay.identical, replay.result) == (True, bought), (replay.divergence, replay.report)
    selectors[0] = "#count"
    replay = lockstep.replay("shop", shop)
    assert not replay.identical
    assert replay.report.difference is not None
    assert replay.report.difference.code == Code.OUTPUT
    assert '"selector": "#count"' in str(replay.divergence)


def test_a_fork_leaves_before_or_after_the_conversation_with_the_driver(site: Site, chromium: str) -> None:
    _recorded(site, chromium, "crowded")
    within = _lockstep("fork", "crowded:3")
    assert within.returncode == 125
    assert "LS402 the program was talking with playwright there" in within.stderr
    before = _lockstep("fork", "crowded:0", "--live", "playwright")
    assert before.returncode == 0, before.stderr
    assert sum(hit["method"] == "POST" for hit in site.hits()) == 10  # five recorded, five more
