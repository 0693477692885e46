"""A supervised command behaves as it does without a supervisor."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SUPERVISED = (
    "import os, sys; from lockstep.launch import supervise; "
    "supervise.leave(supervise.run(sys.argv[1:], dict(os.environ)).status)"
)
# The way of systems without sigwaitinfo.
PORTABLY = SUPERVISED.replace("import supervise;", "import portable, supervise;").replace(
    "supervise.run", "portable.run"
)
PYTHON = sys.executable


def supervised(command: list[str]) -> list[str]:
    return [PYTHON, "-c", SUPERVISED, *command]


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('words')",
        "import os; os._exit(4)",
        "raise ValueError('no')",
        "import os; os.kill(os.getpid(), 9)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; os.abort()",
        "raise KeyboardInterrupt",
        "import os, sys; print('out'); print('err', file=sys.stderr); sys.stdout.flush(); os.kill(os.getpid(), 15)",
    ],
)
@pytest.mark.parametrize("way", [SUPERVISED, PORTABLY], ids=["linux", "portable"])
def test_status_and_output_are_the_commands_own(code: str, way: str) -> None:
    command = [PYTHON, "-c", code]
    bare = subprocess.run(command, capture_output=True, check=False)
    ours = subprocess.run([PYTHON, "-c", way, *command], capture_output=True, check=False)
    assert (ours.returncode, ours.stdout, ours.stderr) == (bare.returncode, bare.stdout, bare.stderr)


def test_the_command_finds_the_signals_as_a_shell_leaves_them() -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    bare = subprocess.run(command, capture_output=True, text=True, check=True)
    ours = subprocess.run(supervised(command), capture_output=True, text=True, check=True)

    def masks(status: str) -> list[int]:
        # Signals 32 and 33 are the C library's own: posix_spawn leaves them ignored.
        return [int(line.split()[1], 16) & ~(3 << 31) for line in status.splitlines()]

    assert masks(ours.stdout) == masks(bare.stdout)


def test_stdin_reaches_the_command_and_a_closed_reader_ends_it() -> None:
    echoed = subprocess.run(supervised(["cat"]), input=b"to the program", capture_output=True, check=True)
    assert echoed.stdout == b"to the program"
    piped = subprocess.run(
        ["sh", "-c", 'exec 3>&1; { "$@"; echo $? >&3; } | head -1 >/dev/null', "sh", *supervised(["yes"])],
        capture_output=True,
        check=True,
    )
    assert piped.stdout == b"141\n"  # 128 + SIGPIPE


COUNTING = """
import signal, sys, time
seen = []
def see(name):
    seen.append(name)
    print(name, flush=True)
signal.signal(signal.SIGINT, lambda *_: see("INT"))
signal.signal(signal.SIGTERM, lambda *_: see("TERM"))
signal.signal(signal.SIGUSR1, lambda *_: (print(*seen, flush=True), sys.exit(7)))
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.fixture
def counting(tmp_path: Path) -> "Callable[[], subprocess.Popen[str]]":
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            supervised([PYTHON, str(script)]), stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    return start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to", ["process", "group"])
def test_a_signal_reaches_the_command_exactly_once(
    counting: "Callable[[], subprocess.Popen[str]]", number: signal.Signals, to: str
) -> None:
    process = counting()
    try:
        assert process.stdout is not None
        name = number.name.removeprefix("SIG")
        for _ in range(3):
            send = os.kill if to == "process" else os.killpg
            send(process.pid, number)
            assert process.stdout.readline() == f"{name}\n"
        # Sent and passed on after whatever the supervisor made of the others.
        os.kill(process.pid, signal.SIGUSR1)
        out, _ = process.communicate(timeout=10)
    finally:
        process.kill()
    assert out.split() == [name] * 3
    assert process.returncode == 7


def test_a_terminals_interrupt_reaches_the_command_exactly_once(tmp_path: Path) -> None:
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    leader, follower = os.openpty()
    controlling = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); " + SUPERVISED
    process = subprocess.Popen(
        [PYTHON, "-c", controlling, PYTHON, str(script)],
        stdin=follower,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.write(leader, b"\x03")
        assert process.stdout.readline() == "INT\n"
        os.kill(process.pid, signal.SIGUSR1)
        out, _ = process.communicate(timeout=10)
    finally:
        process.kill()
        os.close(leader)
        os.close(follower)
    assert out.split() == ["INT"]


def test_the_supervisor_ends_by_the_signal_that_ended_the_command() -> None:
    process = subprocess.Popen(supervised(["sh", "-c", "echo ready; exec sleep 60"]), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(timeout=10) == -signal.SIGTERM
    finally:
        process.kill()


def test_nothing_is_left_behind_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen(
        supervised(["sh", "-c", "echo ready; exec sleep 2"]), stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    assert process.stdout.read() == b""  # ends when the command, the last holder of the pipe, does
    # A process closes its files a moment before it is gone.
    for _ in range(50):
        listed = subprocess.run(["ps", "-e", "-o", "sid=,stat=,args="], capture_output=True, text=True, check=True)
        left = [line for line in listed.stdout.splitlines() if line.split()[0] == str(process.pid) and "Z" not in line]
        if not left:
            break
        time.sleep(0.1)
    assert left == []
