"""Programs with crews under a session: how they are run, and what the model says to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lockstep.testing import Answer, Request, ToolCall

PROGRAMS = Path(__file__).parent / "programs"
NOWHERE = {"OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
SWITCHES = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}

PROJECT = """\
[project]
name = "desk"
version = "0.1.0"
requires-python = ">=3.12"

[tool.crewai]
type = "crew"
project_id = "00000000-0000-4000-8000-000000000000"
"""


def answer(request: Request) -> Answer:
    """A tool call where the agent has a tool that it has not used, then words that are never the same."""
    body: Any = request.json
    used = any(each["role"] == "tool" for each in body["messages"])
    if body.get("tools") and not used:
        return Answer(calls=(ToolCall("look", {"what": "tea"}),))
    return Answer(f"Thought: I now can give a great answer\nFinal Answer: answer {request.number}")


class Machine:
    """A machine with an empty home folder, on which programs run."""

    def __init__(self, place: Path) -> None:
        self.home, self.work = place / "home", place / "work"
        for folder in (self.home, self.work):
            folder.mkdir()

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the folder of the programs."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("CREWAI_", "OTEL_", "XDG_"))
        }
        return subprocess.run(
            words, cwd=self.work, env={**inherited, "HOME": str(self.home), **variables}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def lockstep(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "lockstep", *words, **variables)

    def record(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Records one of the programs, as the run of its name."""
        (self.work / f"{name}.py").write_text((PROGRAMS / f"{name}.py").read_text())
        return self.lockstep("record", "--run", name, "--", sys.executable, f"{name}.py", **variables)

    def project(self, name: str) -> dict[str, str]:
        """Makes a project of CrewAI's of one of the programs. Returns the variables with which `crewai run` finds its
        script in this environment, without a network."""
        (self.work / f"{name}.py").write_text((PROGRAMS / f"{name}.py").read_text())
        (self.work / "pyproject.toml").write_text(PROJECT)
        script = self.work / "bin" / "run_crew"
        script.parent.mkdir()
        script.write_text(f"#!{sys.executable}\nimport runpy\nrunpy.run_path('{name}.py', run_name='__main__')\n")
        script.chmod(0o755)
        path = os.pathsep.join((str(script.parent), str(Path(sys.executable).parent), os.environ["PATH"]))
        return {"PATH": path, "UV_NO_SYNC": "1", "UV_OFFLINE": "1", "UV_PROJECT_ENVIRONMENT": sys.prefix}

    def kept(self) -> dict[str, bytes]:
        """What lies in the home folder, but for SQLite's own notes."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and not path.name.endswith(("-wal", "-shm"))
        }  # fmt: skip
