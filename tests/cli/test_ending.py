"""The command line's process ends at once where a framework's threads would abort one that is torn down."""

import os
import subprocess
import sys
import textwrap

import pytest

from lockstep.cli import ending

ABRUPT = """
import atexit, sys, threading, time
from lockstep.cli import ending

class Torn:
    def __del__(self):
        print("torn down", flush=True)

torn = Torn()
ending.abrupt = lambda: True
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ABRUPT + textwrap.dedent(code)],
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_nothing_is_torn_down() -> None:
    done = run("ending.ended(lambda: print('done'))")

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize(
    ("how", "status", "stderr"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(125)", 125, ""),
        ("sys.exit('wrong usage')", 1, "wrong usage\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
    ],
)
def test_it_ends_as_the_command_does(how: str, status: int, stderr: str) -> None:
    done = run(f"def command():\n    {how}\nending.ended(command)")

    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.endswith(stderr) and bool(done.stderr) == bool(stderr)


def test_what_was_registered_for_the_end_runs_and_threads_are_waited_for() -> None:
    done = run("""
        def work():
            time.sleep(0.05)
            print("worked")

        atexit.register(print, "at exit")
        threading.Thread(target=work).start()
        threading.Thread(target=time.sleep, args=[3600], daemon=True).start()
        ending.ended(lambda: None)
    """)

    assert (done.returncode, done.stdout) == (0, "worked\nat exit\n")


def test_what_cannot_be_written_any_more_is_told_by_the_status() -> None:
    done = run("""
        import os
        def command():
            print("lost")
            os.close(1)
        ending.ended(command)
    """)

    assert done.returncode == 120


def test_other_processes_end_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit) as ended:
        ending.ended(command)

    assert ended.value.code == 3
