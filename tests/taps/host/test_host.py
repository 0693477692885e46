"""What a program is told of machine and process is what it was told when it was recorded."""

import getpass
import logging
import multiprocessing
import os
import platform
import signal
import socket
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.taps.host import names, pids, processors


@pytest.fixture
def recorded_elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Another machine, as far as the tap's own looks at it go; undone before a replay."""
    real = os.uname()
    told = os.uname_result((real.sysname, "other-host", "9.9.9", "#9 other", real.machine))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstep.taps.host._uname", lambda: told)
        patch.setattr(processors, "_cpu_count", lambda: 48)
        patch.setattr(processors, "_affinity", lambda _: set(range(40)))
        patch.setattr(pids, "facts", lambda: {"getpid": 4_000_001, "getppid": 4_000_002})
        patch.setenv("LOGNAME", "ada")
        yield patch


def test_names_and_numbers_are_the_recorded_machines(session: Any, recorded_elsewhere: Any) -> None:
    session.record(getpass.getuser)
    recorded_elsewhere.undo()

    def program() -> dict[str, Any]:
        return {
            "host": [socket.gethostname(), platform.node(), os.uname().nodename, os.uname()[1], platform.uname().node],
            "kernel": [os.uname().release, platform.release(), "9.9.9" in platform.platform()],
            "processors": [os.cpu_count(), multiprocessing.cpu_count(), len(os.sched_getaffinity(0))],
            "user": getpass.getuser(),
            "pid": [os.getpid(), os.getppid()],
            "kind": type(os.uname()).__name__,
        }

    report = session.replay(program)
    assert report.difference is None
    assert session.result == {
        "host": ["other-host"] * 5,
        "kernel": ["9.9.9", "9.9.9", True],
        "processors": [48, 48, 40],
        "user": "ada",
        "pid": [4_000_001, 4_000_002],
        "kind": "uname_result",
    }
    real = (os.uname().nodename, socket.gethostname(), platform.node(), os.cpu_count(), os.getpid())
    assert "other-host" not in real and 48 not in real and 4_000_001 not in real


def test_the_process_that_is_named_by_its_recorded_id_is_this_one(session: Any, recorded_elsewhere: Any) -> None:
    session.record(lambda: None)
    recorded_elsewhere.undo()
    got: list[int] = []

    def program() -> str:
        before = signal.signal(signal.SIGUSR1, lambda number, _: got.append(number))
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), 0)
        finally:
            signal.signal(signal.SIGUSR1, before)
        with open(f"/proc/{os.getpid()}/stat") as stat:
            return stat.read().split()[0]

    assert session.replay(program).difference is None
    assert got == [signal.SIGUSR1]
    assert session.result == str(os.getpid())


def test_what_libraries_look_for_is_the_real_process(session: Any, recorded_elsewhere: Any) -> None:
    session.record(lambda: None)
    recorded_elsewhere.undo()

    def program() -> tuple[int | None, str]:
        said = StringIO()
        handler = logging.StreamHandler(said)
        handler.setFormatter(logging.Formatter("%(process)d"))
        handler.handle(logging.LogRecord("x", logging.INFO, "x", 1, "x", (), None))
        return multiprocessing.Process().pid or multiprocessing.current_process().pid, said.getvalue().strip()

    session.replay(program)
    assert session.result == (os.getpid(), "4000001")


def test_a_forked_child_has_an_id_of_its_own(session: Any, recorded_elsewhere: Any) -> None:
    def program() -> int:
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            os._exit(0 if os.getpid() != parent else 1)
        return os.waitpid(child, 0)[1]

    session.record(program)
    recorded_elsewhere.undo()
    assert session.result == 0
    session.replay(program)
    assert session.result == 0


def test_a_forked_child_that_nobody_waits_for_leaves_nothing_behind(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> int:
        child = os.fork()
        if child == 0:
            os._exit(0)
        return os.waitpid(child, 0)[1]

    with lockstep.record("earlier", store=tmp_path / "earlier.db"):
        pass  # the children of such a session report to it: from here on this process looks after forks
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    session.same(program)
    assert session.result == 0 and os.listdir(here) == []


def test_another_python_is_named(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.version_info", (3, 11, 7, "final", 0))
        session.record(lambda: None)
    report = session.replay(lambda: None)
    assert report.identical
    (entry,) = [entry for entry in report.coverage if entry.source == "python"]
    assert entry.how == "differs" and "3.11.7 when recorded" in entry.detail


AGENT = """
import getpass, os, socket, sys, urllib.request
said = f"{os.getpid()} {socket.gethostname()} {os.cpu_count()} {getpass.getuser()}"
answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=said.encode())).read()
print(said, os.getcwd(), answer.decode())
os.kill(os.getpid(), 0)
"""


def test_an_agent_that_sends_its_process_and_machine(commands: Any, provider: Any, tmp_path: Path) -> None:
    program = tmp_path / "telling.py"
    program.write_text(AGENT.replace("sys.argv[1]", "os.environ['WHERE']"))
    recorded = commands.record(program, WHERE=f"{provider.url}/v1/tell")
    assert commands.replay(program, WHERE="http://127.0.0.1:9/", LOGNAME="somebody", USER="else") == recorded
    assert names.lookups is None
