"""Agents of several processes, recorded and replayed as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.testing import Provider

AGENTS = Path(__file__).parent / "agents"


class Runs:
    """Records an agent into a store of its own and replays it; `said` is what the last command said of itself."""

    def __init__(self, place: Path, provider: Provider) -> None:
        self.place = place
        self.provider = provider
        self.said = ""
        self.printed = ""

    def record(self, agent: str, *words: str) -> dict[str, Any]:
        """`agent`: one of the folder's, or a path."""
        return self._json("record", "--run", "r", "--json", "--", sys.executable, str(self.agent(agent)), *words)

    def agent(self, name: str) -> Path:
        return AGENTS / name

    def replay(self, agent: str = "", *words: str) -> dict[str, Any]:
        """With an agent: that one in place of the recorded."""
        instead = ["--", sys.executable, str(AGENTS / agent), *words] if agent else []
        return self._json("replay", "r", "--json", *instead)

    def log(self) -> list[dict[str, Any]]:
        return list(self._json("log", "r", "--json")["steps"])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        started = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, self.said = started.communicate(timeout=90)
        return subprocess.CompletedProcess(words, started.returncode, out, self.said)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """In a process group of its own."""
        options.setdefault("stdout", subprocess.DEVNULL)
        return command.start(
            *words,
            cwd=self.place,
            env={
                **os.environ,
                "LOCKSTEP_STORE": str(self.place / "store.db"),
                "OPENAI_BASE_URL": f"{self.provider.url}/v1",
                "OPENAI_API_KEY": "test",
            },
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            **options,
        )

    def _json(self, *words: str) -> dict[str, Any]:
        done = self.run(*words)
        assert done.stdout, done.stderr
        self.printed = done.stderr  # with --json a program's own output goes there
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def runs(tmp_path: Path, provider: Provider) -> Runs:
    return Runs(tmp_path, provider)
