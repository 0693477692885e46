"""Probes of a run that was recorded from a command: each is one fork, all from one start of an interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from lockstep import launch
from lockstep.debugger import probes
from lockstep.debugger.bisect import Runner
from lockstep.debugger.cuts import Cut
from lockstep.debugger.fork import Forked, fork, given
from lockstep.debugger.probes import Made
from lockstep.debugger.replay import recipe
from lockstep.debugger.view import DIVERGED
from lockstep.errors import Code, TargetError
from lockstep.launch.nursery import Nursery
from lockstep.launch.outcome import Outcome
from lockstep.log.model import Value
from lockstep.log.store import RunReader, open_store
from lockstep.session import rules
from lockstep.session.policy import Tail


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


def runner(
    store: str, run: str, command: Sequence[str], *, live: Sequence[str], tail: Tail, trust: bool, isolate: bool,
    output: int | None, debug: bool, nursery: Nursery | None = None,
) -> Runner:  # fmt: skip
    """Makes probes of that run, an address without a step.

    output   file descriptor for what they print, None leaves ours
    nursery  starts the interpreter once for all of them; without one it is started for each
    """

    def probe(cut: Cut, branch: str) -> Made:
        policy = cut.policy(live, tail, rules.here().effects)

        def forked(start: Callable[..., Outcome]) -> Forked:
            done = fork(
                store, f"{run}:{cut.at}", command, edits=given(cut.edits), policy=policy, branch=branch,
                stdout=output, stderr=output, trust=trust, isolate=isolate, debug=debug, start=start,
            )  # fmt: skip
            if done.asked:
                raise KeyboardInterrupt  # ended from outside: it says nothing about the run, and no other is to follow
            return done

        # Of another command nobody knows yet whether it loads us: that is for the one which is started by itself.
        warm = nursery if not command else None
        done = forked(warm.run if warm is not None else launch.run)
        if done.state == DIVERGED and warm is not None:
            with open_store(store) as opened:
                opened.delete_branch(done.run, done.branch)
            done = forked(launch.run)
        difference = done.difference
        told = "" if difference is None else f"{difference.code} {difference.reason}"
        return Made(done.branch, done.live, done.refused, told, done.seconds)

    return probe
