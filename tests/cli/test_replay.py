"""`lockstep replay` and `lockstep verify` of recorded commands."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import command

PYTHON = sys.executable

AGENT = """
import os, random, sys, time, uuid
print("at", time.time(), random.random(), uuid.uuid4(), {"a", "b", "c", "d"})
pass  # change
print("end")
"""


def test_the_same_program_is_the_same_run(lockstep, program) -> None:
    program(AGENT)
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    again = lockstep("replay", "agent")
    assert (again.returncode, again.stdout) == (0, recorded.stdout)
    assert again.stderr.startswith("✓ identical") and "0 live calls" in again.stderr


def test_a_new_hash_seed_is_drawn_for_each_recording(lockstep, program) -> None:
    program("print([hash('x')])")
    seen = {lockstep("record", "--", PYTHON, "agent.py").stdout for _ in range(3)}
    assert len(seen) == 3


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(3)",
        "import os; os._exit(4)",
        "raise ValueError('no')",
        "raise KeyboardInterrupt",
    ],
)
def test_a_run_that_failed_is_replayed_to_the_same_failure(lockstep, program, code: str) -> None:
    program(code)
    lockstep("record", "--", PYTHON, "agent.py")
    again = lockstep("replay", "agent")
    assert again.returncode == 0, again.stderr
    assert again.stderr.splitlines()[-1].startswith("✓ identical")


@pytest.mark.parametrize(
    ("change", "code", "shown"),
    [
        ("print('more')", "LS106", "more"),
        ("sys.exit(3)", "LS106", "end"),
        ("print = lambda *a: None", "LS106", "end"),
        ("time.time()", "LS105", "time.time"),
        ("raise ValueError('changed')", "LS107", "ValueError: changed"),
        ("import atexit; atexit.register(lambda: os._exit(5))", "LS107", "now        5"),
    ],
)
def test_a_changed_program_is_told_from_the_recorded_one(lockstep, program, change: str, code: str, shown: str) -> None:
    program(AGENT)
    lockstep("record", "--", PYTHON, "agent.py")
    program(AGENT.replace("pass  # change", change))
    again = lockstep("replay", "agent")
    assert again.returncode == 1
    report = again.stderr[again.stderr.index("✗ diverged") :]
    assert code in report and shown in report
    assert "lockstep.errors.Divergence" not in again.stderr
    told = json.loads(lockstep("replay", "--json", "agent").stdout)
    assert (told["identical"], told["divergence"]["code"]) == (False, code)


@pytest.mark.parametrize(
    "stubborn",
    [
        "while True:\n    try: time.sleep(60)\n    except BaseException: pass",
        "import threading; threading.Thread(target=lambda: threading.Event().wait()).start()",
        "import threading; threading.Event().wait()",
    ],
)
def test_a_program_that_swallows_the_divergence_is_ended(lockstep, program, stubborn: str) -> None:
    program("import os, time\nprint('end')\n")
    lockstep("record", "--", PYTHON, "agent.py")
    program(f"import os, time\ntry: print('changed')\nexcept BaseException: pass\n{stubborn}\nprint('end')\n")
    again = lockstep("replay", "agent")
    assert again.returncode == 1
    assert "LS106" in again.stderr


def test_a_killed_run_is_replayed_up_to_the_cut(lockstep, program) -> None:
    program(
        "import os, time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.05)\nos.kill(os.getpid(), 9)\n"
    )
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    assert recorded.returncode == -9
    again = lockstep("replay", "agent")
    assert again.returncode == 0
    assert "✓ identical up to the cut" in again.stderr and "killed by SIGKILL" in again.stderr
    assert recorded.stdout.startswith(again.stdout)


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)"])
def test_a_program_that_ended_itself_by_a_signal_is_replayed_to_that_end(lockstep, program, end: str) -> None:
    program(f"import os\nprint('last words', flush=True)\n{end}")
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    assert (recorded.stdout, "interrupted" in recorded.stderr) == ("last words\n", True)
    again = lockstep("replay", "agent")
    assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
    assert "✓ identical up to the cut" in again.stderr
    changed = lockstep("replay", "agent", "--", PYTHON, "-c", f"import os\nprint('other words')\n{end}")
    assert changed.returncode == 1


def test_a_replay_that_somebody_interrupts_is_no_verdict(lockstep, program, tmp_path: Path) -> None:
    program("")
    lockstep("record", "--", PYTHON, "agent.py")
    read, write = os.pipe()
    program(f"import os\nprint('up', flush=True)\nos.read({read}, 1)")
    process = subprocess.Popen(
        [PYTHON, "-m", "lockstep", "replay", "agent"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, pass_fds=[read],
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=30)
    os.close(read)
    os.close(write)
    assert process.returncode == 130
    assert words.endswith("lockstep: interrupted\n") and "diverged" not in words


def test_another_command_replaces_the_recorded_one(lockstep, program) -> None:
    program("print(__import__('sys').argv[1:])")
    lockstep("record", "--", PYTHON, "agent.py", "--a")
    again = lockstep("replay", "agent", "--", PYTHON, "agent.py", "--b")
    assert again.returncode == 1
    assert "['--a']" in again.stderr and "['--b']" in again.stderr
    assert lockstep("replay", "agent", "--speed", "1", "--", PYTHON, "agent.py", "--a").returncode == 0


def test_the_recorded_command_runs_where_it_was_recorded(lockstep, program, tmp_path: Path) -> None:
    program("import os; print(os.getcwd())")
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = command.run("replay", "agent", cwd=elsewhere)
    assert again.stdout == recorded.stdout == f"{tmp_path}\n"


def test_what_a_terminal_decides_is_replayed_without_one(lockstep, program, tmp_path: Path) -> None:
    """Recorded on a terminal, where the person answers `input()`; replayed with pipes and no person."""
    program(
        "import os, shutil, sys\n"
        "name = input('name? ')\n"
        "print(sys.stdout.isatty(), os.isatty(0), shutil.get_terminal_size().columns > 0, 'hello', name)\n"
    )
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [PYTHON, "-m", "lockstep", "record", "--", PYTHON, "agent.py"],
        cwd=tmp_path, stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    try:
        shown = b""
        while b"name? " not in shown:
            shown += os.read(leader, 1000)
        os.write(leader, b"Ann\n")
        while b"next: " not in shown:
            shown += os.read(leader, 1000)
        process.wait(timeout=30)
    finally:
        process.kill()
        os.close(leader)
    assert b"complete" in shown and b"\x1b[32m" in shown
    again = lockstep("replay", "agent")
    assert (again.returncode, again.stdout) == (0, "True True True hello Ann\n"), again.stderr
    assert again.stderr.startswith("name? Ann\n")


@pytest.mark.parametrize(
    "reading",
    [
        "print([input(), input()], sys.stdin.read())",
        "print(sys.stdin.buffer.read())",
        "print([line for line in sys.stdin])",
        "print(sys.stdin.readline(), sys.stdin.readlines())",
        "sys.stdin.reconfigure(encoding='latin-1'); print(sys.stdin.read())",
    ],
)
def test_stdin_is_answered_from_the_record(lockstep, program, reading: str) -> None:
    program(f"import sys\n{reading}")
    recorded = lockstep("record", "--", PYTHON, "agent.py", stdin=None, input="one\ntwo\nthrée")
    assert "thr" in recorded.stdout
    again = lockstep("replay", "agent", stdin=None, input="something else")
    assert (again.returncode, again.stdout) == (0, recorded.stdout)


def test_end_of_input_is_replayed(lockstep, program) -> None:
    program("try: input()\nexcept EOFError as error: print(repr(error))")
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    assert (
        lockstep("replay", "agent", stdin=None, input="x\n").stdout
        == recorded.stdout
        == ("EOFError('EOF when reading a line')\n")
    )


def test_a_python_child_is_followed(lockstep, program) -> None:
    program("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; print(time.time())'])")
    recorded = lockstep("record", "--", PYTHON, "agent.py")
    assert "not covered: nothing" in recorded.stderr
    again = lockstep("replay", "agent")
    assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr


def test_what_cannot_be_replayed_is_said_in_one_line(lockstep, program, tmp_path: Path) -> None:
    program("pass")
    missing = lockstep("replay", "agent")
    assert missing.returncode == 2 and "LS201" in missing.stderr
    lockstep("record", "--", PYTHON, "agent.py")
    for words, code, status in (
        (("replay", "other"), "LS205", 2),
        (("replay", "agent", "--", "no-such-command"), "LS401", 125),
        (("replay", "agent", "--", "true"), "LS403", 125),
        (("verify", "other"), "LS205", 2),
    ):
        done = lockstep(*words)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1)
        assert code in done.stderr
    assert lockstep("replay").returncode == 2
    assert "Traceback" in lockstep("--debug", "replay", "other").stderr


def test_an_interpreter_without_lockstep_never_runs_for_real_in_a_replay(lockstep, program, tmp_path: Path) -> None:
    program("open('ran', 'a').write('x')")
    lockstep("record", "--", PYTHON, "agent.py")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    shell = f'PYTHONPATH="${{PYTHONPATH%%:*}}" exec {tmp_path}/other/bin/python agent.py'
    done = lockstep("replay", "agent", "--", "sh", "-c", shell)
    assert done.returncode == 125 and "cannot import lockstep" in done.stderr
    assert (tmp_path / "ran").read_text() == "x"


def test_verify_checks_the_record_and_replays_it(lockstep, program) -> None:
    program(AGENT)
    lockstep("record", "--", PYTHON, "agent.py")
    done = lockstep("verify", "agent", "--times", "3")
    assert done.returncode == 0 and done.stdout == ""
    assert "✓ consistent" in done.stderr and "3 replays" in done.stderr
    told = json.loads(lockstep("verify", "agent", "--json", "--times", "2").stdout)
    assert (told["identical"], told["consistent"], told["replays"], len(told["digests"])) == (True, True, 2, 1)
    program(AGENT.replace("pass  # change", "print('more')"))
    changed = lockstep("verify", "agent", "--times", "3")
    assert changed.returncode == 1
    assert "replay 1 of 3 was not the same run" in changed.stderr and "LS106" in changed.stderr


def test_verify_finds_a_record_that_was_changed(lockstep, program, tmp_path: Path) -> None:
    program(AGENT)
    lockstep("record", "--", PYTHON, "agent.py")
    with sqlite3.connect(tmp_path / "store.db") as store:
        store.execute("DELETE FROM segment WHERE id = (SELECT max(id) FROM segment WHERE id < (2 << 40))")
    store.close()
    done = lockstep("verify", "agent")
    assert done.returncode == 1
    assert "✗ not consistent" in done.stderr and "event" in done.stderr
    assert "identical" not in done.stderr


def test_a_recorded_exit_status_is_part_of_the_chain(lockstep, program, tmp_path: Path) -> None:
    program("import sys; sys.exit(3)")
    lockstep("record", "--", PYTHON, "agent.py")
    with sqlite3.connect(tmp_path / "store.db") as store:
        body, key = store.execute("SELECT body, id FROM segment ORDER BY id DESC LIMIT 1").fetchone()
        assert body.count(b"exit\x03") == 1
        store.execute("UPDATE segment SET body = ? WHERE id = ?", (body.replace(b"exit\x03", b"exit\x04"), key))
    store.close()
    assert lockstep("replay", "agent").returncode == 1
    assert "process launch" in lockstep("verify", "agent").stderr
