"""`lockstep record`: the program runs as without it, and its run is in the store."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PYTHON = sys.executable

# What a program can see of how it was started.
SELF = """
import builtins, os, sys
import __main__
print(sys.argv, sys.path, sys.flags.hash_randomization, sys.orig_argv[1:], __name__, __spec__ and __spec__.name)
print(getattr(__main__, "__file__", None), sorted(set(vars(__main__)) - {"__warningregistry__"}))
print({name: value for name, value in os.environ.items() if name != "_"})
print(sys.excepthook is sys.__excepthook__, sys.stdout is sys.__stdout__, builtins.input)
print(sorted(m for m in ("typer", "rich", "asyncio", "wrapt") if m in sys.modules))
"""


def bare(command: list[str], cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command, cwd=cwd, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=60, **options
    )


@pytest.mark.parametrize(
    "command",
    [
        [PYTHON, "agent.py", "--ticket", "4711", ""],
        [PYTHON, "-m", "agent", "x"],
        [PYTHON, "-c", SELF, "y"],
        [PYTHON, "-X", "dev", "-P", "agent.py"],
        [PYTHON, "folder"],
        ["sh", "-c", f"'{PYTHON}' agent.py; exit 3"],
        ["./script"],
    ],
    ids=["script", "module", "code", "options", "folder", "shell", "console script"],
)
def test_the_program_sees_itself_as_without_us(lockstep, program, tmp_path: Path, command: list[str]) -> None:
    program(SELF)
    (tmp_path / "folder").mkdir()
    program(SELF, "folder/__main__.py")
    program(f"#!{PYTHON}\n{SELF}", "script")
    (tmp_path / "script").chmod(0o755)
    expected = bare(command, tmp_path)
    recorded = lockstep("record", "--", *command)
    assert recorded.stdout == expected.stdout
    assert recorded.returncode == expected.returncode
    assert "complete" in recorded.stderr or "failed" in recorded.stderr


def test_standard_input_reaches_the_program(lockstep, program) -> None:
    program("import sys; print(input(), sys.stdin.read())")
    assert lockstep("record", "--", PYTHON, "agent.py", stdin=None, input="one\ntwo").stdout == "one two\n"
    assert lockstep("record", "--", PYTHON, "-", stdin=None, input="print('from stdin')").stdout == "from stdin\n"


@pytest.mark.parametrize(
    ("code", "status", "state"),
    [
        ("pass", 0, "complete"),
        ("import sys; sys.exit(3)", 3, "failed"),
        ("import sys; sys.exit('words')", 1, "failed"),
        ("import os; os._exit(4)", 4, "failed"),
        ("raise ValueError('no')", 1, "failed"),
        ("import os; os.kill(os.getpid(), 9)", -9, "interrupted"),
        ("import os; os.kill(os.getpid(), 15)", -15, "interrupted"),
        ("import os; os.abort()", -6, "interrupted"),
        ("raise KeyboardInterrupt", -2, "failed"),
        ("import os; os.execv('/bin/sh', ['sh', '-c', 'exit 7'])", 7, "failed"),
    ],
)
def test_it_ends_as_the_program_does(lockstep, program, code: str, status: int, state: str) -> None:
    program(code)
    done = lockstep("record", "--", PYTHON, "agent.py")
    assert done.returncode == status
    summary = next(line for line in done.stderr.splitlines() if line.startswith("● agent"))
    assert summary.split()[2] == state


@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_program_that_handles_a_signal_is_recorded_to_its_end(
    program, tmp_path: Path, number: signal.Signals, group: bool
) -> None:
    program(
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: (print('handled'), sys.exit(9)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.02)\n"
    )
    process = subprocess.Popen(
        [PYTHON, "-m", "lockstep", "record", "--", PYTHON, "agent.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (os.killpg if group else os.kill)(process.pid, number)
        out, words = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (out, process.returncode) == ("handled\n", 9)
    assert "● agent  failed" in words


def test_the_name_is_the_scripts_and_never_taken_twice(lockstep, program) -> None:
    program("pass")
    assert "● agent " in lockstep("record", "--", PYTHON, "agent.py").stderr
    assert "● agent-2 " in lockstep("record", "--", PYTHON, "agent.py").stderr
    assert "● refund " in lockstep("record", "--run", "refund", "--", PYTHON, "agent.py").stderr
    again = lockstep("record", "--run", "refund", "--", PYTHON, "agent.py").stderr
    assert "● refund-2 " in again and "there is a run refund already" in again


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["true"], "started no Python"),
        ([PYTHON, "-I", "-c", "pass"], "-I, -E or -S"),
        ([PYTHON, "-S", "-c", "pass"], "-I, -E or -S"),
    ],
)
def test_a_command_that_never_loads_us_leaves_no_run(lockstep, command: list[str], words: str) -> None:
    done = lockstep("record", "--", *command)
    assert done.returncode == 125
    assert "LS403" in done.stderr and words in done.stderr
    assert lockstep("runs", "--json").returncode == 2  # there is not even a store


def test_an_interpreter_without_lockstep_is_named(lockstep, tmp_path: Path) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    other = str(tmp_path / "other" / "bin" / "python")
    # Only our own directory stays on its path, also where the tests run from a checkout.
    shell = f'PYTHONPATH="${{PYTHONPATH%%:*}}" exec {other} -c "print(\'ran\')"'
    done = lockstep("record", "--", "sh", "-c", shell)
    assert (done.stdout, done.returncode) == ("ran\n", 125)
    assert f"{other} -m pip install lockstep-replay" in done.stderr


def test_a_command_that_cannot_be_started_is_no_run(lockstep, tmp_path: Path) -> None:
    done = lockstep("record", "--", "no-such-command")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("lockstep: LS401 no-such-command could not be started")
    assert not (tmp_path / "store.db").exists()


def test_a_store_that_cannot_be_used_stops_before_the_program_runs(lockstep, program, tmp_path: Path) -> None:
    program("print('ran')")
    (tmp_path / "text").write_text("this is no database, but it is long enough to have a header " * 10)
    done = lockstep("record", "--store", "text", "--", PYTHON, "agent.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "LS201" in done.stderr


def test_the_environment_is_the_users_and_reaches_its_children(lockstep, program) -> None:
    program(
        "import os, subprocess, sys\n"
        "print(sorted(k for k in os.environ if k.startswith(('LOCKSTEP', 'PYTHON'))))\n"
        "subprocess.run([sys.executable, '-c', 'import os; print(\"LOCKSTEP_MODE\" in os.environ)'])\n"
    )
    done = lockstep("record", "--", PYTHON, "agent.py", env={"PYTHONHASHSEED": "7", "PYTHONUNBUFFERED": "1"})
    seen, in_child = done.stdout.splitlines()
    mine = {name for name in os.environ if name.startswith(("LOCKSTEP", "PYTHON"))}
    assert seen == str(sorted(mine | {"PYTHONHASHSEED", "PYTHONUNBUFFERED"}))
    assert in_child == "False"
    assert "not covered: nothing" in done.stderr


def test_a_forked_child_does_not_write_its_parents_run(lockstep, program) -> None:
    program(
        "import os, sys, time\n"
        "pid = os.fork()\n"
        "sys.stdout.write(('child' if pid == 0 else 'parent') + f' {time.time() > 0}\\n'); sys.stdout.flush()\n"
        "if pid == 0: sys.exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    done = lockstep("record", "--", PYTHON, "-W", "error", "agent.py")
    assert sorted(done.stdout.splitlines()) == ["child True", "parent True"]
    assert done.returncode == 0, done.stderr
    assert "not covered: nothing" in done.stderr


def test_a_launcher_that_becomes_the_program_is_let_pass(lockstep, program, tmp_path: Path) -> None:
    """Instrumentation tools put their own sitecustomize in front and become the program."""
    (tmp_path / "site").mkdir()
    program("import sys; sys.stderr.write('their site\\n')", "site/sitecustomize.py")
    program(
        "import os, sys, time\n"
        "time.time()\n"
        "path = os.pathsep.join([os.path.abspath('site'), os.environ.get('PYTHONPATH', '')])\n"
        "env = dict(os.environ, PYTHONPATH=path)\n"
        "os.execvpe(sys.argv[1], sys.argv[1:], env)\n",
        "launcher.py",
    )
    program("import time; print(time.time())")
    done = lockstep("record", "--run", "x", "--", PYTHON, "launcher.py", PYTHON, "agent.py")
    assert "● x  complete" in done.stderr and "their site" in done.stderr
    again = lockstep("replay", "x")
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr


def test_the_next_sitecustomize_runs_as_without_us(lockstep, program, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    program("import builtins; builtins.customized = __name__", "site/sitecustomize.py")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = lockstep("record", "--", PYTHON, "-c", "print(customized)", env={"PYTHONPATH": path})
    assert done.stdout == "sitecustomize\n"


def test_a_fault_of_ours_does_not_stop_the_program(lockstep, program, tmp_path: Path) -> None:
    """Here msgspec cannot be imported in the program's process, so nothing can be recorded."""
    (tmp_path / "broken").mkdir()
    program("raise RuntimeError('broken')", "broken/msgspec.py")
    program("import sys; print('ran'); sys.exit(6)")
    shell = f"PYTHONPATH=\"$PYTHONPATH:{tmp_path}/broken\" exec '{PYTHON}' agent.py"
    # After our own directory, but before the installed packages.
    done = lockstep("record", "--", "sh", "-c", shell)
    assert (done.stdout, done.returncode) == ("ran\n", 6)
    assert "not recorded" in done.stderr and "RuntimeError: broken" in done.stderr
    assert "Traceback" not in done.stderr


def test_json_is_one_object_and_the_programs_output_moves_to_stderr(lockstep, program) -> None:
    import json

    program("print('the program')")
    done = lockstep("record", "--json", "--run", "refund", "--", PYTHON, "agent.py")
    summary = json.loads(done.stdout)
    assert done.stderr == "the program\n"
    assert (summary["run"], summary["state"], summary["exit"], summary["faults"]) == ("refund", "complete", 0, [])
    recorded = {entry["source"] for entry in summary["coverage"] if entry["how"] == "recorded"}
    assert recorded == {"environ", "stdout"} and len(summary["coverage"]) == 2


def test_recording_adds_no_directory_that_stays(lockstep, program, tmp_path: Path) -> None:
    program("pass")
    (tmp_path / "temporary").mkdir()
    lockstep("record", "--", PYTHON, "agent.py", env={"TMPDIR": str(tmp_path / "temporary")})
    assert list((tmp_path / "temporary").iterdir()) == []


def test_acknowledged_output_survives_a_killed_supervisor(program, tmp_path: Path, lockstep) -> None:
    program("import time; print('begun', flush=True); time.sleep(3)")
    process = subprocess.Popen(
        [PYTHON, "-m", "lockstep", "record", "--", PYTHON, "agent.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    assert process.stdout.read() == ""  # the program ran on to its end
    for _ in range(100):
        listed = lockstep("runs", "--json").stdout
        if '"complete"' in listed:
            return
        time.sleep(0.1)
    raise AssertionError(listed)
