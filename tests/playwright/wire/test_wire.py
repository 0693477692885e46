"""A program that drives a browser, recorded with no line changed: a replay needs no browser, no driver and no site."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser_site import Site

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
    """In a process that has no more in it than this: a session names what else is open in its process."""
    told = [sys.executable, str(AGENTS.with_name("wire_session.py")), site.url, chromium]
    with subprocess.Popen(told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        bought = json.loads(agent.stdout.readline())
        site.kill()
        agent.stdin.write("the site is gone\n")
        agent.stdin.close()
        same, changed = (json.loads(line) for line in agent.stdout)
    assert same == {"identical": True, "result": bought, "divergence": None, "uncovered": []}
    assert not changed["identical"]
    assert changed["divergence"].startswith("✗ diverged") and Code.OUTPUT in changed["divergence"]
    assert '"selector": "#count"' in changed["divergence"]


def test_a_fork_leaves_before_or_after_the_conversation_with_the_driver(site: Site, chromium: str) -> None:
    _recorded(site, chromium, "crowded")
    within = _lockstep("fork", "crowded:3")
    assert within.returncode == 125
    assert "LS402 the program was talking with playwright there" in within.stderr
    before = _lockstep("fork", "crowded:0", "--live", "playwright")
    assert before.returncode == 0, before.stderr
    assert sum(hit["method"] == "POST" for hit in site.hits()) == 10  # five recorded, five more
