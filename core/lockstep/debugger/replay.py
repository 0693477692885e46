"""Replays a run that was recorded from a command: the same command again, with the recorded answers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from lockstep import launch
from lockstep.debugger import ending, processes, words
from lockstep.errors import Code, Difference, LockstepError, TargetError
from lockstep.launch.outcome import Outcome, coverage
from lockstep.log import address as addresses
from lockstep.log.meta import SCRUBBED
from lockstep.log.model import Value
from lockstep.log.store import RunReader, open_store
from lockstep.log.timeline import branch_of
from lockstep.session.report import Coverage

SUPERVISOR = "launch"  # the lane of what only the supervisor sees


class Replayed(msgspec.Struct, frozen=True):
    """The verdict on one replay.

    identical      every request, answer, output and the end were the recorded ones, and all was covered
    cut            the recording is interrupted, and the replay was stopped where it ends
    isolated       by what the command was kept off the network; "" if it was not
    command        what was run
    recorded_exit  the recorded command's status, -N for signal N, None if it is not known
    redacted       secrets whose values nobody knew here, by name: the program got placeholders for them
    """

    run: str
    identical: bool
    cut: bool
    difference: Difference | None = msgspec.field(name="divergence")
    steps: int
    digest: str
    live_calls: int
    seconds: float
    exit: int
    recorded_exit: int | None
    command: tuple[str, ...]
    isolated: str
    coverage: tuple[Coverage, ...]
    faults: tuple[str, ...]
    redacted: tuple[str, ...] = ()


class Recipe(msgspec.Struct, frozen=True):
    """How a run was started: what a replay has to do alike."""

    command: tuple[str, ...]
    cwd: str
    hash_seed: str
    image: int
    foreign: bool
    exit: int | None


def recipe(reader: RunReader) -> Recipe:
    """Reads it out of a run. One that was recorded in process has no command."""
    meta = reader.meta if isinstance(reader.meta, dict) else {}
    command = meta.get("command")
    image = meta.get("image")
    return Recipe(
        command=tuple(os.fsdecode(word) for word in command if isinstance(word, (str, bytes)))
        if isinstance(command, list)
        else (),
        cwd=str(meta.get("cwd") or ""),
        hash_seed=str(meta.get("hash_seed") or ""),
        image=image if isinstance(image, int) else 0,
        foreign=bool(meta.get("foreign")),
        exit=ending.read(reader),
    )


def replay(
    store: str,
    run: str,
    command: Sequence[str] = (),
    *,
    speed: float = 0.0,
    stdout: int | None = None,
    stderr: int | None = None,
    trust: bool = False,
    isolate: bool = False,
    debug: bool = False,
) -> Replayed:
    """Replays a run once, in a process of its own, and compares how it ended.

    command  run this instead of the recorded command, in the present working directory
    speed    pace of streams: 0 at once, 1 as recorded, 10 ten times faster
    trust    run the recorded command also where the recording came from elsewhere
    stdout   file descriptor for the command's stdout, stderr likewise; None leaves ours
    isolate  keep it off the network

    Raises StoreError, LS302 where that trust is needed, and TargetError (LS401 to LS403, LS405) where nothing could be
    run; KeyboardInterrupt where a signal ended the command early.
    """
    with open_store(store) as opened:
        reader = branch_of(opened, run)
        told = recipe(reader)
    words_ = tuple(command) or told.command
    if not words_:
        raise TargetError(
            Code.NO_TARGET, f"run {run} was not recorded from a command. Name one: lockstep replay {run} -- CMD"
        )
    if isinstance(reader.meta, dict) and SCRUBBED in reader.meta:
        raise TargetError(
            Code.BAD_TARGET,
            f"run {run} was scrubbed: what its program worked with is no longer in it. It is there to be read; "
            f"to replay, take the run it was made of: lockstep replay {reader.meta[SCRUBBED]!s}",
        )
    if reader.info.origin and not command and not trust:
        raise untrusted(run, reader.info.origin, words_)
    with directory("" if command else told.cwd):
        outcome = launch.run(
            tuple(command) or revealed(store, reader.meta, told.command), "replay", store, reader.info.name,
            branch=reader.branch, speed=speed,
            hash_seed=told.hash_seed or None, images=told.image, foreign=told.foreign, stdout=stdout, stderr=stderr,
            isolate=isolate, debug=debug,
        )  # fmt: skip
    if outcome.error is not None:
        raise outcome.error
    if outcome.asked and (outcome.report is None or not outcome.report.identical):
        raise KeyboardInterrupt  # ended from outside: it says nothing about the run
    if outcome.fault:
        raise TargetError(Code.BAD_TARGET, f"the replay could not begin: {outcome.fault.splitlines()[-1]}")
    with open_store(store) as opened:
        return _judge(branch_of(opened, run), words_, told, outcome)


def untrusted(run: str, origin: str, command: Sequence[str]) -> LockstepError:
    """Somebody else's recording names a command of their choice: to run it is not theirs to decide."""
    return LockstepError(
        Code.UNTRUSTED,
        f"run {run} came from {origin}, and its command was not run: {shlex.join(command)}. If you trust it: "
        "--trust. To run your own program instead: -- CMD",
    )


def _judge(reader: RunReader, command: tuple[str, ...], told: Recipe, outcome: Outcome) -> Replayed:
    report = outcome.report
    difference = report.difference if report is not None else None
    if report is not None and difference is not None:
        difference = processes.in_run(reader, difference, report.process, outcome.processes)
    # A replay that was stopped (diverged, or at the cut) ended by our hand: its status says nothing.
    stopped = difference is not None or (report is not None and report.cut)
    if not stopped and (report is None or (told.exit is not None and outcome.status != told.exit)):
        same = outcome.status == told.exit
        difference = Difference(
            code=Code.END,
            reason="the command was ended before it could say what it did"
            if same
            else "the command ended in another way",
            step=None if report is None else report.steps + 1,
            lane=SUPERVISOR,
            kind="end",
            name="exit status",
            source="",
            expected=words.ended(told.exit),
            actual=words.ended(outcome.status),
            same_until=None if report is None else report.steps,
        )
    if difference is None and not (report is not None and report.cut):
        difference = processes.missing(processes.recorded(reader), outcome.processes)
    covered = coverage(outcome)
    return Replayed(
        run=addresses.called(reader.info.name, reader.branch),
        identical=difference is None and report is not None and report.identical and not words.uncovered(covered),
        cut=report is not None and report.cut,
        difference=difference,
        steps=report.steps if report is not None else 0,
        digest=report.digest if report is not None else "",
        live_calls=report.live_calls if report is not None else 0,
        seconds=report.seconds if report is not None else 0.0,
        exit=outcome.status,
        recorded_exit=told.exit,
        command=command,
        isolated=outcome.isolated,
        coverage=covered,
        faults=report.faults if report is not None else (),
        redacted=report.redacted if report is not None else (),
    )


def revealed(store: str, meta: Value, command: tuple[str, ...]) -> tuple[str, ...]:
    """The recorded command with its secrets, as far as they are known here."""
    from lockstep.session.session import replayed  # a whole session, of which nothing else is needed here

    secrets, _ = replayed(store, meta if isinstance(meta, dict) else {})
    return tuple(str(secrets.reveal(word)) for word in command)


@contextmanager
def directory(path: str) -> Iterator[None]:
    """Works in a directory for the length of a block; "" stays."""
    before = os.getcwd()
    try:
        if path:
            os.chdir(path)
    except OSError as error:
        raise TargetError(
            Code.NO_TARGET,
            f"the run was recorded in {path}, which cannot be entered ({error.strerror}). "
            "Name the command to run it here: -- CMD",
        ) from error
    try:
        yield
    finally:
        os.chdir(before)
