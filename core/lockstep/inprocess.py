"""Recording and replaying inside the running process, without a command.

Inside a session that is on already (`lockstep record`, an outer `with`) both join it.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from lockstep import inprocess_native as natives
from lockstep.adapter.native import Continued, ForkOptions, Played, no_loop
from lockstep.errors import Code, Refused, Stop, TargetError
from lockstep.launch import attaching, offspring
from lockstep.log.address import called
from lockstep.log.model import Value
from lockstep.session import current, rules, snapshot
from lockstep.session import policy as policies
from lockstep.session.policy import Policy, Tail
from lockstep.session.report import Coverage, Report
from lockstep.session.session import UNKNOWN, Session, finish, start_fork, start_recording, start_replay

type Store = str | os.PathLike[str] | None


class record:  # noqa: N801 - used as a function: `with lockstep.record("refund")`
    """Records what runs inside it as a run: as a context manager, or as a decorator of a function or
    coroutine function, where each call is a run of its own.

    run    the run's name; if it exists, `name-2`. By default the script's name
    store  path of the store; by default as on the command line

    `with` gives the session; after it `session.report` tells how it went. Raises StoreError (LS201 to
    LS204) where the store can't be used.
    """

    def __init__(self, run: str | None = None, *, store: Store = None) -> None:
        self._run = run
        self._store = store
        self._session: Session | None = None

    def __enter__(self) -> Session:
        if current.session is not None:
            return current.session
        name = self._run or os.path.splitext(os.path.basename(sys.argv[0] or "python"))[0] or "python"
        self._session = start_recording(_path(self._store), name, {"cwd": os.getcwd(), "argv": None})
        offspring.begin(self._session)
        attaching.watch(in_code=True)
        return self._session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish(error, UNKNOWN)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish(error, UNKNOWN)

    def __call__[F: Callable[..., Any]](self, function: F) -> F:
        if asyncio.iscoroutinefunction(function):

            async def arun(*args: Any, **kwargs: Any) -> Any:
                with self._again() as inner:
                    inner.result = await function(*args, **kwargs)
                return inner.result

            return functools.wraps(function)(arun)  # type: ignore[return-value]

        def run(*args: Any, **kwargs: Any) -> Any:
            with self._again() as inner:
                inner.result = function(*args, **kwargs)
            return inner.result

        return functools.wraps(function)(run)  # type: ignore[return-value]

    def _again(self) -> _Once:
        return _Once(record(self._run, store=self._store))

    def _finish(self, error: BaseException | None, result: Value) -> None:
        session, self._session = self._session, None
        if session is not None and not offspring.elsewhere(session, error):
            session.report = offspring.together(session, finish(session, None, error, result))


class _Once:
    """One call of a decorated function, whose result is part of the run's end."""

    result: Any = None

    def __init__(self, recording: record) -> None:
        self._recording = recording

    def __enter__(self) -> Self:
        self._recording.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._recording._finish(error, _data(self.result))


class Replay(msgspec.Struct, frozen=True):
    """How a replay in process went.

    identical   every request, outcome, output and the end were the recorded ones, nothing was live
    divergence  the first difference as the command line shows it, None if there was none
    results     what the target returned, one per turn; `result` is the last
    error       what the target raised, None if it returned
    """

    identical: bool
    divergence: str | None
    coverage: tuple[Coverage, ...]
    results: list[Any]
    error: BaseException | None
    report: Report

    @property
    def result(self) -> Any:
        return self.results[-1] if self.results else None


def replay(
    run: str, target: Any, *, store: Store = None, speed: float = 0.0, deadline: float = 30.0, depth: str = "call",
    turn: int | None = None, until: int | None = None, **own: Any,
) -> Replay:  # fmt: skip
    """Replays a run in this process: `target` is called with no arguments, and every answer comes from
    the record. A coroutine function runs in an event loop of its own.

    speed     0 serves at once, 1 as recorded, 10 ten times faster
    deadline  seconds without progress after which strands that wait for each other count as diverged

    Of a run that a framework keeps itself (`langgraph/thread-1`) the target is what its adapter says, a compiled graph
    there, and its turns are run again with their recorded inputs:

    depth  "call": the framework's nodes run and their calls are served; "node": nothing of them runs
    turn   only this one, counted from 1; those before it are restored, not run
    until  the step to stop after
    own    what only that framework's adapter knows, as Temporal's `data_converter=`

    Returns also when the run ended in a failure or diverged. Raises StoreError (LS201 to LS205) and
    TargetError LS402: no callable, or a coroutine function under a running loop (use `areplay`).
    """
    with natives.looked_up(_located(store), run, target) as found:
        if found is not None:
            asked = natives.options(found.store.path, depth, turn, until, speed, deadline, own)
            return _played(found.replay(asked))
    natives.only_native(own, depth=depth != "call", turn=turn, until=until is not None)
    target = program(target)
    if asyncio.iscoroutinefunction(target):
        no_loop("the target is an async function", "areplay")
        coroutine = target

        def target() -> Any:
            return asyncio.run(coroutine())

    session = _begin(run, store, speed, deadline)
    try:
        result = target()
    except BaseException as error:
        return _end(session, None, error)
    return _end(session, result, None)


async def areplay(
    run: str, target: Any, *, store: Store = None, speed: float = 0.0, deadline: float = 30.0, depth: str = "call",
    turn: int | None = None, until: int | None = None, **own: Any,
) -> Replay:  # fmt: skip
    """As `replay`, under a running event loop: awaits what `target` returns."""
    with natives.looked_up(_located(store), run, target) as found:
        if found is not None:
            asked = natives.options(found.store.path, depth, turn, until, speed, deadline, own)
            return _played(await found.areplay(asked))
    natives.only_native(own, depth=depth != "call", turn=turn, until=until is not None)
    target = program(target)
    session = _begin(run, store, speed, deadline)
    try:
        result = target()
        if hasattr(result, "__await__"):
            result = await result
    except BaseException as error:
        return _end(session, None, error)
    return _end(session, result, None)


class Run(msgspec.Struct, frozen=True):
    """A branch that a fork in process has made.

    address   "refund@try-2"; `branch` its name
    state     complete, failed, refused (a call may not run for real), diverged (the part served was not the recorded
              one), or interrupted
    result    what the target returned, None if it raised; `error` what it raised
    live      calls past the cut that ran for real; `reused`, `served` and `edited`: that got an answer without
    refused   what may not run, in words
    unreached edits whose calls were not made
    divergence  the first difference of the part served, as the command line shows it
    results   of a run that a framework keeps itself: what each of its turns returned; `result` is the last
    config    the same: what to hand to the framework to go on from here
    """

    address: str
    branch: str
    state: str
    result: Any
    error: BaseException | None
    live: int
    reused: int
    served: int
    edited: int
    refused: tuple[str, ...]
    unreached: tuple[str, ...]
    divergence: str | None
    report: Report
    results: list[Any] = []
    config: Mapping[str, Any] = {}


def fork(
    address: str, target: Any, *, edits: Mapping[str, Any] | None = None, live: Sequence[str] = (),
    tail: Tail = "", branch: str = "", store: Store = None, deadline: float = 30.0, tasks: Sequence[str] = (),
    thread: str = "", turn: int | None = None, **own: Any,
) -> Run:  # fmt: skip
    """Runs `target` in this process: served up to a step of a recorded run, with edited answers where asked, and for
    real from there. A coroutine function runs in an event loop of its own.

    address  where it leaves: "refund:7", "refund@try-2:7.1"
    edits    address, or address and path, in the run -> what its caller gets: {"7.1": {...}, "7.1:status": "lost"}
    live     patterns of calls that may run for real, whatever they do
    tail     what becomes of calls past the cut, see `session.policy.Policy`
    branch   its name, "fork" by default; if it exists, `name-2`

    Of a run that a framework keeps itself (`langgraph/thread-1:7`) nothing before the step runs; the recorded turns
    that followed are run again after it:

    edits    also of a step's state, by channel: {"7": {"total": 3}, "7:messages[2].content": "lost"}
    tasks    of the tasks that ran on the step's checkpoint, those that run again: the others keep what they wrote
    thread   go on as this thread, not as a branch of the same one
    turn     the last recorded turn that is run, counted from 1
    own      what only that framework's adapter knows, as Temporal's `data_converter=`

    Raises StoreError, AddressError, EditError and TargetError (LS402) where it cannot begin, and `Refused` (LS301, with
    the branch as `.run`) where a call past the cut may not run.
    """
    with natives.looked_up(_located(store), address, target) as found:
        if found is not None:
            asked = _options(address, edits, live, tail, branch, deadline, tasks, thread, turn, own)
            return _continued(found.fork(asked))
    natives.only_native(own, tasks=tasks, thread=thread, turn=turn)
    policy = policies.given(live, tail, rules.here().effects)
    return forked(address, target, edits or {}, policy, branch, store, deadline)


def forked(
    address: str, target: Any, edits: Mapping[str, Any], policy: Policy, branch: str, store: Store,
    deadline: float = 30.0,
) -> Run:  # fmt: skip
    """As `fork`, of a run that no framework keeps, by a policy."""
    target = program(target)
    if asyncio.iscoroutinefunction(target):
        no_loop("the target is an async function", "afork")
        coroutine = target

        def target() -> Any:
            return asyncio.run(coroutine())

    session = _begin_fork(address, edits, policy, branch, store, deadline)
    try:
        result = target()
    except BaseException as error:
        return _end_fork(session, None, error)
    return _end_fork(session, result, None)


async def afork(
    address: str, target: Any, *, edits: Mapping[str, Any] | None = None, live: Sequence[str] = (),
    tail: Tail = "", branch: str = "", store: Store = None, deadline: float = 30.0, tasks: Sequence[str] = (),
    thread: str = "", turn: int | None = None, **own: Any,
) -> Run:  # fmt: skip
    """As `fork`, under a running event loop: awaits what `target` returns."""
    with natives.looked_up(_located(store), address, target) as found:
        if found is not None:
            asked = _options(address, edits, live, tail, branch, deadline, tasks, thread, turn, own)
            return _continued(await found.afork(asked))
    natives.only_native(own, tasks=tasks, thread=thread, turn=turn)
    policy = policies.given(live, tail, rules.here().effects)
    return await aforked(address, target, edits or {}, policy, branch, store, deadline)


async def aforked(
    address: str, target: Any, edits: Mapping[str, Any], policy: Policy, branch: str, store: Store,
    deadline: float = 30.0,
) -> Run:  # fmt: skip
    """As `forked`, under a running event loop."""
    target = program(target)
    session = _begin_fork(address, edits, policy, branch, store, deadline)
    try:
        result = target()
        if hasattr(result, "__await__"):
            result = await result
    except BaseException as error:
        return _end_fork(session, None, error)
    return _end_fork(session, result, None)


def _options(
    address: str, edits: Mapping[str, Any] | None, live: Sequence[str], tail: Tail, branch: str, deadline: float,
    tasks: Sequence[str], thread: str, turn: int | None, own: Mapping[str, Any],
) -> ForkOptions:  # fmt: skip
    from lockstep.debugger import edits as editing

    run = address.partition(":")[0]
    return ForkOptions(
        edits=tuple(editing.as_given(text, value, run) for text, value in (edits or {}).items()),
        policy=policies.given(live, tail, rules.here().effects), branch=branch,
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks), thread=thread, turn=turn, deadline=deadline,
        own=own,
    )  # fmt: skip


def _continued(done: Continued) -> Run:
    report = done.report
    run = Run(
        address=called(report.run, report.branch), branch=report.branch, state=report.state,
        result=done.results[-1] if done.results and done.error is None else None, error=done.error, live=report.live,
        reused=report.answers.get("reused", 0), served=report.answers.get("served", 0),
        edited=report.answers.get("edited", 0), refused=report.refused, unreached=report.unreached,
        divergence=_text(report) if report.difference is not None else None, report=report, results=done.results,
        config=done.config,
    )  # fmt: skip
    if run.state == "refused":
        raise Refused(run.refused[0], run)
    return run


def _played(done: Played) -> Replay:
    report = done.report
    text = _text(report) if report.difference is not None else None
    return Replay(report.identical, text, report.coverage, done.results, done.error, report)


def _begin_fork(
    address: str, edits: Mapping[str, Any], policy: Policy, branch: str, store: Store, deadline: float
) -> Session:  # fmt: skip
    from lockstep.debugger import fork as forks
    from lockstep.log.store import locate

    path = locate(_path(store))
    run, plan = forks.planned(path, address, forks.given(edits, address.partition(":")[0]), policy, branch)
    session = start_fork(path, run, plan, deadline=deadline)
    offspring.begin(session)
    attaching.watch(in_code=True)
    return session


def _end_fork(session: Session, result: Any, error: BaseException | None) -> Run:
    report, stopped = ended(session, result, error)
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    run = Run(
        address=called(report.run, report.branch), branch=report.branch, state=report.state,
        result=None if stopped else result, error=None if stopped else error, live=report.live,
        reused=report.answers.get("reused", 0), served=report.answers.get("served", 0),
        edited=report.answers.get("edited", 0), refused=report.refused, unreached=report.unreached,
        divergence=_text(report) if report.difference is not None else None, report=report,
    )  # fmt: skip
    if run.state == "refused":
        raise Refused(run.refused[0], run)
    return run


def program(target: Any) -> Callable[[], Any]:
    """What a target runs, which is its adapter's to say. Raises TargetError LS402."""
    from lockstep import adapter

    if current.session is not None:
        raise TargetError(Code.BAD_TARGET, "a session is on already: another can't begin inside it")
    return adapter.of(target).target.program(target, None)


def _begin(run: str, store: Store, speed: float, deadline: float) -> Session:
    session = start_replay(_path(store), run, speed=speed, deadline=deadline)
    offspring.begin(session)
    attaching.watch(in_code=True)
    return session


def ended(session: Session, result: Any, error: BaseException | None) -> tuple[Report, bool]:
    """Ends a replay or fork whose target returned or raised: its report, and whether the session stopped the target."""
    stopped = isinstance(error, Stop) or session.stopped
    if offspring.elsewhere(session, error):
        raise SystemExit(0 if error is None else 1)  # a child that came here on its parent's way
    report = finish(session, None, None if stopped else error, UNKNOWN if stopped else _data(result))
    return offspring.together(session, report), stopped


def _end(session: Session, result: Any, error: BaseException | None) -> Replay:
    report, stopped = ended(session, result, error)
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    text = _text(report) if report.difference is not None else None
    results = [result] if error is None else []
    return Replay(report.identical, text, report.coverage, results, None if stopped else error, report)


def _text(report: Report) -> str:
    """The difference as the command line shows it."""
    from lockstep.debugger import render
    from lockstep.debugger.replay import Replayed

    done = Replayed(
        run=report.run, identical=False, cut=False, difference=report.difference, steps=report.steps,
        digest=report.digest, live_calls=report.live_calls, seconds=report.seconds, exit=1, recorded_exit=None,
        command=(), isolated="", coverage=report.coverage, faults=report.faults,
    )  # fmt: skip
    lines = render.replaying(done)
    return "\n".join("".join(piece if isinstance(piece, str) else piece[0] for piece in line) for line in lines)


def _data(result: Any) -> Value:
    """A target's result as a part of the run's end."""
    # A result that is no data can't be compared; it is then not part of the run's end.
    from lockstep.errors import LockstepError

    try:
        return snapshot.to_key(snapshot.to_value(result))
    except LockstepError:
        unknown: Value = UNKNOWN
        return unknown


def _located(store: Store) -> str:
    from lockstep.log.store import locate

    return str(locate(_path(store)))


def _path(store: Store) -> str | None:
    return None if store is None else os.fspath(store)
