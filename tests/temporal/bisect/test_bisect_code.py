"""`git bisect run lockstep replay HISTORY --target …` finds the commit whose code is another workflow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import measuring

WORKFLOW = """
from datetime import timedelta
from temporalio import activity, workflow

@activity.defn
async def measure(number: int) -> int:
    return number

@workflow.defn
class Measuring:
    @workflow.run
    async def run(self, count: int) -> int:
        total = 0
        for number in range(1, count + 1):
            total += await workflow.execute_activity(measure, number, start_to_close_timeout=timedelta(seconds=SECONDS))
        return total
"""
COMMITS = 5
CHANGED = 4  # the commit after which measuring may take longer


def test_git_bisect_finds_the_commit_that_changed_what_a_history_of_production_asks_for(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "histories").mkdir(parents=True)
    (repository / "histories" / "measuring.json").write_text(measuring.history(3))

    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *words]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    git("init", "-q", "-b", "main")
    for number in range(1, COMMITS + 1):
        code = WORKFLOW.replace("SECONDS", "30" if number >= CHANGED else "20")
        (repository / "app.py").write_text(f"# {number}\n{code}")
        git("add", "-A")
        git("commit", "-q", "-m", f"commit {number}")
    git("bisect", "start", "HEAD", f"HEAD~{COMMITS - 1}")
    replay = [sys.executable, "-m", "lockstep", "replay", "histories/measuring.json", "--target", "app"]
    said = git("bisect", "run", *replay)
    named = re.search(r"([0-9a-f]{40}) is the first bad commit", said)
    assert named is not None and git("log", "-1", "--format=%s", named[1]).strip() == f"commit {CHANGED}", said
