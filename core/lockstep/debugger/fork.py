"""Forks a run: the program again, served up to a step, with edited answers where asked, and live from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep import launch
from lockstep.debugger import edits as editing
from lockstep.debugger import ending
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.debugger.replay import directory, recipe, revealed, untrusted
from lockstep.errors import Code, Difference, TargetError
from lockstep.launch.outcome import Outcome, coverage
from lockstep.log.address import called
from lockstep.log.store import Store, open_store
from lockstep.log.timeline import Timeline, resolve
from lockstep.session import policy as policies
from lockstep.session import rules
from lockstep.session.policy import Policy, Tail
from lockstep.session.report import Coverage, Report
from lockstep.session.tail import Plan, encode

if TYPE_CHECKING:
    from lockstep.adapter.native import Continued


class Forked(msgspec.Struct, frozen=True):
    """How a fork went.

    address     of its branch: "refund@try-2"
    state       complete, failed, refused (a call may not run), diverged (the part served was not the recorded one), or
                interrupted
    error       as its end says it: {"type", "message", "function"}; None where it ended well
    live        calls past the cut that ran for real; `reused`, `served` and `edited`: that were answered
    refused     what may not run, in words
    unreached   edits whose calls were not made
    changed     what of the target is another than was recorded, all of it past the cut, in words
    edits       the places that were to be edited
    shared      the last step that it shares with its parent
    live_from   the first effect that ran for real, as "8.1"; "" for none
    last        the number of its last step
    answer      refused: where to fork again, and which call to edit there, to give it an answer
    difference  diverged: the first one
    asked       whether somebody asked it to end by a signal, as Ctrl-C does
    """

    run: str
    branch: str
    address: str
    origin: str
    state: str
    exit: int
    error: dict[str, Any] | None
    steps: int
    live: int
    reused: int
    served: int
    edited: int
    refused: tuple[str, ...]
    unreached: tuple[str, ...]
    edits: tuple[str, ...]
    shared: int
    live_from: str
    last: int
    answer: tuple[str, str] | None
    difference: Difference | None = msgspec.field(name="divergence")
    seconds: float = 0.0
    command: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    faults: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    asked: bool = False


def fork(
    store: str,
    address: str,
    command: Sequence[str] = (),
    *,
    edits: Sequence[Edit] = (),
    live: Sequence[str] = (),
    tail: Tail = "",
    branch: str = "",
    stdout: int | None = None,
    stderr: int | None = None,
    trust: bool = False,
    isolate: bool = False,
    debug: bool = False,
    start: Callable[..., Outcome] = launch.run,
    policy: Policy | None = None,
) -> Forked:
    """Forks a run that was recorded from a command, in a process of its own.

    command  run this instead of the recorded command, in the present working directory
    edits    answers in place of recorded ones
    live     patterns of calls that may run for real, whatever they do
    tail     what becomes of calls past the cut, see `session.policy.Policy`
    branch   the new branch's name; if it exists, `name-2`. "fork" by default
    policy   in the place of `live` and `tail`
    start    what starts the command: `launch.run`, or a `launch.nursery` in its place

    Raises StoreError, AddressError (LS205, LS206), LS302 where trust is needed, and TargetError (LS401 to LS405).
    """
    with open_store(store) as opened:
        allowed = policy if policy is not None else policies.given(live, tail, rules.here().effects)
        made = prepare(opened, address, edits, allowed, branch)
        place = resolve(opened, address)
        reader, told = place.timeline.reader, recipe(place.timeline.reader)
        words = tuple(command) or told.command
        if not words:
            raise TargetError(
                Code.NO_TARGET,
                f"run {reader.info.name} was not recorded from a command. Name one: lockstep fork {address} -- CMD",
            )
        if reader.info.origin and not command and not trust:
            raise untrusted(reader.info.name, reader.info.origin, words)
        plan = begin(opened, reader.info.name, made)
    with directory("" if command else told.cwd):
        outcome = start(
            tuple(command) or revealed(store, reader.meta, told.command), "fork", store, reader.info.name,
            branch=plan.parent, plan=encode(plan), hash_seed=told.hash_seed or None,
            images=told.image, foreign=told.foreign, stdout=stdout, stderr=stderr, isolate=isolate, debug=debug,
        )  # fmt: skip
    if outcome.error is not None:
        raise outcome.error
    if outcome.fault:
        raise TargetError(Code.BAD_TARGET, f"the fork could not begin: {outcome.fault.splitlines()[-1]}")
    return judge(
        store, reader.info.name, plan, outcome.status, outcome.report, words, coverage(outcome), asked=outcome.asked
    )


def given(edits: Mapping[str, Any], run: str = "") -> tuple[Edit, ...]:
    """Edits as they are given in Python: address, or address and path -> value. `run`: that of the fork."""
    return tuple(editing.given(text, value, run) for text, value in edits.items())


def planned(path: str, address: str, edits: Sequence[Edit], policy: Policy, branch: str) -> tuple[str, Plan]:
    """The run and the plan of a fork whose branch has been made. Raises StoreError, AddressError, EditError,
    TargetError."""
    with open_store(path) as store:
        run = resolve(store, address).timeline.reader.info.name
        return run, begin(store, run, prepare(store, address, edits, policy, branch))


def prepare(store: Store, address: str, edits: Sequence[Edit], policy: Policy, branch: str) -> Plan:
    """The plan of a fork. Raises AddressError, TargetError."""
    return plans.plan(resolve(store, address), branch or "fork", edits, policy)


def begin(store: Store, run: str, plan: Plan) -> Plan:
    """Makes the branch; returns the plan with its name."""
    made = store.create_branch(run, plan.branch, plan.parent, plan.upto)
    return msgspec.structs.replace(plan, branch=made.name)


def course(timeline: Timeline, upto: int) -> tuple[int, str, int, str]:
    """Of a branch that leaves its parent at a position: the last step that it shares, its first effect that ran for
    real, its last step, and a call without an outcome there."""
    shared, live_from = 0, ""
    for step in timeline.steps:
        ends = [(effect, effect.end) for effect in step.effects]
        own = [effect for effect, end in ends if end is not None and end.pos > upto and not end.name]
        if own and not live_from:
            live_from = f"{step.number}.{own[0].number}"
        if step.effects and all(end is not None and end.pos <= upto for _, end in ends):
            shared = step.number
    last = timeline.steps[-1]
    flying = [effect for effect in last.effects if effect.end is None]
    return shared, live_from, last.number, f"{last.number}.{flying[-1].number}" if flying else ""


def continued(store: str, done: Continued, edits: Sequence[Edit]) -> Forked:
    """What became of the fork of a run that a framework keeps itself, as its adapter says."""
    report = done.report
    with open_store(store) as opened:
        steps = Timeline(opened.run(report.run, report.branch)).steps
    error = done.error
    told = {"type": type(error).__name__, "message": str(error), "function": ""} if error is not None else None
    return Forked(
        run=report.run, branch=report.branch, address=called(report.run, report.branch), origin=done.origin,
        state=report.state, exit=0 if report.state == "complete" else 1, error=told, steps=report.steps,
        live=report.live, reused=report.answers.get("reused", 0), served=report.answers.get("served", 0),
        edited=report.answers.get("edited", 0), refused=report.refused, unreached=report.unreached,
        edits=tuple(editing.told(edit) for edit in edits),
        shared=done.shared, live_from=done.first, last=steps[-1].number if steps else 0, answer=done.answer,
        difference=report.difference, seconds=report.seconds, coverage=report.coverage, faults=report.faults,
        changed=report.changed,
    )  # fmt: skip


def judge(
    store: str, run: str, plan: Plan, exit: int, report: Report | None, command: tuple[str, ...],
    covered: tuple[Coverage, ...], *, asked: bool = False,
) -> Forked:  # fmt: skip
    """What became of it, by its report and its branch."""
    state = report.state if report is not None else "interrupted"
    if state == "complete" and exit:
        state = "failed"  # Python keeps the argument of `sys.exit` to itself
    with open_store(store) as opened:
        # Of one that was killed by nobody's wish it is all that is known; one that was stopped did not come to its end,
        # whatever it made of that.
        if state in ("complete", "failed", "interrupted") and not asked:
            ending.write(opened, run, exit, branch=plan.branch)
        reader = opened.run(run, plan.branch)
        end = ending.told(reader)
        shared, live_from, last, flying = course(Timeline(reader), plan.upto)
    address = called(run, plan.branch)
    answers = report.answers if report is not None else {}
    return Forked(
        run=run,
        branch=plan.branch,
        address=address,
        origin=plan.origin,
        state=state,
        exit=exit,
        error=end.get("error"),
        steps=report.steps if report is not None else 0,
        live=report.live if report is not None else 0,
        reused=answers.get("reused", 0),
        served=answers.get("served", 0),
        edited=answers.get("edited", 0),
        refused=report.refused if report is not None else (),
        unreached=report.unreached if report is not None else (),
        edits=tuple(place for edit in plan.edits for place in edit.told),
        shared=shared,
        live_from=live_from,
        last=last,
        answer=(f"{address}:{last}", flying) if state == "refused" and flying else None,
        difference=report.difference if report is not None else None,
        seconds=report.seconds if report is not None else 0.0,
        command=command,
        coverage=covered,
        faults=report.faults if report is not None else (),
        asked=asked,
    )
