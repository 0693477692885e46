"""Runs that a framework keeps itself: what an adapter does with a thread that was recorded without a session.

Such a run is called `langgraph/<thread>` and its meta names the adapter. `lockstep.replay`, `fork` and `bisect`, and
the commands of these names, hand it to the functions here; all else about it (listing, showing, diffing, verifying) is
read from inert data, and needs no adapter.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.session.policy import Policy
from lockstep.session.report import Report

if TYPE_CHECKING:
    from lockstep.debugger.edits import Edit
    from lockstep.log.store import RunReader, Store
    from lockstep.log.timeline import Place, Timeline

type Depth = Literal["call", "node"]

DEPTHS: tuple[Depth, ...] = get_args(Depth.__value__)


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread is replayed.

    store     path of the store that the reader is of
    depth     "call": the framework's nodes run, and their calls are served; "node": nothing of them runs
    turn      the number of the only turn to replay, from 1; None: all
    until     the step after which the replay stops; None: the run's end
    speed     pace of streams: 0 at once, 1 as recorded
    deadline  seconds without any progress after which strands that wait for each other count as diverged
    own       keyword arguments that only this adapter has (`Native.own`)
    """

    store: str
    depth: Depth = "call"
    turn: int | None = None
    until: int | None = None
    speed: float = 0.0
    deadline: float = 30.0
    own: Mapping[str, Any] = {}


def check_range(options: ReplayOptions, run: str, turns: int, steps: int) -> None:
    """Raises TargetError LS402 where a replay is to be of a turn, or up to a step, that the run has not.

    run           how the error calls it
    turns, steps  how many it has
    """
    if options.turn is not None and not 0 < options.turn <= turns:
        raise TargetError(Code.BAD_TARGET, f"{run} has no turn {options.turn}: it has {turns}")
    if options.until is not None and not 0 <= options.until < steps:
        raise TargetError(Code.BAD_TARGET, f"{run} has no step {options.until}: its last is {steps - 1}")


def no_loop(why: str, instead: str) -> None:
    """Raises TargetError LS402 where an event loop is running, and what is to be run needs one of its own.

    why      what needs one: "this thread was run asynchronously"
    instead  the function of `lockstep` to await there: "areplay", "afork"
    """
    asyncio = sys.modules.get("asyncio.events")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise TargetError(
            Code.BAD_TARGET, f"{why}, and an event loop is running here: await lockstep.{instead} instead"
        )


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """How a replay went.

    report   with `mode` "replay": identical, cut, difference, steps, digest, live_calls, coverage, faults, seconds
    results  what each turn returned, in order
    error    what the last turn raised by itself; None where it returned, or was stopped by a difference
    """

    report: Report
    results: list[Any] = []
    error: BaseException | None = None


class ForkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread is forked at a place.

    edits     answers and states in place of recorded ones. A value may be an object: it is as it was given in code
    policy    what may run for real past the cut
    branch    the new branch's name, "" for "fork"; if it exists, `name-2`
    tasks     of the tasks that ran on the step's checkpoint, those that run again: the others keep what they wrote.
              Empty: all run again
    thread    go on as this thread, instead of as a branch of the same one
    within    what was answered and written on the way to the step is kept up to this position: for probes of bisect
    exact     the target has to be the recorded one past the cut too: likewise
    turn      the last recorded turn that is run, by its number from 1; None: to the end of what was recorded
    deadline  as for a replay
    own       keyword arguments that only this adapter has (`Native.own`)
    """

    edits: tuple[Edit, ...] = ()
    policy: Policy = Policy()
    branch: str = ""
    tasks: tuple[str, ...] = ()
    thread: str = ""
    within: int | None = None
    exact: bool = False
    turn: int | None = None
    deadline: float = 30.0
    own: Mapping[str, Any] = {}


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a fork.

    report   with `mode` "fork" and the branch's `run`, `branch` and `state`; live, answers, refused, unreached,
             difference
    results  what each of its turns returned, in order
    error    what the last one raised by itself
    config   what to hand to the framework to go on from the branch's end: how, is the framework's own affair
    origin   the place that it left, without the run: ":7"
    upto     the position of the last event that it shares with its parent
    shared   the last step that it shares
    first    the first effect that ran for real, as "8.1"; "" for none
    answer   refused: (where to fork again, which call to edit there), to give it an answer
    """

    report: Report
    results: list[Any] = []
    error: BaseException | None = None
    config: Mapping[str, Any] = {}
    origin: str = ""
    upto: int = 0
    shared: int = 0
    first: str = ""
    answer: tuple[str, str] | None = None


def first_and_answer(
    timeline: Timeline, cut: int, address: str, unasked: Container[str] = ()
) -> tuple[str, tuple[str, str] | None]:
    """`Continued.first` and `answer`, read from a fork's branch.

    cut      the position of the last event that it shares with its parent
    address  the branch's
    unasked  kinds of effects that are nobody's answer, such as a workflow's timers and signals
    """
    first, answer = "", None
    for step in timeline.steps:
        for effect in step.effects:
            number = f"{step.number}.{effect.number}"
            if effect.begin.pos > cut and effect.end is None:
                answer = f"{address}:{step.number}", number
            elif effect.begin.pos > cut and effect.end is not None and not effect.end.name and not first:
                first = number if effect.kind not in unasked else ""
    return first, answer


class Native(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter does with runs of its own. Each function imports the framework when it is called, not before.

    replay   `replay(reader, target, options)`: of the branch that is read. Returns also when the run diverged; raises
             TargetError where it cannot begin, as under a running loop where a turn needs one of its own
    fork     `fork(store, place, target, options)`: at a step or effect. Returns also when a call was refused; raises
             AddressError, EditError and TargetError where it cannot begin
    areplay, afork  the same under a running loop
    prepare  called before a target is loaded that is given as `module:name`, so that Lockstep imports the framework and
             not the program: what the framework is not to do then. None: nothing
    own      keyword arguments of `lockstep.replay`, `fork` and `bisect` that only this adapter has: name -> what it is
    alike    whether two states, as inert data by channel, say the same where they are not equal: what the framework
             draws anew each time does not count. None: only equal ones do
    plain    `plain(reader, target, own)`: what makes of a stored value the one that the program had, for predicates of
             bisect, where a run keeps values as a codec of its user's has them; None where it does not. None: never
    """

    replay: Callable[[RunReader, Any, ReplayOptions], Played]
    areplay: Callable[[RunReader, Any, ReplayOptions], Awaitable[Played]]
    fork: Callable[[Store, Place, Any, ForkOptions], Continued]
    afork: Callable[[Store, Place, Any, ForkOptions], Awaitable[Continued]]
    prepare: Callable[[], None] | None = None
    alike: Callable[[Value, Value], bool] | None = None
    plain: Callable[[RunReader, Any, Mapping[str, Any]], Callable[[Value], Value] | None] | None = None
    own: Mapping[str, str] = {}
