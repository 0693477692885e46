"""Plain Python once more, by commands: the program under `lockstep record`, with no line of it changed, replayed and
forked in processes of their own.

    lockstep conformance lockstep.conformance.plain_command:subject

As a program it runs the agent of a job file and prints what came of it as one line of JSON.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from lockstep.conformance import plain
from lockstep.conformance.plain import SYNC
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.debugger import bisect as bisects
from lockstep.debugger import fork as forks
from lockstep.debugger import forked_probes, predicate
from lockstep.debugger.replay import replay
from lockstep.debugger.view import View
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.session.policy import Policy


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
        return _said(_command(work, _program(work)))

    def record(self, work: Work) -> Done:
        recording = ["-m", "lockstep", "record", "--store", work.store, "--run", work.scenario.name, "--"]
        done = _said(_command(work, [*recording, sys.executable, *_program(work)]))
        with open_store(work.store) as store:
            info = store.run(store.names()[0]).info
        return _with(done, run=info.name, faults=("some of it was not recorded",) * info.incomplete)

    def replay(self, work: Work, run: str) -> Done:
        _program(work)
        with _output() as output:
            told = replay(work.store, run, stdout=output.fileno(), stderr=output.fileno())
            done = _said(output.text())
        return _with(done, run=run, identical=told.identical, cut=told.cut, difference=told.difference)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        _program(work)
        with _output() as output:
            told = forks.fork(
                work.store, address, edits=forks.given(edits), live=[*live], stdout=output.fileno(),
                stderr=output.fileno(),
            )  # fmt: skip
            done = _said(output.text())
        return _with(done, run=told.address, state=told.state, difference=told.difference, refused=told.refused)

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        _program(work)
        asked = predicate.asked(lambda view: bad(_judged(view)))
        with open_store(work.store) as store, _output() as output:
            policy, ran = Policy((), ""), forked_probes.ran(store.run(run), run, ())
            inquiry = bisects.begin(store, run, lambda recorded: asked, policy, ran)
            if not isinstance(inquiry, bisects.Inquiry):
                return Found(inquiry.verdict, inquiry.step, inquiry.effect, inquiry.probes)
            runner = forked_probes.runner(
                work.store, run, (), live=(), tail="", trust=False, isolate=False, output=output.fileno(), debug=False
            )
            verdict = bisects.run(inquiry, runner)
        return Found(verdict.verdict, verdict.step, verdict.effect, verdict.probes)


class _Output:
    """A file that a command prints into."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(path, "wb")  # noqa: SIM115 - it is closed where it was made

    def fileno(self) -> int:
        return self._file.fileno()

    def text(self) -> str:
        with open(self._path, encoding="utf-8") as file:
            return file.read()

    def close(self) -> None:
        self._file.close()


@contextmanager
def _output() -> Iterator[_Output]:
    with tempfile.TemporaryDirectory(prefix="lockstep-conformance-") as place:
        output = _Output(os.path.join(place, "output"))
        try:
            yield output
        finally:
            output.close()


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


def _command(work: Work, words: Sequence[str]) -> str:
    ended = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=os.path.join(_place(work.store), "here"),
    )
    if ended.returncode < 0:
        os.kill(os.getpid(), -ended.returncode)  # as a shell does: this process stands for the agent that was killed
    return ended.stdout


def _said(printed: str) -> Done:
    """What the program printed. One that was stopped has not come to that."""
    for line in printed.splitlines():
        if line.startswith('{"outputs"'):
            return msgspec.json.decode(line, type=Done)
    return Done()


def _judged(view: View) -> str:
    done = _said(view.stdout)
    return done.outputs[-1] if done.outputs else ""


def _with(done: Done, **fields: object) -> Done:
    return msgspec.structs.replace(done, **fields)


def main() -> None:
    """Runs the agent, and ends as it does: with its exception where it raises one."""
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
