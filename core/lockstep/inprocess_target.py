"""Calls a target in this process, in the place of a command: under a session, or as a framework's run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lockstep import inprocess_native as natives
from lockstep.debugger import fork as forks
from lockstep.debugger.edits import Edit
from lockstep.debugger.fork import Forked
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.inprocess import ended, program
from lockstep.launch import attaching, offspring
from lockstep.launch.target import load
from lockstep.session import rules
from lockstep.session.policy import Policy
from lockstep.session.report import Report
from lockstep.session.session import Session, start_fork


def probe(store: str, order: Order) -> Made:
    """One probe of a bisect, by its target."""
    policy = order.cut.policy(order.live, order.tail, rules.here().effects)
    edits = forks.given(order.cut.edits, order.run)
    address = f"{order.run}:{order.cut.at}"
    with natives.looked_up(store, address, order.target) as found, stdout_to_stderr(found is not None):
        if found is not None:
            return natives.made(found.fork(natives.probe_options(edits, order.cut, policy, order.branch)))
    done = forked(store, address, order.target, edits, policy, order.branch, as_json=True)
    told = "" if done.difference is None else f"{done.difference.code} {done.difference.reason}"
    return Made(done.branch, done.live, done.refused, told, done.seconds)


def forked(
    store: str, address: str, target: str, edits: Sequence[Edit], policy: Policy, branch: str, *, as_json: bool
) -> Forked:
    """A fork of a run that no framework keeps."""
    called = program(load(target))
    run, plan = forks.planned(store, address, edits, policy, branch)
    report, exit = ran(start_fork(store, run, plan), called, as_json)
    return forks.judge(store, run, plan, exit, report, (), report.coverage)


def ran(session: Session, target: Callable[[], Any], as_json: bool) -> tuple[Report, int]:
    """Calls the target under a session, to the end of both: the report, and 0 or 1 as an exit status."""
    offspring.begin(session)
    attaching.watch(in_code=True)
    error: BaseException | None = None
    result: Any = None
    with stdout_to_stderr(as_json):
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
def stdout_to_stderr(wanted: bool) -> Iterator[None]:
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


def load_for(store: str, run: str, target: str) -> None:
    """Imports a target as probes of that run do, so that the first of them need not. Raises as they do."""
    with natives.looked_up(store, run, target) as found:
        if found is None:
            load(target)
