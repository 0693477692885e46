"""A command without a network: who it can't reach, and that it is started as any other."""

import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
from tests.warm import command

from lockstep.launch import isolate, supervise

# Tells in its status what it met: 1 it reached the server outside, 2 its own server could not be used.
PROGRAM = """
import os, socket, subprocess, sys
port = int(sys.argv[1])
reach = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
status = 0
try:
    exec(reach)
    status = 1
except OSError:
    pass
if subprocess.run([sys.executable, "-c", reach], stderr=subprocess.DEVNULL).returncode == 0:
    status = 1
try:
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
except OSError:
    status |= 2
a, b = socket.socketpair()
a.send(b"x")
assert b.recv(1) == b"x" and os.getuid() == int(sys.argv[2])
sys.exit(status)
"""


@pytest.fixture
def outside() -> Iterator[tuple[int, list[object]]]:
    """A port on loopback, and who came to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        visits: list[object] = []

        def accept() -> None:
            try:
                while True:
                    visits.append(server.accept()[1])
            except OSError:
                return

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1], visits
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def run(*words: str, isolated: bool = True) -> supervise.Ended:
    return supervise.run([sys.executable, *words], dict(os.environ), isolate=isolated)


@pytest.fixture(params=[isolate.NAMESPACE, isolate.FILTER])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only way there is, for the length of a test."""
    monkeypatch.setattr(isolate, "WAYS", {request.param: isolate.WAYS[request.param]})
    return str(request.param)


def forbidden() -> bool:
    """Whether this system refuses it, which is said aloud."""
    try:
        run("-c", "")
    except supervise.NotIsolated as refused:
        warnings.warn(f"not shown here: {refused}", stacklevel=1)
        return True
    return False


def test_at_least_one_way_is_allowed_here() -> None:
    """Where it fails, `--isolate` is not tested by anything: give CI user namespaces or seccomp."""
    assert run("-c", "").isolated in (isolate.NAMESPACE, isolate.FILTER)


def test_neither_the_command_nor_its_children_reach_a_server_outside(
    way: str, outside: tuple[int, list[object]]
) -> None:
    port, visits = outside
    arguments = ("-c", PROGRAM, str(port), str(os.getuid()))
    assert run(*arguments, isolated=False).status == 1
    assert len(visits) == 2
    if forbidden():
        return
    ended = run(*arguments)
    assert (ended.status, ended.isolated) == (0 if way == isolate.NAMESPACE else 2, way)
    assert len(visits) == 2


@pytest.mark.usefixtures("way")
def test_it_ends_as_it_would() -> None:
    if forbidden():
        return
    assert run("-c", "import sys; sys.exit(3)").status == 3
    assert run("-c", "import os; os.kill(os.getpid(), 9)").status == -signal.SIGKILL
    masked = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGXFSZ))"
    bare = subprocess.run([sys.executable, "-c", masked], capture_output=True, check=True).stdout
    told, tell = os.pipe()
    supervise.run([sys.executable, "-c", masked], dict(os.environ), stdout=tell, isolate=True)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        assert pipe.read() == bare


@pytest.mark.usefixtures("way")
def test_a_command_that_does_not_exist_is_said_to() -> None:
    if forbidden():
        return
    with pytest.raises(supervise.NotStarted) as failed:
        supervise.run(["no-such-command"], dict(os.environ), isolate=True)
    assert isinstance(failed.value.__cause__, FileNotFoundError)


def test_a_replay_that_cannot_be_isolated_is_not_begun() -> None:
    refused = "def no(): raise PermissionError(1, 'not here')\n"
    cli = f"from lockstep.launch import isolate\n{refused}isolate.WAYS = dict.fromkeys(isolate.WAYS, no)\n"
    cli += "from lockstep.cli import main; main()"
    printing = [sys.executable, "-c", "print('it ran')"]
    again = [sys.executable, "-c", cli, "replay", "it", "--isolate"]
    assert command.run("record", "--run", "it", "--", *printing).returncode == 0
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "LS405" in done.stderr and "not here" in done.stderr and isolate.FILTER in done.stderr
