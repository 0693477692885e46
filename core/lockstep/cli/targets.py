"""`--target`: replays and forks in this process, of a callable, or of what a framework's own run is started from."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lockstep import inprocess_native as natives
from lockstep.adapter.native import ForkOptions
from lockstep.debugger import fork as forks
from lockstep.debugger.cuts import Cut
from lockstep.debugger.edits import Edit
from lockstep.debugger.fork import Forked
from lockstep.debugger.probes import Made
from lockstep.debugger.replay import Replayed
from lockstep.inprocess import ended, program
from lockstep.launch import attaching, offspring
from lockstep.launch.target import load
from lockstep.session import policy as policies
from lockstep.session import rules
from lockstep.session.policy import Policy, Tail
from lockstep.session.report import Report
from lockstep.session.session import Session, start_fork, start_replay


def replay(
    store: str, run: str, target: str, *, speed: float, as_json: bool, depth: str = "call", turn: int | None = None,
    until: int | None = None,
) -> Replayed:  # fmt: skip
    """Raises TargetError (LS401, LS402), and what `start_replay` raises."""
    with natives.looked_up(store, run, target) as found, _stdout_to_stderr(as_json and found is not None):
        if found is not None:
            done = found.replay(natives.options(store, depth, turn, until, speed, 30.0))
            return _verdict(run, done.report, 0 if done.error is None and done.report.identical else 1)
    natives.only_native(depth=depth != "call", turn=turn, until=until is not None)
    called = program(load(target))
    report, exit = _run(start_replay(store, run, speed=speed), called, as_json)
    return _verdict(run, report, exit)


def _verdict(run: str, report: Report, exit: int) -> Replayed:
    return Replayed(
        run=run, identical=report.identical, cut=report.cut, difference=report.difference, steps=report.steps,
        digest=report.digest, live_calls=report.live_calls, seconds=report.seconds, exit=exit, recorded_exit=None,
        command=(), isolated="", coverage=report.coverage, faults=report.faults, redacted=report.redacted,
    )  # fmt: skip


def fork(
    store: str, address: str, target: str, *, edits: Sequence[Edit], live: Sequence[str], tail: Tail, branch: str,
    as_json: bool, tasks: Sequence[str] = (), thread: str = "", turn: int | None = None, own: Mapping[str, Any] = {},
) -> Forked:  # fmt: skip
    """`own`: what only the adapter of a framework's run knows. Raises TargetError (LS401, LS402), and what
    `debugger.fork.fork` raises."""
    policy = policies.given(live, tail, rules.here().effects)
    with natives.looked_up(store, address, target) as found, _stdout_to_stderr(as_json and found is not None):
        if found is not None:
            asked = ForkOptions(
                edits=tuple(edits), policy=policy, branch=branch, tasks=tuple(tasks), thread=thread, turn=turn, own=own
            )
            return forks.continued(store, found.fork(asked), edits)
    natives.only_native(own, tasks=tasks, thread=thread, turn=turn)
    return _forked(store, address, target, edits, policy, branch, as_json=as_json)


def _forked(
    store: str, address: str, target: str, edits: Sequence[Edit], policy: Policy, branch: str, *, as_json: bool
) -> Forked:
    """A fork of a run that no framework keeps."""
    called = program(load(target))
    run, plan = forks.planned(store, address, edits, policy, branch)
    report, exit = _run(start_fork(store, run, plan), called, as_json)
    return forks.judge(store, run, plan, exit, report, (), report.coverage)


def probe(store: str, run: str, cut: Cut, target: str, *, live: Sequence[str], tail: Tail, branch: str) -> Made:
    """One probe of a bisect."""
    policy = cut.policy(live, tail, rules.here().effects)
    edits = forks.given(cut.edits, run)
    address = f"{run}:{cut.at}"
    with natives.looked_up(store, address, target) as found, _stdout_to_stderr(found is not None):
        if found is not None:
            return natives.made(found.fork(natives.probe_options(edits, cut, policy, branch)))
    done = _forked(store, address, target, edits, policy, branch, as_json=True)
    told = "" if done.difference is None else f"{done.difference.code} {done.difference.reason}"
    return Made(done.branch, done.live, done.refused, told, done.seconds)


def _run(session: Session, target: Callable[[], Any], as_json: bool) -> tuple[Report, int]:
    offspring.begin(session)
    attaching.watch(in_code=True)
    error: BaseException | None = None
    result: Any = None
    with _stdout_to_stderr(as_json):
        try:
            result = target()
            if hasattr(result, "__await__"):
                result = asyncio.run(_awaited(result))
        except BaseException as raised:
            error = raised
    report, _ = ended(session, result, error)
    if isinstance(error, KeyboardInterrupt):
        raise error
    return report, 0 if error is None else 1


async def _awaited(found: Any) -> Any:
    return await found


@contextmanager
def _stdout_to_stderr(wanted: bool) -> Iterator[None]:
    """What the program prints goes to stderr, where stdout is for JSON."""
    if not wanted:
        yield
        return
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
