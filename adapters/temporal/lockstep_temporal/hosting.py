"""The tail of a fork on a real server: what `Stage` emulates, Temporal's own server and core do.

    stage = Hosted(prepared, live, hooks, inbound, server="local")      then as a `Stage`

A workflow of the same type is started there, and children where the code starts some. Each of the server's instances
hands what it is told to the instance that is driven, from the cut on, and what that commands to the server (`seats`).
So the prefix is exact, and its timers are not waited for; retries, timeouts, timers, children, cancellation and updates
of the tail are the server's. It skips time where workflows only wait, if the SDK can ask for that.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.service import RPCError

from lockstep_temporal import executions, server
from lockstep_temporal.actors import Actor, Hooks, Inbound, Unable
from lockstep_temporal.asks import Ask, Ended, Stop, answer
from lockstep_temporal.chains import ABANDON, REQUEST_CANCEL, deadline, run_after, sent_before, target_of
from lockstep_temporal.driver import Drive
from lockstep_temporal.live import Live
from lockstep_temporal.outside import Outside
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.seats import Seat
from lockstep_temporal.server import NAMESPACE
from lockstep_temporal.watching import Watch
from lockstep_temporal.worker import start, working
from lockstep_temporal.world import World

_QUIET = 0.3  # seconds without news after which a workflow that waits for nothing of the server's has come to a stop
_PATIENCE = 5.0  # seconds until the server has taken what is sent to the workflow


class Hosted:
    """As `Stage`. `server`: "local", or the address of one."""

    def __init__(
        self, prepared: Prepared, live: Live, hooks: Hooks, inbound: Sequence[Sequence[Inbound]] = (), *,
        watch: Watch | None = None, server: str = server.LOCAL,
    ) -> None:  # fmt: skip
        self._watched = watch.on if watch is not None else nullcontext
        self.prepared = prepared
        self.live = live
        self.hooks = hooks
        self.notes: list[str] = []
        self.waiting: tuple[Ask, ...] | None = None
        self._server = server
        self._outside = Outside(inbound)
        self._first: WorkflowActivation | None = None
        unique = uuid.uuid4().hex
        self._prefix, self._task_queue = f"lockstep-{unique}/", f"lockstep-{unique}"
        self._seats: dict[str, Seat] = {}  # by run id on the server
        self._next: dict[str, tuple[Seat, WorkflowActivation]] = {}  # by workflow id: the run that follows
        self._coming: dict[str, tuple[Seat, Ask, str]] = {}  # children that were asked for: whose, and their run ids
        self._run_ids: dict[tuple[str, int], str] = {}  # of children, by run id of the parent and number
        self._ended: set[str] = set()  # workflow ids
        self._begun = 0
        self._news = 0
        self._lock = threading.RLock()  # one execution at a time, as in a fork without a server
        self._over: asyncio.Future[Ended | None] | None = None
        self._stopped = False

    def enter(self, world: World, drive: Drive) -> None:
        """See `Stage.enter`."""
        self._main(Actor(world, drive))
        for timer in world.timers:
            self.hooks.timer(self.main, timer)
            self._seat.timer(timer)
        for ask in world.open:
            self._ask(self._seat, ask)
            if world.is_cancelled(ask.key):
                self._cancelled(self._seat, ask)

    def begin(self, first: WorkflowActivation, namespace: str = "default", task_queue: str = "") -> None:
        """See `Stage.begin`."""
        drive = Drive(self.prepared, first, namespace=namespace, task_queue=task_queue)
        self._first = first
        self._main(Actor(World(first, namespace, task_queue), drive))

    def run(self) -> Ended | None:
        """Until the workflow's chain ends; None: it waits for what does not come (`waiting`)."""
        if self.main.world.ended is not None:
            return self.main.world.ended  # it was over at the cut
        with server.reached(self._server) as address:
            if asyncio._get_running_loop() is None:
                return asyncio.run(self._run(address))
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, self._run(address)).result()

    def close(self) -> None:
        """Ends what is driven by it."""
        for actor in {id(seat.actor): seat.actor for seat in (self._seat, *self._seats.values())}.values():
            actor.drive.close()

    def _main(self, actor: Actor) -> None:
        self.main = actor
        self._seat = self._seated(actor)

    def _seated(self, actor: Actor) -> Seat:
        return Seat(actor, self._prefix, NAMESPACE, self._task_queue)

    # The server.

    async def _run(self, address: str) -> Ended | None:
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        async with working(address, self.prepared, self._task_queue, self.activate) as (client, worked):
            self._service = client.workflow_service
            try:
                await self._start()
                ends: set[asyncio.Future[Any]] = {worked, self._over}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if not self._over.done():
                    await worked  # a worker ends by an error
                return await self._over
            finally:
                self._stopped = True

    async def _start(self) -> None:
        init = self.main.world.init
        retry_policy = init.retry_policy if init.HasField("retry_policy") else None
        until = deadline(self.main.world)
        timeout = max(until - self.main.world.now, 1_000_000) if until else 0
        await start(
            self._service, self._prefix + self.main.id, init.workflow_type, self._task_queue, retry_policy, timeout
        )

    def _finish(self, ended: Ended | None, error: BaseException | None = None) -> None:
        """From any thread."""
        self._stopped = True

        def finish() -> None:
            assert self._over is not None
            if self._over.done():
                return
            if error is not None:
                self._over.set_exception(error)
            else:
                self._over.set_result(ended)

        self._loop.call_soon_threadsafe(finish)

    # What the server's instances are told.

    def activate(self, told: WorkflowActivation) -> WorkflowActivationCompletion:
        """A worker's activation of one of them: never raises."""
        done = WorkflowActivationCompletion(run_id=told.run_id)
        done.successful.SetInParent()
        try:
            with self._lock:
                if not self._stopped and not any(job.HasField("remove_from_cache") for job in told.jobs):
                    self._news += 1
                    done.successful.commands.extend(self._activated(told))
                    self._loop.call_soon_threadsafe(self._look, self._news)
        except BaseException as error:
            self._finish(None, error)
        return done

    def _activated(self, told: WorkflowActivation) -> Any:
        init = next((job.initialize_workflow for job in told.jobs if job.HasField("initialize_workflow")), None)
        if init is not None and told.run_id in self._seats:
            self._seats[told.run_id].rewind()
        if init is not None and told.run_id not in self._seats:
            seat = self._began(told, init.workflow_id.removeprefix(self._prefix))
        else:
            seat = self._seats[told.run_id]
            fresh = seat.unheard(told)
            self._tell(seat, told, [each for job in fresh for each in self._jobs(seat, job)])
            while seat.comes:
                self._tell(seat, told, seat.came())
        if seat.actor is self.main and seat.actor.world.ended is None:
            self._arrive()
        return seat.taken(told)

    def _tell(self, seat: Seat, told: WorkflowActivation, jobs: Sequence[WorkflowActivationJob]) -> None:
        if jobs and seat.actor.world.ended is None:
            made = seat.activation(told, jobs)
            seat.actor.world.see(made)
            self._task(seat, made)

    def _began(self, told: WorkflowActivation, id: str) -> Seat:
        """The first activation of an execution."""
        if id in self._next:
            before, first = self._next.pop(id)
            seat = self._seated(self._driven(first, before.actor.world.task_queue, before.actor))
            seat.actor.turn = before.actor.turn + 1
            if before.actor is self.main:
                self.main, self._seat = seat.actor, seat
        elif id in self._coming:
            parent, ask, run_id = self._coming.pop(id)
            world, command = parent.actor.world, ask.command
            first = executions.child(world, command, run_id, world.now)
            if world.begun(ask.seq) == run_id:
                first.jobs.extend(sent_before(world, command.workflow_id))
            actor = self._driven(first, command.task_queue)
            actor.parent, actor.ask = parent.actor, ask
            actor.lane = f"{parent.actor.lane}/{command.workflow_type}-{self._begun}"
            seat = self._seated(actor)
        else:
            seat, first = self._seat, self._first  # type: ignore[assignment]
        seat.seated(told)
        self._seats[told.run_id] = seat
        if first is not None:
            self._task(seat, first)
        return seat

    def _driven(self, first: WorkflowActivation, task_queue: str, like: Actor | None = None) -> Actor:
        namespace = self.main.world.namespace
        drive = Drive(self.prepared, first, namespace=namespace, task_queue=task_queue)
        actor = Actor(World(first, namespace, task_queue), drive)
        if like is not None:
            actor.parent, actor.ask, actor.lane = like.parent, like.ask, like.lane
        return actor

    def _jobs(self, seat: Seat, job: WorkflowActivationJob) -> Sequence[WorkflowActivationJob]:
        """What the code is told of a job."""
        kind = job.WhichOneof("variant") or ""
        if kind in ("update_random_seed", "notify_has_patch", "query_workflow"):
            return ()
        sent = self._outside.told(job)
        if sent is not None:
            if kind == "do_update":
                seat.updates[sent.do_update.protocol_instance_id] = job.do_update.protocol_instance_id
            return (sent,)
        if kind == "resolve_child_workflow_execution_start":
            return self._child_start(seat, job)
        return tuple(seat.answers(job))

    def _child_start(self, seat: Seat, job: WorkflowActivationJob) -> Sequence[WorkflowActivationJob]:
        world, seq = seat.actor.world, job.resolve_child_workflow_execution_start.seq
        if world.begun(seq):
            return ()  # it was told so before the cut
        told = WorkflowActivationJob()
        told.CopyFrom(job)
        start = told.resolve_child_workflow_execution_start
        ask = world.asked(("child", seq))
        if start.HasField("succeeded") and ask is not None:
            start.succeeded.run_id = self._run_ids[seat.actor.world.run_id, seq]
        elif start.HasField("failed"):
            start.failed.workflow_id = start.failed.workflow_id.removeprefix(self._prefix)
            self._coming.pop(start.failed.workflow_id, None)
        return (told,)

    # What the code does.

    def _task(self, seat: Seat, activation: WorkflowActivation) -> None:
        actor, world = seat.actor, seat.actor.world
        with self._watched():
            completion = actor.drive.activate(activation)
        before = {timer.seq for timer in world.timers}
        asks = world.take(completion)
        self.hooks.task(actor, activation, completion)
        if world.refused:
            raise Unable(f"{world.refused} cannot be driven")
        for timer in world.timers:
            if timer.seq not in before:
                self.hooks.timer(actor, timer)
        seat.hold(completion)
        for ask in asks:
            if isinstance(ask, Stop):
                self._stop(seat, ask)
            else:
                self._ask(seat, ask)
        seat.pass_on(completion)
        if world.ended is not None:
            self._end(seat, world.ended)
            return
        seat.due.extend(world.at_once(seat.given))
        if seat.due:
            further = seat.further()
            world.see(further)
            self._task(seat, further)

    def _ask(self, seat: Seat, ask: Ask) -> None:
        if ask.sort in ("signal", "cancel") and self._is_here(target_of(ask.command)):
            seat.ask(ask)
            return
        given = self.hooks.decide(seat.actor, ask)
        if given is not None:
            seat.give(ask, given)
        elif ask.sort == "child":
            self._child(seat, ask)
        elif ask.sort == "activity":
            seat.ask(ask)
        else:
            raise Unable(f"{ask.sort} of another workflow: it is not on the server that the fork runs on")

    def _child(self, seat: Seat, ask: Ask) -> None:
        world, command = seat.actor.world, ask.command
        if command.cron_schedule:
            raise Unable(f"child workflow {command.workflow_type} with a cron schedule never ends")
        self._begun += 1
        id = world.begun(ask.seq) or executions.run_id(world.run_id, command.workflow_id, self._begun)
        self._coming[command.workflow_id] = seat, ask, id
        self._run_ids[world.run_id, ask.seq] = id
        seat.ask(ask)

    def _is_here(self, id: str) -> bool:
        return id == self.main.id or id in self._coming or any(seat.actor.id == id for seat in self._seats.values())

    def _stop(self, seat: Seat, stop: Stop) -> None:
        """Something is cancelled: what is asked of the server hears so by the command itself."""
        key = stop.sort, stop.seq
        given, ask = seat.never.pop(key, None), seat.actor.world.asked(key)
        if given is not None and given.result is not None and ask is not None and not stop.gone:
            seat.later(0, key, answer(ask, given.result))

    def _cancelled(self, seat: Seat, ask: Ask) -> None:
        if ask.key in seat.given:
            self._stop(seat, Stop(ask.sort, ask.seq))
        else:
            seat.cancel_later(ask)

    def _end(self, seat: Seat, ended: Ended) -> None:
        actor = seat.actor
        is_main = actor is self.main
        following = run_after(actor.world, ended, actor.world.now)
        if is_main:
            self.hooks.turn(actor, ended, following)
            if following is not None and not self.hooks.follows():
                following = None
        elif ended.how == "failed_task":
            raise Unable(f"child workflow {actor.world.init.workflow_type} failed its task: {ended.command.message}")
        actor.drive.close()
        if following is not None:
            self._next[actor.id] = seat, following
            return
        self._ended.add(actor.id)
        if is_main:
            self._leave_children(actor)
            self._finish(ended)

    def _leave_children(self, actor: Actor) -> None:
        for seat in self._seats.values():
            child = seat.actor
            if child.parent is not actor or child.world.ended is not None or child.ask is None:
                continue
            if child.ask.command.parent_close_policy in (ABANDON, REQUEST_CANCEL):
                self.notes.append(f"child workflow {child.world.init.workflow_type} goes on after its parent's end")

    # What comes from outside.

    def _arrive(self) -> None:
        """Sends what was recorded, once the workflow is where it came: before the server hears what it does there, so
        that no time is skipped in between."""
        waiting = self._outside.of(self.main.turn)
        while waiting and waiting[0].step <= self.main.world.steps:
            for job in waiting.pop(0).jobs:  # from a thread of the worker's
                asyncio.run_coroutine_threadsafe(self._send(job), self._loop).result(_PATIENCE)

    async def _send(self, job: WorkflowActivationJob) -> None:
        await self._outside.send(self._service, self._prefix + self.main.id, job)

    # Coming to a stop.

    def _look(self, news: int) -> None:
        if news == self._news and self._is_quiet():
            self._loop.call_later(_QUIET, self._stop_at, news)

    def _stop_at(self, news: int) -> None:
        """Nothing is to come by itself: what is still to come from outside comes now, or nothing ever does."""
        if self._stopped or news != self._news:
            return
        if self._outside.of(self.main.turn):
            self._loop.create_task(self._send_next())
        else:
            self.waiting = self.main.world.open
            self._finish(None)

    async def _send_next(self) -> None:
        try:
            for job in self._outside.of(self.main.turn).pop(0).jobs:
                await self._send(job)
        except RPCError as error:
            self._finish(None, error)

    def _is_quiet(self) -> bool:
        """Whether every execution waits for nothing that the server, an activity or a timer would bring."""
        if self._stopped or self._next or self._outside.is_under_way or self._coming:
            return False
        return not any(self._is_busy(seat) for seat in self._seats.values())

    def _is_busy(self, seat: Seat) -> bool:
        world = seat.actor.world
        if world.ended is not None:
            return False
        if seat.stands or world.timers:
            return True
        return any(ask.key not in seat.never and not self._is_child(ask) for ask in world.open)

    def _is_child(self, ask: Ask) -> bool:
        """Whether it waits for a child that is here and goes on."""
        return ask.sort == "child" and ask.command.workflow_id not in self._ended
