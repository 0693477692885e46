"""Runs a guide as printed: its files are written, its commands and blocks of code run, in order.

```python file=shop.py      written
```console run              run, line by line; `# exit 1` behind one says with which status
```python run               run, all of them in one process after the commands, each as a program of its own
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs"
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Most of the time of such a block is its framework's import.
_BLOCKS = "import glob, runpy; print([runpy.run_path(each) and each for each in sorted(glob.glob('block*.py'))])"
_PATIENCE = 100  # seconds


def run(page: str, place: Path, **variables: str) -> int:
    """Runs `docs/PAGE` in a directory, with a store of its own. `variables`: of the environment, beside this one's.
    Returns how many commands there were."""
    environment = {
        **os.environ, "PATH": f"{_tools(place)}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
        "LOCKSTEP_STORE": str(place / "store.db"), "PYTHONPATH": _path(place), **variables,
    }  # fmt: skip
    ran = 0
    for number, (info, content) in enumerate(_FENCE.findall((PAGES / page).read_text())):
        for command, status in _commands(number, info.split(), content, place):
            _run(shlex.split(command), place, environment, status, content)
            ran += 1
    _run([sys.executable, "-c", _BLOCKS], place, environment, 0, "the blocks of code")
    return ran


def write(page: str, place: Path) -> None:
    """Writes the files of `docs/PAGE`, for what has to run before its commands."""
    for info, content in _FENCE.findall((PAGES / page).read_text()):
        _commands(0, [each for each in info.split() if each != "run"], content, place)


def _run(words: list[str], place: Path, environment: Mapping[str, str], status: int, about: str) -> None:
    done = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == status, f"{shlex.join(words)}\n{about}\n{done.stdout}\n{done.stderr}"


def _commands(number: int, words: list[str], content: str, place: Path) -> list[tuple[str, int]]:
    kind, option = (*words, "", "")[:2]
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
