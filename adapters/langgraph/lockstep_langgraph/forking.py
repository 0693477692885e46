"""Forks of threads: `lockstep.fork("langgraph/thread-1:7", graph)`.

A fork is a branch of the thread's log that leaves at a checkpoint (`planning`), and a saver that sees that branch and
nothing else (`line`). LangGraph goes on from there as it goes on from any checkpoint of its own: nothing before it
runs, tasks that have written do not run again, and `Command(goto=…)` is kept, since it is part of what was written.
Calls past the cut are decided by the policy; the turns that were recorded after it follow with their recorded inputs.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import time
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

import msgspec

from lockstep.adapter.forking import continued
from lockstep.adapter.native import Continued, ForkOptions, no_loop
from lockstep.debugger import edits as editing
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.errors import Code, Stop, TargetError
from lockstep.log.address import quote
from lockstep.log.model import Status
from lockstep.log.timeline import Effect, Place
from lockstep.session.native import forking as forks
from lockstep.session.native.forking import Forking
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.tail import Edit as Answered
from lockstep.session.tail import Plan as Tailed
from lockstep_langgraph import again, changes, keeping, patches, planning, rewriting, states, turns
from lockstep_langgraph.again import Invocation
from lockstep_langgraph.checkpointer import BRANCH, LockstepCheckpointer
from lockstep_langgraph.core import Core
from lockstep_langgraph.entries import long_id
from lockstep_langgraph.held import Threads
from lockstep_langgraph.line import LineBook, LineShelf
from lockstep_langgraph.planning import Call, History, Plan
from lockstep_langgraph.shelves import MAIN
from lockstep_langgraph.stored import PREFIX, StoredShelf
from lockstep_langgraph.values import Codec

if TYPE_CHECKING:
    from lockstep.log.store import RunReader, Store

_ID = re.compile("[0-9a-f]{32}")  # of an interrupt

# Yields what is to be invoked next, is sent what became of it.
type Course = Generator[Invocation, Outcome, Continued]


class Outcome:
    """What an invocation returned, or what it raised."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result = result
        self.error = error


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a thread with a compiled graph. See `lockstep.adapter.native.Native`."""
    session = Session(store, place, target, options)
    if session.needs_loop:
        no_loop("this thread was run asynchronously", "afork")
    course = session.course()
    with session, asyncio.Runner() as runner, closing(course):
        try:
            invocation = next(course)
            while True:
                invocation = course.send(_run(invocation, runner))
        except StopIteration as over:
            return over.value  # type: ignore[no-any-return]


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop."""
    session = Session(store, place, target, options)
    course = session.course()
    with session, closing(course):
        try:
            invocation = next(course)
            while True:
                invocation = course.send(await _arun(invocation))
        except StopIteration as over:
            return over.value  # type: ignore[no-any-return]


def _run(invocation: Invocation, runner: asyncio.Runner) -> Outcome:
    context = contextvars.copy_context()
    try:
        if invocation.asynchronous:
            return Outcome(runner.run(again.arun(invocation), context=context))
        return Outcome(context.run(again.run, invocation))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return Outcome(error=error)


async def _arun(invocation: Invocation) -> Outcome:
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    try:
        if invocation.asynchronous:
            return Outcome(await loop.create_task(again.arun(invocation), context=context))
        return Outcome(await loop.run_in_executor(None, context.run, again.run, invocation))
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        raise
    except BaseException as error:
        return Outcome(error=error)


class Session:
    """One fork: what it goes by, and what has come of it so far."""

    def __init__(self, store: Store, place: Place, target: Any, options: ForkOptions) -> None:
        self.store = store
        self.place = place
        self.options = options
        self.target = target
        reader = place.timeline.reader
        meta: Any = reader.meta
        self.thread = str(meta["native"]["thread"])
        own = getattr(target.checkpointer, "_core", None)
        self.codec: Codec = own.codec if own is not None else Codec()
        self.record = Record(reader)
        self.history = History(self.record)
        self.to = options.thread or self.thread
        if options.thread and store.has_run(run := f"{PREFIX}{quote(options.thread)}"):
            raise TargetError(Code.BAD_TARGET, f"there is a thread {options.thread!r} already: {run}")
        self._states, self._answers = self._edits()
        self.plan = self._plan()
        self._began = time.monotonic()

    @property
    def needs_loop(self) -> bool:
        plan = self.plan
        return any(again.is_async(turn.entry) for turn in (plan.goes_on, *plan.later) if turn is not None)

    def __enter__(self) -> Self:
        patches.install()
        turns.install()
        return self

    def __exit__(self, *_: object) -> None:
        turns.uninstall()
        patches.uninstall()

    # What is asked.

    def _edits(self) -> tuple[dict[int, list[Edit]], dict[int, tuple[Effect, list[Edit]]]]:
        """Those of states by step, and those of answers by the position of the call."""
        place, edits = self.place, self.options.edits
        states: dict[int, list[Edit]] = {}
        for edit in edits:
            if "." not in edit.address:
                plans.of_this_run(place, edit)
                states.setdefault(place.timeline.step(int(edit.address)).number, []).append(edit)
        return states, plans.grouped(place, [edit for edit in edits if "." in edit.address])

    def _plan(self) -> Plan:
        place, step = self.place, plans.step_of(self.place)
        call = _call(place.effect) if place.effect is not None else None
        edited = [_call(effect) for effect, _ in self._answers.values()]
        return planning.plan(
            self.history,
            step.number,
            call,
            edited,
            self._states,
            self.options.tasks,
            str(place.address),
            self.options.within,
        )

    # What is done.

    def course(self) -> Course:
        """The invocations of the fork, one after the other."""
        plan, options, address = self.plan, self.options, self.place.address
        origin = plans.origin_of(self.place)
        book: Any = StoredShelf(self.store.path).open(self.thread, create=False)
        parent = book.journal(address.branch)
        self._reveal = parent.reveal
        tailed = Tailed(
            options.branch or "fork", address.branch, origin, self._upto(), plan.until, self._given(), options.policy
        )  # fmt: skip
        told: dict[str, Any] = {
            **forks.told(tailed), "edits": {editing.told(edit): self._inert(edit) for edit in options.edits},
            "upto": plan.cut, "step": address.step, "tasks": list(options.tasks),
        }  # fmt: skip
        kept = {wrote.event.pos for wrote in plan.kept}
        if options.thread:
            book = self._elsewhere(book, kept)
            journal, kept = book.journal(MAIN), set()
        else:
            journal = parent.fork(tailed.branch, plan.cut, latest=False, origin=origin, told=told)
            book.adopt(journal)
            keeping.calls(journal, self.record, plan.kept, plan.cut)
        tailed = msgspec.structs.replace(tailed, branch=journal.branch)
        calls = Forking(journal, self.record, tailed, self.store.path, since=plan.cut, deadline=options.deadline)
        line = LineBook(book, journal.branch, address.branch, kept, calls)
        core = _Core(LineShelf(self.to, line), self.codec)
        graph = self.target.copy(update={"checkpointer": LockstepCheckpointer.over(core)})
        shared = plan.cut if not options.thread else _last(self.store.run(journal.run))
        try:
            results, error = yield from self._turns(graph, core, calls)
            journal.flush()
            return self._continued(journal, calls, results, error, origin, shared)
        finally:
            core.own.close()
            journal.close()

    def _elsewhere(self, book: Any, kept: set[int]) -> Any:
        """Another thread that is what this one was at the cut."""
        branch = self.place.address.branch
        view = LineBook(book, branch, branch, kept, upto=self.plan.cut)
        with Threads(LineShelf(self.thread, view)).using(self.thread) as thread:
            assert thread is not None
            shelf = StoredShelf(self.store.path)
            rewriting.into(thread, shelf, self.to)
            return shelf.open(self.to, create=False)

    def _given(self) -> tuple[Answered, ...]:
        """The answers that are edited, as the tail gives them."""
        return tuple(
            Answered(
                pos, {editing.told(edit): self._inert(edit) for edit in given},
                changes.answer(self.place.timeline, effect, given, self.codec),
            )
            for pos, (effect, given) in self._answers.items()
        )  # fmt: skip

    def _inert(self, edit: Edit) -> Any:
        return changes.inert(edit.value, self.codec)

    def _upto(self) -> int:
        """The position up to which a task that runs again has to ask what it asked: before the first edited answer."""
        cut, effect = self.plan.cut, self.place.effect
        if self._states:
            return cut
        pieces = [plans.first_piece(self.place.timeline, edited) for edited, _ in self._answers.values()]
        found = [pos - 1 for pos in pieces if pos is not None]
        if effect is not None and effect.end is not None:
            found.append(effect.end.pos)
        if self.options.within is not None:
            found.append(self.options.within)
        return max(cut, min(found, default=cut))

    def _turns(
        self, graph: Any, core: Core, calls: Forking
    ) -> Generator[Invocation, Outcome, tuple[list[Any], BaseException | None]]:
        plan, thread, load = self.plan, self.to, self.codec.load
        if self._states:
            self._put_state(graph, core)
        if plan.ends:
            calls.note("turns", plan.ends)
        results: list[Any] = []
        error: BaseException | None = None
        last = self.options.turn
        for turn in (plan.goes_on, *plan.later):
            if turn is None or (last is not None and turn.number > last):
                continue
            if turn is plan.goes_on and self._is_over(graph, turn):
                continue
            request: Any = self._reveal(self.record.request(turn))
            invocation = again.made(graph, turn.entry, request, load, thread)
            if turn is not plan.goes_on and (why := self._unasked(graph, invocation.given)):
                calls.note(f"turn {turn.number}", f"{why}: it was not run, and neither were those after it")
                break
            if turn is plan.goes_on:
                invocation = msgspec.structs.replace(invocation, given=None)
            outcome = yield invocation
            error = outcome.error
            if error is None:
                results.append(outcome.result)
            elif isinstance(error, Stop) or turn.end is None or turn.end.what != Status.ERROR:
                break
        return results, error

    def _put_state(self, graph: Any, core: Core) -> None:
        base: Any = self.record.field(self.plan.base.seq, "id")
        with core.own.using(self.to) as thread:
            assert thread is not None
            entry = next(entry for entry in thread.all() if entry.id == long_id(base))
        config = {"configurable": {"thread_id": self.to, "checkpoint_ns": entry.ns, "checkpoint_id": entry.id}}
        edits = [edit for each in self._states.values() for edit in each]
        states.edit(graph, graph.checkpointer, config, edits, self.codec)

    def _unasked(self, graph: Any, given: Any) -> str:
        """Why a turn cannot follow: it answers what nobody asks here. "" where it can."""
        resume = getattr(given, "resume", None)
        if resume is None:
            return ""
        state = graph.get_state({"configurable": {"thread_id": self.to}})
        waiting = {each.id for task in state.tasks for each in task.interrupts}
        if not waiting:
            return "it answers a question that is not asked here"
        named = isinstance(resume, dict) and bool(resume) and all(map(_ID.fullmatch, map(str, resume)))
        if named and not waiting & resume.keys():
            return "it answers questions by their ids, which are others here"
        return ""

    def _is_over(self, graph: Any, turn: RecordedTurn) -> bool:
        """Whether the turn had come to its end where the fork leaves it, so that only the next one goes on."""
        tasks = graph.get_state({"configurable": {"thread_id": self.to}}).next
        if not tasks:
            return True
        base, end = self.plan.base, turn.end
        if not self.plan.later or end is None or end.what != Status.OK:
            return False
        # It stopped before a node or after one (`interrupt_before`), and what goes on from there is the next turn.
        return not any(wrote.event.of == base.pos and wrote.event.pos < end.pos for wrote in self.history.writes)

    def _continued(
        self, journal: Any, calls: Forking, results: list[Any], error: BaseException | None, origin: str, cut: int
    ) -> Continued:  # fmt: skip
        configurable: dict[str, Any] = {"thread_id": self.to}
        if not self.options.thread:
            configurable[BRANCH] = journal.branch
        return continued(
            self.store, calls, upto=cut, began=self._began, origin=origin, results=results, error=error,
            config={"configurable": configurable},
        )  # fmt: skip


class _Core(Core):
    """The state of a fork's saver. What goes wrong in it stops the fork: a call that nobody decided must not run."""

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error}")
        raise error


def _last(reader: RunReader) -> int:
    return max((event.pos for _, event in reader.heads(reader.main)), default=0)


def _call(effect: Effect) -> Call:
    return Call(effect.begin.pos, effect.end.pos if effect.end is not None else 0, effect.lane)
