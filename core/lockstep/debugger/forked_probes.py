"""Probes of a run that was recorded from a command: each is one fork, all from one start of an interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from lockstep import launch
from lockstep.debugger import probes
from lockstep.debugger.fork import Forked, fork, given
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.debugger.replay import recipe
from lockstep.debugger.view import DIVERGED
from lockstep.errors import Code, TargetError
from lockstep.launch.nursery import Nursery
from lockstep.launch.outcome import Outcome
from lockstep.log.model import Value
from lockstep.log.store import RunReader, open_store
from lockstep.session import rules


def ran(reader: RunReader, run: str, command: Sequence[str]) -> Value:
    """What is run, for the probes' names. Raises TargetError LS401 where nobody says."""
    told = recipe(reader)
    words = tuple(command) or told.command
    if not words:
        raise TargetError(
            Code.NO_TARGET,
            f"run {run} was not recorded from a command. Name one: -- CMD, or what to call: --target module:name",
        )
    return probes.program(words, os.getcwd() if command else told.cwd)


def probe(store: str, order: Order, *, output: int | None, nursery: Nursery | None = None) -> Made:
    """Makes one, see `lockstep.performing.perform`."""
    cut, command = order.cut, order.command
    policy = cut.policy(order.live, order.tail, rules.here().effects)

    def forked(start: Callable[..., Outcome]) -> Forked:
        done = fork(
            store, f"{order.run}:{cut.at}", command, edits=given(cut.edits), policy=policy, branch=order.branch,
            stdout=output, stderr=output, trust=order.trust, isolate=order.isolate, debug=order.debug, start=start,
        )  # fmt: skip
        if done.asked:
            raise KeyboardInterrupt  # ended from outside: it says nothing about the run
        return done

    done = forked(nursery.run if nursery is not None else launch.run)
    if done.state == DIVERGED and nursery is not None:
        with open_store(store) as opened:
            opened.delete_branch(done.run, done.branch)
        done = forked(launch.run)
    difference = done.difference
    told = "" if difference is None else f"{difference.code} {difference.reason}"
    return Made(done.branch, done.live, done.refused, told, done.seconds)
