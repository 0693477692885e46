"""Plain Python once more, by commands: the program under `lockstep record`, with no line of it changed, replayed and
forked in processes of their own.

    lockstep conformance lockstep.conformance.plain_command:subject

As a program it runs the agent of a job file and prints what came of it as one line of JSON.
"""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from lockstep.conformance import plain
from lockstep.conformance.plain import SYNC
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.debugger import bisect as bisects
from lockstep.errors import Difference
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve

JUDGE = "judge"


class Commands:
    """Runs the agents as commands. What it cannot show is how a broken hook of the recorder ends: that is broken in the
    process of the tests."""

    modes = (Mode("command", False),)
    unsupported: Mapping[str, str] = {
        "recorder_fault_is_harmless": "hooks are broken in this process, and a command has its own",
        "sync_and_async": "a command is either",
    }
    hooks: tuple[str, ...] = ()

    def run(self, work: Work) -> Done:
        return _command(work, _program(work))

    def record(self, work: Work) -> Done:
        recording = ["-m", "lockstep", "record", "--store", work.store, "--run", work.scenario.name, "--"]
        done = _command(work, [*recording, sys.executable, *_program(work)])
        with open_store(work.store) as store:
            info = store.run(store.names()[0]).info
        return _with(done, run=info.name, faults=("some of it was not recorded",) * info.incomplete)

    def replay(self, work: Work, run: str) -> Done:
        _program(work)
        told, done = _answered(work, "replay", run)
        return _with(
            done, run=run, identical=told["identical"], cut=told["cut"], difference=_difference(told["divergence"])
        )

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        _program(work)
        sets = [word for place, value in edits.items() for word in ("--set", f"{place}={_json(value)}")]
        told, done = _answered(work, "fork", address, *sets, *(f"--live={name}" for name in live))
        return _with(
            done, run=told["address"], state=told["state"], difference=_difference(told["divergence"]),
            refused=tuple(told["refused"]),
        )  # fmt: skip

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        _program(work)
        judge = shlex.join([sys.executable, "-m", __name__, JUDGE, f"{bad.__module__}:{bad.__qualname__}"])
        told, _ = _answered(work, "bisect", run, "--bad", judge)
        return Found(told["verdict"], told["step"], told["effect"], told["probes"])


@functools.cache
def _place(store: str) -> str:
    """Where the commands of a store run: beside its directory, which is looked through for keys."""
    place = f"{os.path.dirname(store)}-agent"
    os.makedirs(os.path.join(place, "here"), exist_ok=True)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def _program(work: Work) -> list[str]:
    """Writes the job, and gives the program's words. They are the same for all acts of a store, whatever the job is: as
    for a program that somebody has changed. It lies above the working directory, where files are not recorded."""
    job = os.path.join(_place(work.store), "agent.json")
    with open(job, "wb") as file:
        file.write(msgspec.json.encode(msgspec.structs.replace(work, mode=SYNC)))
    return ["-m", __name__, job]


def _run(work: Work, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    here = os.path.join(_place(work.store), "here")
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=here)


def _command(work: Work, words: Sequence[str]) -> Done:
    ended = _run(work, words)
    if ended.returncode < 0:
        os.kill(os.getpid(), -ended.returncode)  # as a shell does: this process stands for the agent that was killed
    return _said(ended.stdout)


def _answered(work: Work, *words: str) -> tuple[dict[str, Any], Done]:
    """What a command of Lockstep answers, and what the program printed meanwhile, which goes to stderr then."""
    ended = _run(work, ["-m", "lockstep", *words, "--store", work.store, "--json"])
    told = msgspec.json.decode(ended.stdout, type=dict[str, Any])
    if "error" in told and told.keys() == {"error"}:
        raise RuntimeError(f"{told['error']['code']} {told['error']['message']}")
    return told, _said(ended.stderr)


def _difference(told: Any) -> Difference | None:
    return msgspec.convert(told, Difference | None)


def _json(value: Value) -> str:
    return msgspec.json.encode(value).decode()


def _said(printed: str) -> Done:
    """What the program printed. One that was stopped has not come to that."""
    for line in printed.splitlines():
        if line.startswith('{"outputs"'):
            return msgspec.json.decode(line, type=Done)
    return Done()


def _with(done: Done, **fields: object) -> Done:
    return msgspec.structs.replace(done, **fields)


def judge(reference: str) -> bool:
    """Whether the run that bisect asks about is bad, by the predicate `module:function`."""
    module, _, name = reference.partition(":")
    with open_store(os.environ["LOCKSTEP_STORE"]) as store:
        printed = bisects.recording(resolve(store, os.environ["LOCKSTEP_RUN"]), store.path).stdout
    done = _said(printed)
    return bool(getattr(import_module(module), name)(done.outputs[-1] if done.outputs else ""))


def main() -> None:
    """Runs the agent, and ends as it does: with its exception where it raises one. Or judges a run."""
    if sys.argv[1] == JUDGE:
        sys.exit(judge(sys.argv[2]))
    with open(sys.argv[1], "rb") as file:
        work = msgspec.json.decode(file.read(), type=Work)
    pieces: list[str] = []
    problem: list[Exception] = []

    def agent() -> object:
        try:
            return plain.subject.target(work, pieces)()
        except Exception as error:
            problem.append(error)
            raise

    done = plain.done(agent, pieces)
    print(*done.outputs, sep="\n")
    print(msgspec.json.encode(done).decode(), flush=True)
    if problem:
        raise problem[0]


if __name__ == "__main__":
    main()
else:
    subject = Commands()
