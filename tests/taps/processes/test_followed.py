"""Processes under the command line: a Python one is followed and compared, any other one is stood in for."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

PARENT = """
import asyncio, os, subprocess, sys

child = [sys.executable, "child.py"]
print(subprocess.run(child, input="a\\nb\\n", capture_output=True, text=True))
print(subprocess.run([sys.executable, "-I", "-S", "-c", "import random; print(random.random())"], capture_output=True))

async def one(n):
    process = await asyncio.create_subprocess_exec(*child, stdin=-1, stdout=-1)
    return await process.communicate(b"%d\\n" % n)

async def main():
    print(await asyncio.gather(*[one(n) for n in range(2)]))

asyncio.run(main())
unread = "import os; got = b''\\nwhile piece := os.read(0, 9999): got += piece\\nprint(len(got))"
print(subprocess.run([sys.executable, "-c", unread], input=b"z" * 20000, stdout=subprocess.PIPE).stdout)
sys.stdout.flush()
print(os.system("exit 3"), os.waitpid(os.posix_spawn(sys.executable, child, os.environ), 0))
killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], stdout=subprocess.DEVNULL)
killed.kill()
print(killed.wait())
"""
CHILD = """
import random, sys, time

for line in sys.stdin:
    print("got", line.strip(), random.random())
print("end", time.time(), file=sys.stderr)
sys.exit(4)
"""


def run(place: Path, *words: str) -> Any:
    return command.run(words[0], "--store", "store.db", *words[1:], cwd=place, timeout=100, input="")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    place = tmp_path_factory.mktemp("followed")
    (place / "parent.py").write_text(PARENT)
    (place / "child.py").write_text(CHILD)
    done = run(place, "record", "--run", "run", "--", sys.executable, "parent.py")
    assert done.returncode == 0, done.stderr
    assert "not covered: nothing" in done.stderr
    return place, done.stdout


def test_children_that_are_followed_and_others_replay_together(recorded: tuple[Path, str]) -> None:
    place, printed = recorded
    done = run(place, "replay", "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_a_child_that_does_something_else_is_the_difference(recorded: tuple[Path, str], tmp_path: Path) -> None:
    place, _ = recorded
    child = place / "child.py"
    try:
        child.write_text(CHILD.replace('"got"', '"GOT"'))
        done = run(place, "replay", "run")
    finally:
        child.write_text(CHILD)
    assert done.returncode == 1
    assert "LS106 another stdout than recorded" in done.stderr
    assert "GOT" in done.stderr


def test_the_log_shows_each_as_a_command(recorded: tuple[Path, str]) -> None:
    place, _ = recorded
    log = run(place, "log", "run").stdout
    assert "child.py   → exit 4" in log
    assert "exit 3   → exit 3" in log
    assert "killed by SIGKILL" in log
