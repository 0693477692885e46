"""`--target`: replays and forks in this process, of a callable, or of what a framework's own run is started from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep import inprocess_native as natives
from lockstep import inprocess_target
from lockstep.adapter.native import ForkOptions
from lockstep.debugger import fork as forks
from lockstep.debugger.edits import Edit
from lockstep.debugger.fork import Forked
from lockstep.debugger.replay import Replayed
from lockstep.inprocess import program
from lockstep.inprocess_target import stdout_to_stderr
from lockstep.launch.target import load
from lockstep.session import policy as policies
from lockstep.session import rules
from lockstep.session.policy import Tail
from lockstep.session.report import Report
from lockstep.session.session import start_replay


def replay(
    store: str, run: str, target: str, *, speed: float, as_json: bool, depth: str = "call", turn: int | None = None,
    until: int | None = None,
) -> Replayed:  # fmt: skip
    """Raises TargetError (LS401, LS402), and what `start_replay` raises."""
    with natives.looked_up(store, run, target) as found, stdout_to_stderr(as_json and found is not None):
        if found is not None:
            done = found.replay(natives.options(store, depth, turn, until, speed, 30.0))
            return _verdict(run, done.report, 0 if done.error is None and done.report.identical else 1)
    natives.only_native(depth=depth != "call", turn=turn, until=until is not None)
    called = program(load(target))
    report, exit = inprocess_target.ran(start_replay(store, run, speed=speed), called, as_json)
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
    with natives.looked_up(store, address, target) as found, stdout_to_stderr(as_json and found is not None):
        if found is not None:
            asked = ForkOptions(
                edits=tuple(edits), policy=policy, branch=branch, tasks=tuple(tasks), thread=thread, turn=turn, own=own
            )
            return forks.continued(store, found.fork(asked), edits)
    natives.only_native(own, tasks=tasks, thread=thread, turn=turn)
    return inprocess_target.forked(store, address, target, edits, policy, branch, as_json=as_json)
