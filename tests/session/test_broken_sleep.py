"""A sleep that a signal broke off ends in a replay as it ended, without the signal."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import command

ALARM = """
import signal, time

class TooLong(Exception):
    def __init__(self, tool, limit):
        super().__init__(f"{tool} took more than {limit} s")
        self.tool = tool

def limit(number, frame):
    raise TooLong("search", 0.3)

signal.signal(signal.SIGALRM, limit)
for attempt in range(2):
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        time.sleep(20)
        print("slept")
    except TooLong as error:
        print(attempt, error, error.tool)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
time.sleep(0.01)
print("end")
"""

INTERRUPTED = """
import _thread, signal, threading, time, os

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background commands begin with it ignored
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT) if os.access(PLACE, os.F_OK) else None).start()
try:
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted")
"""

WRONG = """
import time
for wrong in ("a", -1, float("nan")):
    try:
        time.sleep(wrong)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""


def lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words)


@pytest.mark.parametrize("program", [ALARM, INTERRUPTED, WRONG], ids=["alarm", "interrupt", "wrong arguments"])
def test_a_broken_sleep_breaks_again(program: str, tmp_path: Path) -> None:
    script, live = tmp_path / "agent.py", tmp_path / "live"
    script.write_text(program.replace("PLACE", repr(str(live))))
    live.touch()
    recorded = lockstep("record", "--run", "agent", "--", sys.executable, str(script))
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout and "slept" not in recorded.stdout
    live.unlink()  # nobody interrupts the replay
    replayed = lockstep("replay", "agent")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
