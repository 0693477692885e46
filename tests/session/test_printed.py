"""What threads print comes in the recorded order, also where nothing but chance decided it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import command

THREADS = """
import sys, threading, time

def work(i):
    for k in range(25):
        print(f"{i}-{k}")
        if k % 5 == i:
            time.sleep(0.001)

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
for k in range(20): sys.stdout.write(f"main {k}\\n")
for t in threads: t.join()
"""

BYTES = """
import sys, threading, time

def work(i):
    for k in range(15):
        sys.stdout.buffer.write(b"%d-%d " % (i, k))
        time.sleep(0.0005)

threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
"""

LEFT_RUNNING = """
import threading, time

ending = False

def work(i):
    while True:
        print(i, "works at the end" if ending else "works")
        time.sleep(0.002 * (i + 1))

for i in range(3):
    threading.Thread(target=work, args=(i,), daemon=True).start()
time.sleep(0.02)
print("main ends")
"""

# What is recorded at its end takes a while.
LONG_END = """
import select
from lockstep.session import session

finish = session.finish

def long(*told):
    global ending
    ending = True
    select.select([], [], [], 0.3)
    return finish(*told)

session.finish = long
"""

IN_A_SIGNAL = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: print("signal"))

class Odd(str):
    def __str__(self):
        os.kill(os.getpid(), signal.SIGUSR1)
        return "odd"

print(Odd())
print("end")
"""

PROGRAMS = {"text": THREADS, "bytes": BYTES, "left running": LEFT_RUNNING, "in a signal handler": IN_A_SIGNAL}


def lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_stdout_is_replayed_in_the_order_printed(program: str, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(program)
    recorded = lockstep("record", "--run", "agent", "--", sys.executable, str(script))
    assert recorded.returncode == 0, recorded.stderr
    for _ in range(3):
        replayed = lockstep("replay", "agent")
        assert replayed.returncode == 0, replayed.stderr
        assert replayed.stdout == recorded.stdout


def test_another_order_among_lanes_is_a_difference(tmp_path: Path) -> None:
    """Tasks of one thread take turns as the code says: changed code may swap them with every lane the same."""
    script, changed = tmp_path / "agent.py", tmp_path / "changed"
    script.write_text(
        f"import asyncio, os\n"
        f"async def say(n): print(n)\n"
        f"async def main():\n"
        f"    a, b = say(1), say(2)\n"
        f"    if os.access({str(changed)!r}, os.F_OK):\n"
        f"        loop = asyncio.get_running_loop()\n"
        f"        tasks = [loop.create_task(a), loop.create_task(b)]\n"
        f"        loop._ready.rotate(1)\n"
        f"        await asyncio.gather(*tasks)\n"
        f"    else:\n"
        f"        tasks = [asyncio.create_task(a), asyncio.create_task(b)]\n"
        f"        await asyncio.gather(*tasks)\n"
        f"asyncio.run(main())\n"
    )
    assert lockstep("record", "--run", "agent", "--", sys.executable, str(script)).stdout == "1\n2\n"
    changed.touch()
    assert os.access(changed, os.F_OK)
    replayed = lockstep("replay", "agent")
    assert replayed.stdout == "2\n1\n"
    assert replayed.returncode == 1
    assert "another order" in replayed.stderr


def test_threads_that_are_left_running_print_nothing_while_the_end_is_recorded(tmp_path: Path) -> None:
    """To write the end of a recording takes a moment, which is not theirs."""
    script = tmp_path / "agent.py"
    script.write_text(LEFT_RUNNING + LONG_END)
    recorded = lockstep("record", "--run", "agent", "--", sys.executable, str(script))
    assert recorded.returncode == 0, recorded.stderr
    assert "main ends" in recorded.stdout
    assert "works at the end" not in recorded.stdout
