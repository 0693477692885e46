"""Playwright's client waits until its loop's queue is empty, and the system's news stand there too, in a recording."""

import subprocess
import sys
from pathlib import Path

AGENT = Path(__file__).with_name("waiting_agent.py")
CLI = [sys.executable, "-c", "from lockstep.cli import main; main()"]


def _lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CLI, *words], capture_output=True, text=True, check=False)


def test_a_replay_waits_as_many_turns_as_the_recording() -> None:
    recorded = _lockstep("record", "--run", "waits", "--", sys.executable, str(AGENT))
    assert recorded.returncode == 0, recorded.stderr
    replayed = _lockstep("replay", "waits")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
