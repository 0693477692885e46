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
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import temporalio.api.common.v1 as common
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.workflowservice.v1 import (
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
)
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker, WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from lockstep_temporal import ending, executions, server
from lockstep_temporal.actors import Actor, Hooks, Inbound, Unable
from lockstep_temporal.asks import Ask, Ended, Stop, answer
from lockstep_temporal.chains import ABANDON, REQUEST_CANCEL, deadline, run_after, sent_before, target_of
from lockstep_temporal.driver import Drive
from lockstep_temporal.live import Live, activities_of
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.seats import Seat
from lockstep_temporal.watching import Watch
from lockstep_temporal.world import World

_BEATS = timedelta(milliseconds=100)  # how late activities may hear that they are cancelled
NAMESPACE = "default"  # that every development server has
_IDENTITY = "lockstep"  # of activities' client too
_OUTSIDE = "lockstep-outside"  # of what was recorded, and is sent again
_QUIET = 0.3  # seconds without news after which a workflow that waits for nothing of the server's has come to a stop
_PATIENCE = 5.0  # seconds for which activities may still tidy up
_THREADS = 64
# Older ones have another form of the same request, which no server knows any more.
SKIPS = hasattr(WorkflowEnvironment, "start_time_skipping_v2")


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
        self._inbound = [list(each) for each in inbound]
        self._first: WorkflowActivation | None = None
        unique = uuid.uuid4().hex
        self._prefix, self._task_queue = f"lockstep-{unique}/", f"lockstep-{unique}"
        self._seats: dict[str, Seat] = {}  # by run id on the server
        self._next: dict[str, tuple[Seat, WorkflowActivation]] = {}  # by workflow id: the run that follows
        self._coming: dict[str, tuple[Seat, Ask, str]] = {}  # children that were asked for: whose, and their run ids
        self._sent: deque[WorkflowActivationJob] = deque()  # to the workflow, and not seen yet
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
        ending.settle()
        converter = self.prepared.data_converter
        # What is driven has not been through a codec, and nothing of it leaves this machine.
        plain: dict[str, Any] = {"payload_codec": None}
        if any(field.name == "external_storage" for field in fields(converter)):
            plain["external_storage"] = None
        client = await Client.connect(
            address, namespace=NAMESPACE, data_converter=replace(converter, **plain), identity=_IDENTITY
        )
        self._service = client.workflow_service
        functions, interceptors = activities_of(self.prepared)
        runner = _Runner(self)
        pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="lockstep-temporal-activity")
        worker = Worker(
            client,
            task_queue=self._task_queue,
            workflows=[each.cls for each in self.prepared.workflows.values()],
            activities=functions,
            activity_executor=pool,
            interceptors=interceptors,
            workflow_runner=runner,
            unsandboxed_workflow_runner=runner,
            max_heartbeat_throttle_interval=_BEATS,
            default_heartbeat_throttle_interval=_BEATS,
        )
        _patient(worker)
        working = asyncio.create_task(worker.run())
        try:
            await self._start()
            ends: set[asyncio.Future[Any]] = {working, self._over}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not self._over.done():
                await working  # a worker ends by an error
            return await self._over
        finally:
            self._stopped = True
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.shutdown(), _PATIENCE)
            working.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
            ending.settle()

    async def _start(self) -> None:
        init = self.main.world.init
        request = StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=self._prefix + self.main.id,
            workflow_type=common.WorkflowType(name=init.workflow_type),
            identity=_IDENTITY,
            request_id=uuid.uuid4().hex,
        )
        request.task_queue.name = self._task_queue
        if init.HasField("retry_policy"):
            request.retry_policy.CopyFrom(init.retry_policy)
        if until := deadline(self.main.world):
            request.workflow_run_timeout.FromNanoseconds(max(until - self.main.world.now, 1_000_000))
        if not SKIPS:
            await self._service.start_workflow_execution(request)
            return
        request.time_skipping_config.enabled = True
        try:
            await self._service.start_workflow_execution(request)
        except RPCError as error:
            if error.status not in (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.UNIMPLEMENTED):
                raise
            request.ClearField("time_skipping_config")  # a server of the user's that is not set up for it
            await self._service.start_workflow_execution(request)

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
        if kind == "signal_workflow" and job.signal_workflow.identity == _OUTSIDE:
            return (self._seen("signal_workflow"),)
        if kind == "cancel_workflow" and self._sent and self._sent[0].HasField("cancel_workflow"):
            return (self._seen(kind),)
        if kind == "do_update":
            update = self._seen(kind)
            seat.updates[update.do_update.protocol_instance_id] = job.do_update.protocol_instance_id
            return (update,)
        if kind == "resolve_child_workflow_execution_start":
            return self._child_start(seat, job)
        return tuple(seat.answers(job))

    def _seen(self, kind: str) -> WorkflowActivationJob:
        """What was sent: as the record or an edit has it."""
        found = next(job for job in self._sent if job.HasField(kind))  # type: ignore[arg-type]
        self._sent.remove(found)
        return found

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
        waiting = self._outside
        while waiting and waiting[0].step <= self.main.world.steps:
            self._send_all(waiting.pop(0))

    @property
    def _outside(self) -> list[Inbound]:
        return self._inbound[self.main.turn] if self.main.turn < len(self._inbound) else []

    def _send_all(self, inbound: Inbound) -> None:
        """From a thread of the worker's."""
        for job in inbound.jobs:
            self._sent.append(job)
            asyncio.run_coroutine_threadsafe(self._send(job), self._loop).result(_PATIENCE)

    async def _send(self, job: WorkflowActivationJob) -> None:
        target = common.WorkflowExecution(workflow_id=self._prefix + self.main.id)
        if job.HasField("signal_workflow"):
            signal = SignalWorkflowExecutionRequest(
                namespace=NAMESPACE, workflow_execution=target, identity=_OUTSIDE, request_id=uuid.uuid4().hex
            )
            signal.signal_name = job.signal_workflow.signal_name
            await self._service.signal_workflow_execution(signal)
        elif job.HasField("cancel_workflow"):
            cancel = RequestCancelWorkflowExecutionRequest(
                namespace=NAMESPACE, workflow_execution=target, identity=_IDENTITY, request_id=uuid.uuid4().hex
            )
            await self._service.request_cancel_workflow_execution(cancel)
        else:
            update = UpdateWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=target)
            update.wait_policy.lifecycle_stage = (
                UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
            )
            update.request.meta.update_id = uuid.uuid4().hex
            update.request.meta.identity = _IDENTITY
            update.request.input.name = job.do_update.name
            # It answers once the workflow has accepted it, which it cannot while this is waited for.
            self._updating = self._loop.create_task(self._update(update))
            await asyncio.wait({self._updating}, timeout=0.05)

    async def _update(self, request: UpdateWorkflowExecutionRequest) -> None:
        with suppress(RPCError):  # the workflow has rejected it, or is over
            await self._service.update_workflow_execution(request)

    # Coming to a stop.

    def _look(self, news: int) -> None:
        if news == self._news and self._is_quiet():
            self._loop.call_later(_QUIET, self._stop_at, news)

    def _stop_at(self, news: int) -> None:
        """Nothing is to come by itself: what is still to come from outside comes now, or nothing ever does."""
        if self._stopped or news != self._news:
            return
        if self._outside:
            self._loop.create_task(self._send_next())
        else:
            self.waiting = self.main.world.open
            self._finish(None)

    async def _send_next(self) -> None:
        try:
            for job in self._outside.pop(0).jobs:
                self._sent.append(job)
                await self._send(job)
        except RPCError as error:
            self._finish(None, error)

    def _is_quiet(self) -> bool:
        """Whether every execution waits for nothing that the server, an activity or a timer would bring."""
        if self._stopped or self._next or self._sent or self._coming:
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


class _Runner(WorkflowRunner):
    """Makes the server's instances."""

    def __init__(self, host: Hosted) -> None:
        self._host = host

    def prepare_workflow(self, defn: Any) -> None:
        """Nothing runs in them."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Instance(self._host.activate, det.info)


class _Instance(WorkflowInstance):
    """An execution on the server."""

    def __init__(self, activate: Callable[[WorkflowActivation], WorkflowActivationCompletion], info: Any) -> None:
        self._activate = activate
        self._info = info

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._activate(act)

    def get_serialization_context(self, command_info: Any) -> Any:
        return None

    def get_external_store_context(self, command_info: Any) -> Any:
        return None

    def get_info(self) -> Any:
        return self._info


def _patient(worker: Worker) -> None:
    """A workflow's code may take as long as it does in a fork without a server: that has a watch of its own."""
    workflows: Any = getattr(worker, "_workflow_worker", None)
    if hasattr(workflows, "_deadlock_timeout_seconds"):
        workflows._deadlock_timeout_seconds = None
