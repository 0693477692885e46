"""The example for AG2 runs as its first lines say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.testing import Provider

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.timeout(300)
def test_the_example_runs_and_its_run_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLES / "ag2_support_agent.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    from ag2_support_agent import answer

    def run(*words: str, **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    with Provider(answer) as provider:
        said = run("ag2_support_agent.py", "--ticket", "4711", **provider.environ)
    assert said == "I have refunded 40.00.\n"
    nobody = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    run("-m", "lockstep", "replay", "ag2/support", "--target", "ag2_support_agent:make_agent", **nobody)
