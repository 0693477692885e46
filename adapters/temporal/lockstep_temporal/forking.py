"""Forks of workflows: `lockstep.fork("temporal/order-7:4", target, edits={"4.1": {"total": 450}})`.

The execution that the fork leaves is driven up to there with its recorded activations, and what today's code commands
is compared. From there on `stage` emulates what core and the server would do, so no server is needed, and the clock,
ids and random numbers are those of the recorded execution. Calls past the cut are answered by edits, the record, or the
target's own functions, as `deciding` has it; all of it is a branch of the run, which is replayed like any other.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

from lockstep.adapter.forking import branched
from lockstep.adapter.native import Continued, ForkOptions
from lockstep.debugger.plan import cut_of, origin_of
from lockstep.errors import Code, TargetError
from lockstep.log.store import Store
from lockstep.log.timeline import Place
from lockstep.session.native.journal import Journal
from lockstep.session.native.kept import recalled
from lockstep.session.tail import Plan
from lockstep_temporal import edited, layout, server, wording
from lockstep_temporal.coded import decoding, plainly
from lockstep_temporal.going import Going
from lockstep_temporal.imported import Against
from lockstep_temporal.live import Live, activities_of
from lockstep_temporal.naming import Naming
from lockstep_temporal.prepared import prepare
from lockstep_temporal.recorded import ExecutionTurn, Recorded
from lockstep_temporal.setup import Setup, setup_of
from lockstep_temporal.watching import Watch

SERVER = "server"  # the keyword argument that has a fork run on a server


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a workflow's run. See `lockstep.adapter.native.Native`."""
    return Session(store, place, target, options).run(None)


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop, in which async activities run."""
    session = Session(store, place, target, options)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, session.run, loop)


class Session:
    """One fork: what it goes by, and what has come of it so far."""

    def __init__(self, store: Store, place: Place, target: Any, options: ForkOptions) -> None:
        self.store = store
        self.place = place
        self.options = options
        _refuse(options)
        reader = place.timeline.reader
        self.recorded = Recorded(reader, recalled(store.path, reader.meta)[0])
        if self.recorded.origin == layout.INTERCEPTOR:
            raise TargetError(
                Code.BAD_TARGET,
                f"{place.address.path} was recorded by LockstepInterceptor alone, which sees neither timers nor the"
                " clock: it can be read, not forked. Record with LockstepPlugin, or fetch its history: lockstep"
                f" temporal pull --workflow-id {self.recorded.native.get('workflow_id')}",
            )
        self.server = server.checked(options.own[SERVER]) if options.own.get(SERVER) is not None else None
        own = {key: value for key, value in options.own.items() if key != SERVER}
        self.setup: Setup = setup_of(target, own)
        self.until = cut_of(place, options.within)
        plain = plainly(reader, target, own) if options.edits else None
        self.edits = edited.read(place, options.edits, self.until, plain)
        self.turn, self.served, self.at = self._cut()
        self.goes_on = self.at >= self._position(self.turn.seqs[0])  # with an execution that the parent has begun
        self.began = time.monotonic()
        self.results: list[Any] = []
        self.error: BaseException | None = None

    def _cut(self) -> tuple[ExecutionTurn, list[int], int]:
        """The execution that goes on, its steps that are served, and the position where the branch leaves."""
        record, first = self.recorded.record, self.edits.first
        upto = self.until if first is None else min(self.until, first - 1)
        last = record.last_step(upto)
        turns = self.recorded.turns
        if last < 0:
            return turns[0], [], self._position(turns[0].seqs[0])
        at = record.position(last)
        turn = next(turn for turn in turns if last in turn.steps)
        if last == turn.last and turn.number < len(turns):
            following = turns[turn.number]
            begins = next(event.pos for seq, event in record.heads if seq == following.seqs[0])
            ended = record.heads[0][1].pos if turn.end_seq < 0 else self._position(turn.end_seq)
            # What is asked for is the state after the last task of an execution: the next one begins with it.
            return following, [], max(min(ended, begins - 1), at)
        return turn, [number for number in turn.steps if number <= last], at

    def _position(self, seq: int) -> int:
        return next(event.pos for number, event in self.recorded.record.heads if number == seq)

    def run(self, loop: asyncio.AbstractEventLoop | None) -> Continued:
        """Drives it. `loop`: in which async activities run, None for one of their own."""
        with ExitStack() as stack:
            prepared = stack.enter_context(prepare(self.setup))
            watch = stack.enter_context(Watch(self.options.deadline))
            functions, interceptors = activities_of(prepared)
            native = self.recorded.native
            self.namespace = str(native.get("namespace") or "default")
            self.task_queue = self._task_queue()
            converter = prepared.data_converter
            self.recorded.decode = decoding(self.recorded, converter, str(self.place.address))
            live = stack.enter_context(
                Live(
                    functions, interceptors, converter, namespace=self.namespace, task_queue=self.task_queue, loop=loop
                )
            )
            journal = self._journal(stack, converter)
            going = Going(self, prepared, watch, live, journal, Naming(functions))
            stack.callback(going.close)
            going.run()
            return going.continued()

    def _task_queue(self) -> str:
        asked = self.recorded.record.field(self.turn.seqs[0], "request")
        found = asked.get("task_queue") if isinstance(asked, dict) else None
        return found if isinstance(found, str) else ""

    def _journal(self, stack: ExitStack, converter: Any) -> Journal:
        """The branch, made."""
        plan = self.plan(self.options.branch or "fork")
        edits = {at: wording.stored(value, converter, self.recorded.meta) for at, value in self.edits.told.items()}
        parent, journal, _ = branched(self.store, self.place, plan, edits)
        stack.callback(parent.close)
        stack.callback(journal.close)
        return journal

    def plan(self, branch: str) -> Plan:
        address = self.place.address
        origin = origin_of(self.place)
        return Plan(branch, address.branch, origin, self.at, self.until, self.edits.answers, self.options.policy)

    def walk(self, turn: ExecutionTurn) -> Against:
        """An execution that was imported from a history, through today's code."""
        steps = [self.recorded.steps[number].events() for number in turn.steps]
        first_run = next((at for at, events in enumerate(steps) if not events), len(steps))
        workflow_id = str(self.recorded.native.get("workflow_id") or "")
        return Against(self.setup, steps[:first_run], workflow_id=workflow_id, namespace=self.namespace)


def _refuse(options: ForkOptions) -> None:
    """What a fork of a workflow has not."""
    if options.tasks:
        raise TargetError(
            Code.BAD_TARGET, "tasks= chooses between tasks of a graph: a workflow goes on as a whole from each step"
        )
    if options.thread:
        raise TargetError(
            Code.BAD_TARGET,
            "thread= cannot be another workflow: what it does hangs on its id, its clock and its random numbers. A fork"
            " is a branch of the same one",
        )
