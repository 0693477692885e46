"""Activities of a fork's tail that run for real: their attempts, as the server and core have them.

Each is tried until its retry policy has enough. Between attempts nothing is waited for: the clock of the fork jumps.
While one runs that clock goes with the real one, so timeouts hit it, and a cancellation reaches it, where they would:
an activity of a task queue hears of it in the answer to a heartbeat, a local one at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityExecutionResult, ActivityResolution
from temporalio.bridge.proto.activity_task import Start

from lockstep_temporal import failures, retries
from lockstep_temporal.asks import Ask, completed
from lockstep_temporal.client import NO_CLIENT
from lockstep_temporal.live import Came, Live
from lockstep_temporal.retries import Again, Policy
from lockstep_temporal.world import World

_ENDLESS = 20  # attempts of an activity that nothing else would ever stop
_THRESHOLD = 60 * retries.SECOND  # above which core has a timer for the retry of a local activity

_SAME = ("schedule_to_close_timeout", "start_to_close_timeout", "heartbeat_timeout", "retry_policy", "priority")

type Told = Callable[[World, Ask, int, str, Any], None]


class Endless(Exception):
    """An activity fails again and again, and neither its policy nor a timeout ever stops it."""


class Elsewhere(Exception):
    """An activity needs what a fork has not: a client, or somebody outside who completes it."""


class Trying(msgspec.Struct):
    """One activity at work. `again`: when its next attempt begins, None while one runs."""

    world: World
    ask: Ask
    policy: Policy
    number: int
    attempt: int = 1
    token: bytes = b""
    started: int = 0
    scheduled: int = 0  # this attempt
    beaten: int = 0
    beat: tuple[Any, ...] = ()
    last: Failure | None = None
    again: int | None = None
    cancelling: bool = False
    gone: bool = False
    began: int = 0  # the event that recorded it

    @property
    def until(self) -> int:
        """When its schedule-to-close timeout passes, 0 for never."""
        limit = self.ask.command.schedule_to_close_timeout.ToNanoseconds()
        return self.ask.at + limit if limit else 0

    def name(self) -> str:
        return str(self.ask.command.activity_type)


class Activities:
    """All that are at work. `told(world, ask, attempt, status, value)`: hears of each attempt that begins ("",
    with the details of the last heartbeat), beats ("beat", with details), and is over ("ok", "error", "cancelled", with
    its failure)."""

    def __init__(self, live: Live, told: Told | None = None) -> None:
        self.live = live
        self._told = told or (lambda *_: None)
        self._trying: dict[bytes, Trying] = {}
        self._count = 0

    def begin(self, world: World, ask: Ask, now: int) -> None:
        """An activity runs for real from now on."""
        self._count += 1
        command = ask.command
        attempt = max(int(getattr(command, "attempt", 0)), 1)  # of a local one whose retry a timer has waited for
        trying = Trying(world, ask, retries.policy(command.retry_policy), self._count, attempt)
        trying.began = world.events_of(ask.key)[0]
        trying.scheduled = now
        self._attempt(trying, now)

    def stop(self, world: World, seq: int, now: int, *, gone: bool) -> None:
        """It is cancelled. `gone`: nobody waits for how it ends."""
        for token, trying in list(self._trying.items()):
            if trying.world is not world or trying.ask.seq != seq:
                continue
            trying.cancelling, trying.gone = True, trying.gone or gone
            if trying.again is not None:
                del self._trying[token]
                self._cancelled(trying, now, None)
            elif trying.ask.is_local:
                self.live.cancel(token)

    def forget(self, world: World) -> None:
        """Its workflow is over. What runs is told so with its next heartbeat, as by a server that does not know it."""
        for token, trying in list(self._trying.items()):
            if trying.world is world:
                self.live.cancel(token, forget=True)
                del self._trying[token]

    @property
    def running(self) -> bool:
        """Whether an attempt is on, and with it the real time."""
        return any(trying.again is None for trying in self._trying.values())

    def due(self) -> int | None:
        """When one is tried again, or runs into a timeout."""
        return min((at for trying in self._trying.values() for at in self._dues(trying)), default=None)

    def came(self, came: Came, now: int) -> None:
        """News from the functions that run. Raises Endless, Elsewhere."""
        trying = self._trying.get(came.token)
        if trying is None:
            return
        if came.result is not None:
            del self._trying[came.token]
            self._ended(trying, came.result, now)
            return
        trying.beat, trying.beaten = came.details, now
        self._told(trying.world, trying.ask, trying.attempt, "beat", came.details)
        if trying.cancelling:
            self.live.cancel(came.token)

    def tick(self, now: int) -> None:
        """Begins the attempts that are due, and ends those whose time is over. Raises Endless."""
        for token, trying in list(self._trying.items()):
            if trying.again is not None:
                if trying.again <= now:
                    del self._trying[token]
                    self._attempt(trying, now)
                continue
            kind = next((kind for kind, at in self._limits(trying) if at <= now), None)
            if kind is not None:
                self.live.cancel(token, timed_out=True)
                del self._trying[token]
                self._timed_out(trying, kind, now)

    # Inside.

    def _dues(self, trying: Trying) -> Iterator[int]:
        if trying.again is not None:
            yield trying.again
        else:
            yield from (at for _, at in self._limits(trying))

    def _limits(self, trying: Trying) -> Iterator[tuple[TimeoutType.ValueType, int]]:
        """The timeouts of the attempt that runs, the first one first where two come at once."""
        command = trying.ask.command
        # Where there is none, the server takes the other one, and goes by this one first.
        close = command.start_to_close_timeout.ToNanoseconds() or command.schedule_to_close_timeout.ToNanoseconds()
        beats = 0 if trying.ask.is_local else command.heartbeat_timeout.ToNanoseconds()
        if close:
            yield TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, trying.started + close
        if trying.until:
            yield TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, trying.until
        if beats:
            yield TimeoutType.TIMEOUT_TYPE_HEARTBEAT, trying.beaten + beats

    def _attempt(self, trying: Trying, now: int) -> None:
        trying.again, trying.started, trying.beaten = None, now, now
        trying.token = f"{trying.number}.{trying.attempt}".encode()
        self._trying[trying.token] = trying
        self._told(trying.world, trying.ask, trying.attempt, "", trying.beat)
        self.live.start(trying.token, _start(trying))

    def _ended(self, trying: Trying, result: ActivityExecutionResult, now: int) -> None:
        status = result.WhichOneof("status")
        if status == "will_complete_async":
            raise Elsewhere(
                f"activity {trying.name()} is completed from outside, where nobody is. Give it an answer with --set, or"
                " fork with --server local"
            )
        if status == "completed":
            self._told(trying.world, trying.ask, trying.attempt, "ok", None)
            payload = result.completed.result if result.completed.HasField("result") else None
            self._settle(trying, now, completed(payload))
        elif status == "cancelled":
            self._told(trying.world, trying.ask, trying.attempt, "cancelled", result.cancelled.failure)
            self._cancelled(trying, now, result.cancelled.failure.canceled_failure_info.details)
        else:
            if result.failed.failure.application_failure_info.type == NO_CLIENT:
                raise Elsewhere(f"activity {trying.name()}: {result.failed.failure.message}")
            self._told(trying.world, trying.ask, trying.attempt, "error", result.failed.failure)
            self._failed(trying, result.failed.failure, now)

    def _timed_out(self, trying: Trying, kind: TimeoutType.ValueType, now: int) -> None:
        failure = failures.timeout(kind, trying.last, Payloads(payloads=trying.beat))
        self._told(trying.world, trying.ask, trying.attempt, "error", failure)
        self._failed(trying, failure, now)

    def _failed(self, trying: Trying, failure: Failure, now: int) -> None:
        ask, local = trying.ask, trying.ask.is_local
        if trying.gone:
            return
        if trying.cancelling and not local:
            # The server tries nothing again that is to be cancelled.
            self._give_up(trying, failure, RetryState.RETRY_STATE_CANCEL_REQUESTED, now)
            return
        verdict = retries.after(trying.policy, trying.attempt, failure, now, trying.until, local=local)
        if not isinstance(verdict, Again):
            self._give_up(trying, failure, verdict.state, now)
            return
        if not trying.policy.most and not trying.until and trying.attempt >= _ENDLESS:
            raise Endless(f"{trying.name()} has failed {trying.attempt} times, the last time with: {failure.message}")
        if local and verdict.wait > (ask.command.local_retry_threshold.ToNanoseconds() or _THRESHOLD):
            resolution = ActivityResolution()
            resolution.backoff.attempt = trying.attempt + 1
            resolution.backoff.backoff_duration.FromNanoseconds(verdict.wait)
            resolution.backoff.original_schedule_time.FromNanoseconds(_first_asked(ask))
            self._settle(trying, now, resolution)
            return
        trying.attempt += 1
        trying.last, trying.again, trying.scheduled = failure, now + verdict.wait, now + verdict.wait
        self._trying[trying.token] = trying

    def _give_up(self, trying: Trying, failure: Failure, state: RetryState.ValueType, now: int) -> None:
        ask = trying.ask
        resolution = ActivityResolution()
        timed_out = failure.HasField("timeout_failure_info")
        if ask.is_local:
            made = failures.local_timed_out(ask.command, failure) if timed_out else failure
        else:
            at = trying.world.events_of(ask.key)
            if timed_out and state == RetryState.RETRY_STATE_TIMEOUT:
                failure = failures.no_time(trying.last, Payloads(payloads=trying.beat))
            make = failures.activity_timed_out if timed_out else failures.activity_failed
            made = make(ask.command, failure, state, at)
        resolution.failed.failure.CopyFrom(made)
        self._settle(trying, now, resolution)

    def _cancelled(self, trying: Trying, now: int, details: Any) -> None:
        ask = trying.ask
        resolution = ActivityResolution()
        if ask.is_local:
            made = failures.local_cancelled(ask.command)
        else:
            made = failures.activity_cancelled(ask.command, trying.world.events_of(ask.key), details)
        resolution.cancelled.failure.CopyFrom(made)
        self._settle(trying, now, resolution)

    def _settle(self, trying: Trying, now: int, resolution: ActivityResolution) -> None:
        if not trying.gone:
            trying.world.settle(trying.ask.key, now, resolution)
        elif not trying.ask.is_local:
            trying.world.unheard(2)  # that it started, and how it ended


def _first_asked(ask: Ask) -> int:
    given = ask.command.original_schedule_time.ToNanoseconds()
    return given or ask.at


def _start(trying: Trying) -> Start:
    """The attempt as core hands it to a worker."""
    world, command = trying.world, trying.ask.command
    task = Start(
        workflow_namespace=world.namespace,
        workflow_type=world.init.workflow_type,
        activity_id=command.activity_id,
        activity_type=command.activity_type,
        attempt=trying.attempt,
        is_local=trying.ask.is_local,
    )
    task.workflow_execution.workflow_id = world.init.workflow_id
    task.workflow_execution.run_id = world.run_id
    task.input.extend(command.arguments)
    task.heartbeat_details.extend(trying.beat)
    for key, payload in command.headers.items():
        task.header_fields[key].CopyFrom(payload)
    task.scheduled_time.FromNanoseconds(_first_asked(trying.ask) if trying.ask.is_local else trying.ask.at)
    task.current_attempt_scheduled_time.FromNanoseconds(trying.scheduled)
    task.started_time.FromNanoseconds(trying.started)
    for name in (
        "schedule_to_close_timeout",
        "start_to_close_timeout",
        "heartbeat_timeout",
        "retry_policy",
        "priority",
    ):
        if name in command.DESCRIPTOR.fields_by_name and command.HasField(name):
            getattr(task, name).CopyFrom(getattr(command, name))
    return task
