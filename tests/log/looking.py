"""Looks at a file with every reading command, in a process with little memory and a small stack, as a thread on macOS
has, which must live to say what it made of it."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MEMORY = 1_500 << 20
STACK = 512 << 10

# Forks for each file, so that what it needs is imported once.
LOOKER = f"""
import os, resource, sys, threading
from lockstep.errors import LockstepError
from lockstep.log import exchange, verify
from lockstep.log.store import open_store
from lockstep.debugger import branches, listing
from lockstep.log.timeline import Timeline
import zstandard

def guarded(name, function):
    try:
        print(name, function())
    except LockstepError as error:
        print(name, error.code)

def steps(path, name, branch="main"):
    with open_store(path) as store:
        timeline = Timeline(store.run(name, branch))
        for step in timeline.steps:
            for effect in step.effects:
                timeline.request(effect), timeline.outcome(effect)
        timeline = Timeline(store.run(name, branch))
        timeline.step(1), branches.forks(timeline.reader, name, branch), timeline.reader.meta
        return "read"

def branched(path, name):
    with open_store(path) as store:
        names = [one.name for one in store.run(name).branches if one.name != "main"]
    for branch in names[:5]:
        guarded("branch:" + branch, lambda: steps(path, name, branch))
        guarded("verify:" + branch, lambda: len(verify.verify(open_store(path).run(name, branch)).problems))

def everything(path, mine, *runs):
    guarded("runs", lambda: [run.state for run in listing.runs(open_store(path))])
    for name in runs:
        guarded("steps", lambda: steps(path, name))
        guarded("branches", lambda: branched(path, name))
        guarded("verify", lambda: [one.what for one in verify.verify(open_store(path).run(name)).problems])
    guarded("import", lambda: [one.run for one in exchange.import_tape(mine, path)])
    print("done", "")

def look(words):
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
    threading.stack_size({STACK})
    thread = threading.Thread(target=everything, args=words)
    thread.start()
    thread.join()
    sys.stdout.flush()
    os._exit(0)

for line in sys.stdin:
    child = os.fork()
    if not child:
        look(line.rstrip().split("|"))
    print("status", os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def looker() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", LOOKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.fixture
def look(looker: subprocess.Popen[str]) -> Callable[..., dict[str, str]]:
    """What each reader makes of a file, all of them in one process, which must live to say so."""

    def ask(path: Path, *runs: str) -> dict[str, str]:
        assert looker.stdin is not None and looker.stdout is not None
        looker.stdin.write("|".join([str(path), str(path.parent / "mine.db"), *runs]) + "\n")
        looker.stdin.flush()
        found: dict[str, str] = {}
        for line in looker.stdout:
            name, _, what = line.rstrip("\n").partition(" ")
            if name == "status":
                assert (what, "done" in found) == ("0", True), found
                break
            found[name] = what
        del found["done"]
        return found

    return ask
