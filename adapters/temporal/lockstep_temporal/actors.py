"""Executions of a fork's tail, and what those who play them are told and tell: see `stage`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob

from lockstep_temporal.asks import LAST, Ask, Ended
from lockstep_temporal.driver import Drive
from lockstep_temporal.trying import Told
from lockstep_temporal.world import World


class Signalled(msgspec.Struct, frozen=True):
    """A signal that an activity has sent to the workflow which waits for it: how long after that had asked, and its
    place among what the workflow was told then."""

    after: int
    rank: int
    job: WorkflowActivationJob


class Given(msgspec.Struct, frozen=True):
    """An ask is answered, and nothing runs.

    result   an ActivityResolution, a ChildWorkflowResult, or the Failure of an external signal or cancel
    after    how long after it was asked, in nanoseconds
    run_id   child: that it started with; `started`: how long after it was asked
    rank     its place among what the workflow was told at once
    cause    child: why it could not be started
    never    not by itself: it was cancelled, and is answered with `result` when it is again
    signals  what an activity has sent meanwhile
    """

    result: Any = None
    after: int = 0
    run_id: str = ""
    started: int = 0
    cause: int = 0
    rank: int = LAST
    never: bool = False
    signals: tuple[Signalled, ...] = ()


class Inbound(msgspec.Struct, frozen=True):
    """What came from outside in the record, after the cut.

    step   the number of the task in its run that heard of it, from 0; `alone`: and of nothing else
    at     when
    rank   its place among what the workflow was told then
    """

    step: int
    at: int
    alone: bool
    jobs: tuple[WorkflowActivationJob, ...]
    rank: int = LAST


class Unable(Exception):
    """A fork cannot go on. `code`-less: who records it says how."""


class Actor:
    """One execution that is driven. `parent`, `ask`: of a child, whose, and what it was asked for with; `lane`: where
    its calls are recorded; `turn`: which run of its chain it is, from 0 at the cut; `first`: what it begins with, until
    it has."""

    def __init__(
        self, world: World, drive: Drive, *, parent: Actor | None = None, ask: Ask | None = None, lane: str = "main"
    ) -> None:  # fmt: skip
        self.world = world
        self.drive = drive
        self.parent = parent
        self.ask = ask
        self.lane = lane
        self.turn = 0
        self.first: WorkflowActivation | None = None

    @property
    def id(self) -> str:
        return str(self.world.init.workflow_id)


class Hooks(msgspec.Struct, frozen=True):
    """Who hears of what the stage does, and decides.

    decide   `decide(actor, ask)`: its answer; None: it runs for real. Raises what stops the fork
    task     `task(actor, activation, completion)`: of each one
    turn     `turn(actor, ended, first)`: an execution of the chain has ended; `first`: of the run that follows, or None
    follows  whether the next run of the workflow's own chain is driven
    attempt  of each attempt of an activity
    unanswered  `unanswered(actor, ask)`: what is `Given.never` is waited for, and nothing else happens; a child is
             driven then. Raises what stops the fork
    chain    `chain(turn)`: run id and seed of the run so many turns after the first, where they are known
    timer    `timer(actor, ask)`: one is set, or was before the cut and is on
    """

    decide: Callable[[Actor, Ask], Given | None]
    task: Callable[[Actor, WorkflowActivation, Any], None] = lambda *_: None
    turn: Callable[[Actor, Ended, WorkflowActivation | None], None] = lambda *_: None
    follows: Callable[[], bool] = lambda: True
    attempt: Told = lambda *_: None
    timer: Callable[[Actor, Ask], None] = lambda *_: None
    unanswered: Callable[[Actor, Ask], None] = lambda *_: None
    chain: Callable[[int], tuple[str, int] | None] = lambda _: None
