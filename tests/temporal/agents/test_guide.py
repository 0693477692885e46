"""The guide for Temporal: its files, code and commands run as printed, on a real server and a model on loopback."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from live_server import Server

from lockstep.testing import Answer, Provider, Request, ToolCall

GUIDE = Path(__file__).parents[3] / "docs" / "temporal.md"
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def answer(request: Request) -> Answer:
    """Looks the order up, and tells what it cost."""
    items: list[dict[str, Any]] = request.json["input"]
    told = [each["output"] for each in items if each.get("type") == "function_call_output"]
    return Answer(f"It is {told[-1]}.") if told else Answer(calls=(ToolCall("get_order", {"order": 452}),))


@pytest.mark.timeout(300)
def test_the_guide_runs_as_printed(tmp_path: Path, temporal_server: Server) -> None:
    ran = 0
    with Provider(answer) as provider:
        environment = {
            **os.environ, "PATH": f"{_tools(tmp_path)}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
            "LOCKSTEP_STORE": str(tmp_path / "store.db"), "TEMPORAL_ADDRESS": temporal_server.address,
            "OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONPATH": _path(tmp_path), **provider.environ,
        }  # fmt: skip
        for number, (info, content) in enumerate(_FENCE.findall(GUIDE.read_text())):
            for command, status in _commands(number, info.split(), content, tmp_path):
                done = subprocess.run(
                    shlex.split(command), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100,
                    stdin=subprocess.DEVNULL, check=False,
                )  # fmt: skip
                assert done.returncode == status, f"{command}\n{content}\n{done.stdout}\n{done.stderr}"
                ran += 1
        blocks = subprocess.run(
            [sys.executable, "-c", _BLOCKS], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100,
            check=False,
        )  # fmt: skip
        assert blocks.returncode == 0, f"{blocks.stdout}\n{blocks.stderr}"
    assert ran >= 16


# All blocks of code in one process, each as a program of its own: most of their time is the SDK's import.
_BLOCKS = "import glob, runpy; print([runpy.run_path(each) and each for each in sorted(glob.glob('block*.py'))])"


def _commands(number: int, words: list[str], content: str, place: Path) -> list[tuple[str, int]]:
    kind, option = words[0], words[1] if len(words) > 1 else ""
    if option.startswith("file="):
        (place / option.removeprefix("file=")).write_text(content)
    elif (kind, option) == ("console", "run"):
        lines = [line.removeprefix("$ ").partition("# exit ") for line in content.splitlines()]
        return [(command, int(status or 0)) for command, _, status in lines]
    elif (kind, option) == ("python", "run"):
        (place / f"block{number:02}.py").write_text(content)
    return []


def _tools(place: Path) -> Path:
    """A `lockstep` and a `python` that are this checkout's."""
    tools = place / "bin"
    tools.mkdir()
    for name, words in (("lockstep", "-m lockstep "), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
        (tools / name).chmod(0o755)
    return tools


def _path(place: Path) -> str:
    return os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
