"""The guide for LangGraph: its files, code and commands run as printed, against a model on loopback."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lockstep.testing import Answer, Provider, Request, ToolCall

GUIDE = Path(__file__).parents[3] / "docs" / "langgraph.md"
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def answer(request: Request) -> Answer:
    """Looks the order up, refunds what it cost, and says so."""
    messages: list[dict[str, Any]] = request.json["messages"]
    last = max(n for n, each in enumerate(messages) if each["role"] == "user")
    told = [json.loads(each["content"]) for each in messages[last:] if each["role"] == "tool"]
    if "Refund" not in messages[last]["content"]:
        return Answer("You are welcome.")
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    if "cents" not in told[-1]:
        return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": told[-1]["total"]}),))
    return Answer(f"Refunded {told[-1]['cents']}.")


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


# All blocks of code in one process, each as a program of its own: most of their time is LangGraph's import.
_BLOCKS = "import glob, runpy; print([runpy.run_path(each) and each for each in sorted(glob.glob('block*.py'))])"


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("lockstep", "-m lockstep "), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
        (tools / name).chmod(0o755)
    ran = 0
    with Provider(answer) as provider:
        environment = {
            **os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": f"{provider.url}/v1", "COLUMNS": "100", "LOCKSTEP_STORE": str(tmp_path / "store.db"),
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
            [sys.executable, "-c", _BLOCKS], cwd=tmp_path, env={**environment, "PYTHONPATH": _path(tmp_path)},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert blocks.returncode == 0, f"{blocks.stdout}\n{blocks.stderr}"
    assert ran >= 12


def _path(place: Path) -> str:
    return os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
