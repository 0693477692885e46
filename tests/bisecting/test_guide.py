"""The guide to bisect is true where that can be tested: its example runs, and says what the guide says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec

from lockstep.debugger.verdict import Verdict

GUIDE = (Path(__file__).parents[2] / "docs" / "bisect.md").read_text()
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_worked_example_runs(tmp_path: Path, monkeypatch) -> None:
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for name, words in (("python", [sys.executable]), ("lockstep", [sys.executable, "-m", "lockstep"])):
        (scripts / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (scripts / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(scripts), prepend=":")
    said = ""
    for info, content in _FENCE.findall(GUIDE):
        kind, _, option = info.partition(" ")
        if option.startswith("file="):
            (tmp_path / option.removeprefix("file=")).write_text(content)
        elif (kind, option) == ("console", "run"):
            for line in content.splitlines():
                command, _, status = line.removeprefix("$ ").partition("# exit ")
                done = subprocess.run(
                    shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
                    stdin=subprocess.DEVNULL,
                )  # fmt: skip
                assert done.returncode == int(status or 0), f"{command}\n{done.stdout}\n{done.stderr}"
                said += done.stderr
        elif not info:
            for line in content.splitlines():
                assert line in said, f"{line}\n{said}"


def test_every_verdict_is_explained() -> None:
    kinds = re.findall(r"^\| `([a-z-]+)` \| \d", GUIDE, re.MULTILINE)
    assert kinds == ["culprit", "ambiguous", "in-the-code", "not-reproducible", "not-recorded"]
    assert {field.name for field in msgspec.structs.fields(Verdict)} >= {
        "verdict", "step", "effect", "probes", "live_calls", "confidence",
    }  # fmt: skip
