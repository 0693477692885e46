"""The tail of a fork: a workflow, and the children that it starts, go on from where they are until they end.

    stage = Stage(prepared, live, decide, tasks=…)
    stage.enter(world, drive)           the workflow, with what was served behind it
    ended = stage.run()

Nothing is waited for but what runs for real: the clock is the stage's own, and jumps to what comes next. While an
activity runs it goes with the real one. What decides of a call is told by `decide`, and what was done by `tasks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob

from lockstep_temporal import executions, failures, retries
from lockstep_temporal.actors import Actor, Given, Hooks, Inbound, Unable
from lockstep_temporal.asks import NOT_FOUND, Ask, Ended, Stop
from lockstep_temporal.chains import (
    ABANDON,
    REQUEST_CANCEL,
    child_result,
    deadline,
    run_after,
    sent_before,
    sent_by,
    target_of,
)
from lockstep_temporal.client import Sent
from lockstep_temporal.driver import Drive, closed
from lockstep_temporal.live import Live
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.trying import Activities
from lockstep_temporal.watching import Watch
from lockstep_temporal.world import World

_CAME = ("signal_workflow", "do_update", "cancel_workflow", "resolve_activity", "resolve_child_workflow_execution")
_MOST_IDLE = 1000  # tasks in a row: a workflow that polls for what does not come would go on for ever
_EXISTS = 1  # START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
_REJECT_DUPLICATE, _FAILED_ONLY = 3, 2  # WorkflowIdReusePolicy


class Stage:
    """What goes on at once. `notes`: what was left out; `waiting`: what the workflow still waits for, where it does."""

    def __init__(
        self, prepared: Prepared, live: Live, hooks: Hooks, inbound: Sequence[Sequence[Inbound]] = (), *,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        """`inbound`: of each run of the chain, from the one that is forked. `watch`: ends code that does not stop."""
        self._watched = watch.on if watch is not None else nullcontext
        self.prepared = prepared
        self.hooks = hooks
        self.activities = Activities(live, hooks.attempt)
        self.live = live
        self.now = 0
        self.actors: list[Actor] = []
        self.notes: list[str] = []
        self.waiting: tuple[Ask, ...] | None = None
        self._inbound = [list(each) for each in inbound]
        self._recorded = {job.signal_workflow.signal_name for each in inbound for one in each for job in one.jobs} - {
            ""
        }
        self._ended: dict[str, Ended] = {}  # by workflow id
        self._later: list[tuple[int, Callable[[], None]]] = []  # runs that are to begin
        self._never: dict[tuple[str, str, int], tuple[Actor, Ask, Given]] = {}
        self._begun = 0
        self._real = 0
        self._idle = 0  # tasks of the workflow in a row in which it only set timers

    def enter(self, world: World, drive: Drive) -> None:
        """The workflow that is forked, where it is at the cut. What is open there is issued anew."""
        self.now = world.now
        self.main = Actor(world, drive)
        self.actors.append(self.main)
        self._ended.update(world.children)
        if world.ended is not None:
            return
        for timer in world.timers:
            self.hooks.timer(self.main, timer)
        for ask in world.open:
            self._ask(self.main, ask)
            if world.is_cancelled(ask.key):
                self._stop(self.main, Stop(ask.sort, ask.seq))

    def begin(self, first: WorkflowActivation, namespace: str = "default", task_queue: str = "") -> None:
        """A workflow that begins with this activation."""
        world = World(first, namespace, task_queue)
        self.now = world.now
        drive = Drive(self.prepared, first, namespace=namespace, task_queue=task_queue)
        self.main = Actor(world, drive)
        self.actors.append(self.main)
        self._task(self.main, first)

    def run(self) -> Ended | None:
        """Until the workflow's chain ends; None: it waits for what does not come (`waiting`)."""
        while self.main.world.ended is None or self._later:
            if self._idle > _MOST_IDLE:
                self.notes.append(f"the workflow has done nothing but set timers, {_MOST_IDLE} times in a row")
                self.waiting = ()
                return None
            if not self._step() and not self._pass_time():
                self.waiting = self.main.world.open
                return None
        return self.main.world.ended

    def close(self) -> None:
        """Ends what is driven by it, the workflow itself included."""
        for actor in self.actors:
            closed(actor.drive, self._watched)
        self.actors.clear()

    # One thing after the other.

    def _step(self) -> bool:
        """Lets one workflow do a task; False: none has anything to do now."""
        for actor in list(self.actors):
            if actor.first is not None:
                first, actor.first = actor.first, None
                self._task(actor, first)
                return True
            self._arrive(actor)
            activation = actor.world.next(self.now)
            if activation is None:
                continue
            self._task(actor, activation)
            return True
        return False

    def _task(self, actor: Actor, activation: WorkflowActivation) -> None:
        with self._watched():
            completion = actor.drive.activate(activation)
        before = {timer.seq for timer in actor.world.timers}
        asks = actor.world.take(completion)
        self.hooks.task(actor, activation, completion)
        if actor is self.main:
            came = any(job.WhichOneof("variant") in _CAME for job in activation.jobs)
            self._idle = 0 if came or any(isinstance(ask, Ask) for ask in asks) else self._idle + 1
        if actor.world.refused:
            raise Unable(f"{actor.world.refused} cannot be emulated")
        for timer in actor.world.timers:
            if timer.seq not in before:
                self.hooks.timer(actor, timer)
        for ask in asks:
            if isinstance(ask, Stop):
                self._stop(actor, ask)
            else:
                self._ask(actor, ask)
        if actor.world.ended is not None:
            self._over(actor, actor.world.ended)

    def _pass_time(self) -> bool:
        """Until something is due. False: nothing ever is."""
        if self.activities.running:
            self._wait()
            return True
        self._real = 0
        came = self.live.wait(0)
        if came is not None and came.sent is not None:
            self._signalled(came.sent)  # of an activity that nobody waits for any more
            return True
        due = self._due()
        if due is not None:
            self._advance(max(due, self.now))
            return True
        return self._nothing_left()

    def _due(self) -> int | None:
        dues = [actor.world.due() for actor in self.actors]
        dues += [self.activities.due(), *(at for at, _ in self._later)]
        found = min((at for at in dues if at is not None), default=None)
        limit = self._deadline()
        # An execution's own timeout alone is nothing that happens: who waits for a signal says so at once.
        return found if found is None or limit is None else min(found, limit)

    def _wait(self) -> None:
        """With the real clock, until there is news of an activity or something else is due."""
        if not self._real:
            self._real = time.monotonic_ns()
        due = self._due()
        came = self.live.wait(None if due is None else max(due - self.now, 0) / retries.SECOND)
        real = time.monotonic_ns()
        passed, self._real = real - self._real, real
        # What is due comes when it is due, however late we are.
        until = self.now + passed
        self._advance(until if due is None or came is not None or until < due else due)
        while came is not None:
            if came.sent is not None:
                self._signalled(came.sent)
            else:
                self.activities.came(came, self.now)
            came = self.live.wait(0)

    def _advance(self, now: int) -> None:
        self.now = now
        for actor in list(self.actors):
            limit = deadline(actor.world)
            if limit and limit <= now and actor.world.ended is None:
                actor.world.ended = Ended("timed_out")
                self._over(actor, actor.world.ended)
        self.activities.tick(now)
        for item in sorted((each for each in self._later if each[0] <= now), key=lambda each: each[0]):
            self._later.remove(item)
            item[1]()

    def _deadline(self) -> int | None:
        """When the first of the executions runs into its own timeout."""
        found = [at for at in (deadline(actor.world) for actor in self.actors if actor.world.ended is None) if at]
        return min(found, default=None)

    # What a workflow asks for.

    def _ask(self, actor: Actor, ask: Ask) -> None:
        if ask.sort in ("signal", "cancel") and self._is_here(ask):
            self._send(actor, ask)
            return
        given = self.hooks.decide(actor, ask)
        if given is not None:
            self._give(actor, ask, given)
        elif ask.sort == "activity":
            self.activities.begin(actor.world, ask, self.now)
        elif ask.sort == "child":
            self._start(actor, ask)
        else:
            raise Unable(f"{ask.sort} of another workflow: there is no server that would bring it there")

    def _give(self, actor: Actor, ask: Ask, given: Given) -> None:
        if given.cause:
            actor.world.start(ask.seq, max(ask.at + given.after, self.now), cause=given.cause)
            return
        for each in given.signals:
            actor.world.deliver(each.job, max(ask.at + each.after, self.now), each.rank)
        if ask.sort == "child" and given.run_id:
            actor.world.start(ask.seq, ask.at + given.started, given.run_id)
        if given.never:
            self._never[actor.world.run_id, *ask.key] = actor, ask, given
        else:
            actor.world.settle(ask.key, max(ask.at + given.after, self.now), given.result, given.rank)

    def _stop(self, actor: Actor, stop: Stop) -> None:
        never = self._never.pop((actor.world.run_id, stop.sort, stop.seq), None)
        if never is not None and not stop.gone and never[2].result is not None:
            actor.world.settle((stop.sort, stop.seq), self.now, never[2].result)
        if stop.sort == "activity":
            self.activities.stop(actor.world, stop.seq, self.now, gone=stop.gone)
        for child in self.actors:
            if stop.sort == "child" and child.parent is actor and child.ask is not None and child.ask.seq == stop.seq:
                job = WorkflowActivationJob()
                job.cancel_workflow.reason = stop.reason
                child.world.deliver(job, self.now)
                actor.world.unheard(4)  # that it was asked to, and a task in which core says nothing of it

    # Other executions.

    def _start(self, actor: Actor, ask: Ask) -> None:
        """A child of the setup's own workflows begins."""
        command = ask.command
        running = next((other for other in self.actors if other.id == command.workflow_id), None)
        before = self._ended.get(command.workflow_id)
        reuse = command.workflow_id_reuse_policy
        taken = before is not None and (
            reuse == _REJECT_DUPLICATE or (reuse == _FAILED_ONLY and before.how == "complete_workflow_execution")
        )
        if running is not None or taken:
            actor.world.start(ask.seq, self.now, cause=_EXISTS)
            return
        if command.cron_schedule:
            raise Unable(f"child workflow {command.workflow_type} with a cron schedule never ends")
        self._begun += 1
        started = actor.world.begun(ask.seq)
        id = started or executions.run_id(actor.world.run_id, command.workflow_id, self._begun)
        actor.world.start(ask.seq, self.now, id)
        first = executions.child(actor.world, command, id, self.now)
        lane = f"{actor.lane}/{command.workflow_type}-{self._begun}"
        self._drive(first, command.task_queue, parent=actor, ask=ask, lane=lane)
        child = next((each for each in self.actors if each.ask is ask), None)
        if started and child is not None:
            for job in sent_before(actor.world, command.workflow_id):
                child.world.deliver(job, self.now)

    def _drive(
        self, first: WorkflowActivation, task_queue: str, *, parent: Actor | None, ask: Ask | None, lane: str,
        turn: int = 0, is_main: bool = False,
    ) -> None:  # fmt: skip
        namespace = self.main.world.namespace
        drive = Drive(self.prepared, first, namespace=namespace, task_queue=task_queue)
        actor = Actor(World(first, namespace, task_queue), drive, parent=parent, ask=ask, lane=lane)
        actor.turn = turn
        actor.first = first  # its turn comes when those before it have heard of it
        if is_main:
            self.main = actor
        self.actors.append(actor)

    def _is_here(self, ask: Ask) -> bool:
        target = target_of(ask.command)
        return target in self._ended or any(actor.id == target for actor in self.actors)

    def _send(self, actor: Actor, ask: Ask) -> None:
        """A signal or a cancellation for an execution that is driven here."""
        target = next((other for other in self.actors if other.id == target_of(ask.command)), None)
        if target is None:
            what = "signal" if ask.sort == "signal" else "cancel"
            failure = failures.application(f"Unable to {what} external workflow because it was not found", NOT_FOUND)
            actor.world.settle(ask.key, self.now, failure)
            return
        target.world.deliver(sent_by(ask.command, actor.world.run_id), self.now)
        actor.world.settle(ask.key, self.now, None)

    def _signalled(self, sent: Sent) -> None:
        """An activity signals a workflow."""
        target = next((other for other in self.actors if other.id == sent.target), None)
        if target is None:
            sent.refuse(over=sent.target in self._ended)
            return
        job = sent.take()
        target.world.deliver(job, self.now)
        name = job.signal_workflow.signal_name
        if target is self.main and name in self._recorded:
            told = f"activity {sent.activity} sends signal {name} for real, and what came by that name comes too"
            self.notes += [told] if told not in self.notes else []

    # How executions end.

    def _over(self, actor: Actor, ended: Ended) -> None:
        self.activities.forget(actor.world)
        known = self.hooks.chain(actor.turn + 1) if actor is self.main else None
        following = run_after(actor.world, ended, self.now, known)
        if actor is self.main:
            self.hooks.turn(actor, ended, following)
            if following is not None and not self.hooks.follows():
                following = None
        elif ended.how == "failed_task":
            raise Unable(f"child workflow {actor.world.init.workflow_type} failed its task: {ended.command.message}")
        self._leave(actor, gone=following is None)
        if following is not None:
            self._follow(actor, following)
        elif actor.parent is not None:
            self._ended[actor.id] = ended
            self._tell_parent(actor, ended)

    def _follow(self, actor: Actor, first: WorkflowActivation) -> None:
        """The next run of its chain, when its time has come."""
        is_main = actor is self.main
        self.actors.append(actor)  # in its place until then: it is the workflow's, and cannot be started again

        def begin() -> None:
            self.actors.remove(actor)
            self._drive(
                first, actor.world.task_queue, parent=actor.parent, ask=actor.ask, lane=actor.lane,
                turn=actor.turn + 1, is_main=is_main,
            )  # fmt: skip

        self._later.append((first.timestamp.ToNanoseconds(), begin))

    def _leave(self, actor: Actor, *, gone: bool) -> None:
        """An execution is over; `gone`: and its chain with it, so its children go by their close policy."""
        self.actors.remove(actor)
        closed(actor.drive, self._watched)
        for child in [each for each in self.actors if each.parent is actor] if gone else ():
            assert child.ask is not None
            policy = child.ask.command.parent_close_policy
            if policy == REQUEST_CANCEL and actor is not self.main:
                job = WorkflowActivationJob()
                job.cancel_workflow.reason = "parent closed"
                child.world.deliver(job, self.now)
            if policy not in (ABANDON, REQUEST_CANCEL):
                self._terminate(child)
            elif actor is self.main:
                self.notes.append(f"child workflow {child.world.init.workflow_type} goes on after its parent's end")

    def _terminate(self, actor: Actor) -> None:
        actor.world.ended = Ended("terminated")
        self.activities.forget(actor.world)
        self._ended[actor.id] = actor.world.ended
        self._leave(actor, gone=True)

    def _tell_parent(self, actor: Actor, ended: Ended) -> None:
        parent = actor.parent
        assert parent is not None
        assert actor.ask is not None
        seq = actor.ask.seq
        if not parent.world.waits_for(("child", seq)):
            return
        result = child_result(parent.world, seq, actor.world, ended)
        parent.world.settle(("child", seq), self.now, result)

    # What comes from outside.

    def _arrive(self, actor: Actor) -> None:
        """Delivers what was recorded, once the workflow is where it came. Alone, where it came alone: with the time."""
        waiting = self._of(actor)
        while waiting and waiting[0].step <= actor.world.steps:
            first = waiting[0]
            due = actor.world.due()
            if not first.alone and (due is None or due > self.now):
                return
            del waiting[0]
            self._deliver(actor, first, self._due())

    def _nothing_left(self) -> bool:
        """All is quiet: what is still to come from outside comes now."""
        waiting = self._of(self.main)
        if waiting:
            self._deliver(self.main, waiting.pop(0), None)
            return True
        while self._never:
            actor, ask, _ = self._never.pop(next(iter(self._never)))
            if actor in self.actors and actor.world.waits_for(ask.key):
                self.hooks.unanswered(actor, ask)
                self._start(actor, ask)
                return True
        return False

    def _deliver(self, actor: Actor, inbound: Inbound, due: int | None) -> None:
        at = max(self.now, inbound.at)
        self.now = at = max(self.now, at if due is None else min(at, due))
        for job in inbound.jobs:
            actor.world.deliver(job, at, inbound.rank)

    def _of(self, actor: Actor) -> list[Inbound]:
        if actor is not self.main or actor.world.ended is not None or actor.turn >= len(self._inbound):
            return []
        return self._inbound[actor.turn]
