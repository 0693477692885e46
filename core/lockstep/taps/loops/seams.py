"""The seams of asyncio, each a method of `BaseEventLoop` or `Handle` with the place in the record added.

Tried with CPython 3.12.1 and 3.13.0. Private names used: `Handle._run`, `BaseEventLoop._run_once`,
`_ready`, `_scheduled`, `_stopping`, `_asyncgens`, its two hooks, `BaseSelectorEventLoop._make_self_pipe`,
`runners._cancel_all_tasks`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import itertools
import weakref
from asyncio import base_events, events, futures, runners, selector_events, tasks
from typing import Any

from lockstep.errors import Code, Stop
from lockstep.session import current, lanes, reads
from lockstep.session import ticks as positions
from lockstep.session.lanes import COLLECTING, INSIDE, LANE, Sent
from lockstep.session.ticks import Ticks
from lockstep.taps.loops.handles import Future, Ready, Task, Timer, Wake

_Base: Any = base_events.BaseEventLoop
_Handle: Any = events.Handle
_Selector: Any = selector_events.BaseSelectorEventLoop

handle_run, run_once = _Handle._run, _Base._run_once
create_task, create_future = _Base.create_task, _Base.create_future
call_at, call_soon_threadsafe, loop_time = _Base.call_at, _Base.call_soon_threadsafe, _Base.time
in_executor, shutdown_executor = _Base.run_in_executor, _Base.shutdown_default_executor
shutdown_generators = _Base.shutdown_asyncgens
first_iteration, finalize = _Base._asyncgen_firstiter_hook, _Base._asyncgen_finalizer_hook
original_as_completed = tasks.as_completed
handle_exception = _Base.call_exception_handler
cancel_all = runners._cancel_all_tasks  # type: ignore[attr-defined]

_CAUSES = (Timer, Wake, Ready)

# The program's own asynchronous generators, by id, numbered as they began. No weak references: those are
# gone when the finalizer asks. Ids come again, and every generator that begins sets or drops its own.
_begun: dict[int, int] = {}
_numbers = itertools.count()


def position(loop: Any) -> Ticks | None:
    """The position of the loop that runs in this thread; None where it belongs to an effect."""
    session = current.session
    found = positions.here()
    if found is not None and found.session is session:
        if found.loop is not loop:
            found.attach(loop)
        return found
    if session is None or lanes.strand_inside():
        return None
    found = Ticks(session, lanes.own().name)
    found.attach(loop)
    positions.set_here(found)
    return found


def _is_own(handle: Any) -> bool:
    """Whether a callback is the program's, and no effect's or the collector's."""
    return handle._context.get(INSIDE) is None and handle._context.get(COLLECTING) is None


def is_tick(handle: Any) -> bool:
    """Whether a callback that waits in a loop is a tick: the program's own, and nothing that the outside caused."""
    return type(handle) not in _CAUSES and _is_own(handle)


def run(self: Any) -> None:
    session = current.session
    here = position(self._loop) if session is not None else None
    if here is None:
        handle_run(self)
        return
    here.serial += 1
    if here.asleep:
        here.awake()
    kind = type(self)
    if kind is Timer or kind is Wake:
        if session.recording:  # type: ignore[union-attr]
            if kind is Timer:
                session.cause(self.lane, "timer", self.number, here.count)  # type: ignore[union-attr]
            else:
                session.cause(lanes.own(), "wake", self.name, here.count)  # type: ignore[union-attr]
        elif self.slot is not None and not session.stopped:  # type: ignore[union-attr]
            session.gate.perform(self.slot)  # type: ignore[union-attr]
    elif kind is Ready:
        self.source.runs(self, session, here)
    elif _is_own(self):
        here.count += 1
    outer, here.running = here.running, True
    try:
        handle_run(self)
    finally:
        here.running = outer
        if not session.recording and not session.stopped:  # type: ignore[union-attr]
            here.pump(self._loop)


def _run_once(self: Any) -> None:
    session = current.session
    if session is not None:
        here = position(self)
        if here is not None:
            here.running = False
            if not session.recording and not self._ready and not self._stopping:
                here.idle(self)
    run_once(self)


def new_task(self: Any, coro: Any, **kwargs: Any) -> Any:
    lane = lanes.current()
    if lane is None:
        return create_task(self, coro, **kwargs)
    if events._get_running_loop() is None and lane.begin_loop(self):
        # What a loop is started with goes on in the lane that starts it, and waits for it.
        child = lane
    else:
        child = lane.child(lanes.name_of(coro), strand=False)
    context = kwargs.get("context")
    if context is not None:
        context.run(LANE.set, child)
    eager = self._task_factory is not None and self._task_factory is tasks.eager_task_factory
    if (self._task_factory is None or eager) and not self.is_closed():
        if eager:
            kwargs["eager_start"] = True
        if context is None:
            kwargs["context"] = context = contextvars.copy_context()
            context.run(LANE.set, child)
        task = Task(coro, loop=self, number=child.number + child.ordinal("task"), **kwargs)
        if task._source_traceback:  # type: ignore[attr-defined]
            del task._source_traceback[-1]  # type: ignore[attr-defined]
        return task
    if context is not None:
        return create_task(self, coro, **kwargs)
    # A factory of the old form takes no context: the task copies the one it is made in.
    context = contextvars.copy_context()
    context.run(LANE.set, child)
    return context.run(create_task, self, coro, **kwargs)


def new_future(self: Any) -> Any:
    lane = lanes.current()
    if lane is None:
        return create_future(self)
    return Future(lane.number + lane.ordinal("future"), self)


def timer_at(self: Any, when: Any, callback: Any, *args: Any, context: Any = None) -> Any:
    lane = lanes.current()
    if lane is None or when is None or lane.session.stopped or self.is_closed():
        return call_at(self, when, callback, *args, context=context)
    if self._debug:
        self._check_thread()
        self._check_callback(callback, "call_at")
    session, here = lane.session, position(self)
    ahead = session.clock_ahead("loop.time") / 1e9 if here is not None and here.running else 0.0
    timer = Timer(when - ahead, callback, args, self, context)
    timer.ahead, timer.lane, timer.number, timer.slot = ahead, lane, lane.ordinal("timer"), None
    if session.recording:
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer
    timer.slot = session.cause(lane, "timer", timer.number)
    if timer.slot is None:
        session.when_live(lambda: arm(self, timer, here))
    elif here is not None:
        here.park(timer.slot, lambda loop: fire(loop, timer))
    return timer


def arm(loop: Any, timer: Any, here: Ticks | None) -> None:
    """A fork goes live, and this timer had not fired by then."""

    def push() -> None:
        if not timer.cancelled():
            heapq.heappush(loop._scheduled, timer)
            timer._scheduled = True

    if loop.is_closed() or not timer.lane.session.recording:
        return
    if here is not None:
        timer.ahead = timer.lane.session.clock_ahead("loop.time") / 1e9
        timer._when -= timer.ahead
    lanes.ours(lambda: call_soon_threadsafe(loop, push))()


def fire(loop: Any, timer: Any) -> None:
    session = timer.lane.session
    if timer.cancelled():
        if not session.stopped:
            session.latch(
                Code.ORDER, "a timer that fired in the recording is cancelled now", lane=timer.lane, kind="timer",
                name=f"timer {timer.number}",
            )  # fmt: skip
        return
    loop._ready.appendleft(timer)


def call_from_outside(self: Any, callback: Any, *args: Any, context: Any = None) -> Any:
    lane = lanes.current()
    if lane is None or events._get_running_loop() is self:
        if lane is None and context is None and INSIDE.get() is None and (effect := lanes.inside()) is not None:
            # From a thread of an effect, whose context does not say so: no tick of the program's.
            context = contextvars.copy_context()
            context.run(INSIDE.set, effect)
        return call_soon_threadsafe(self, callback, *args, context=context)
    self._check_closed()
    if self._debug:
        self._check_callback(callback, "call_soon_threadsafe")
    session = lane.session
    if context is None:
        context = contextvars.copy_context()
        context.run(LANE.set, Sent(lane, lanes.name_of(callback)))
    wake = Wake(callback, args, self, context)
    wake.name, wake.slot = f"{lane.name}#{lane.ordinal('wake')}", None
    if session.recording or session.stopped:
        self._ready.append(wake)
    else:
        wake.slot = session.cause(None, "wake", wake.name)
        if wake.slot is not None:
            # Which strand runs the loop, and whether it does yet, is a race: the record knows it.
            session.wake_sent(wake.slot, lambda loop: loop._ready.appendleft(wake))
        elif not session.when_live(lambda: send(self, wake)) and session.recording:
            self._ready.append(wake)
    self._write_to_self()
    return wake


def send(loop: Any, wake: Any) -> None:
    """A fork goes live, and this callback had not run by then."""
    if not loop.is_closed() and wake._loop is loop:
        loop._ready.append(wake)
        loop._write_to_self()


def time_now(self: Any) -> float:
    # Only what callbacks ask: the loop's own look at the clock, between callbacks, stays real.
    here = positions.here()
    lane = lanes.current() if here is not None and here.running else None
    if lane is None:
        return loop_time(self)  # type: ignore[no-any-return]
    return reads.read(lane, "loop.time", lambda: int(loop_time(self) * 1e9)) / 1e9


def as_completed(fs: Any, *, timeout: Any = None) -> Any:
    if lanes.current() is None or futures.isfuture(fs) or hasattr(fs, "__await__"):
        return original_as_completed(fs, timeout=timeout)
    return original_as_completed(_Ordered(fs, tasks.ensure_future), timeout=timeout)


def run_in_executor(self: Any, executor: Any, func: Any, *args: Any) -> Any:
    if lanes.current() is not None:
        self._lockstep_executor = getattr(self, "_lockstep_executor", False) or executor is None
        return in_executor(self, executor, func, *args)
    found = in_executor(self, executor, func, *args)
    session = current.session
    if session is not None and not session.recording:
        # A served client reads a file that it sends: the loop does not stand still meanwhile.
        session.strand_began(found)
        found.add_done_callback(session.strand_dropped)
    return found


async def shutdown_default_executor(self: Any, *args: Any, **kwargs: Any) -> None:
    # A live client looks up names in the loop's executor, a served one does not: if the program never
    # used it, what its end takes (a thread, looks at the clock) is not the program's.
    session = current.session
    if session is None or getattr(self, "_lockstep_executor", False):
        await shutdown_executor(self, *args, **kwargs)
        return
    token = INSIDE.set(True)
    session.strand_began(self)
    try:
        await shutdown_executor(self, *args, **kwargs)
    finally:
        session.strand_dropped(self)
        lanes.leave(token)


def generator_begins(self: Any, generator: Any) -> None:
    if lanes.current() is not None:
        _begun[id(generator)] = next(_numbers)
    else:
        _begun.pop(id(generator), None)
    first_iteration(self, generator)


def generator_dropped(self: Any, generator: Any) -> None:
    # Dropped by its last reference: that moment is in the program's code, and what closing it does (a
    # `finally` that prints) is the program's. By the collector, or begun by a client: nobody's.
    if _begun.pop(id(generator), None) is not None and lanes.current() is not None:
        finalize(self, generator)
    else:
        lanes.ours(finalize)(self, generator)


async def shutdown_asyncgens(self: Any) -> None:
    # Generators that were left half-way are all closed at once, in a set's order, also those that others
    # iterate over, and a live client has more of them than a served one: what closing them does and reads is
    # not the program's. Its own go first, as they began, so that what they print has one order.
    session = current.session
    if session is None:
        await shutdown_generators(self)
        return
    every = self._asyncgens
    own = sorted((each for each in every if id(each) in _begun), key=lambda each: _begun[id(each)])
    token = INSIDE.set(True)
    session.strand_began(self)
    try:
        if own:
            self._asyncgens = weakref.WeakSet(set(every) - set(own))
            closing = tasks.gather(*[each.aclose() for each in own], return_exceptions=True)
            for generator, outcome in zip(own, await closing, strict=True):
                if isinstance(outcome, Exception):
                    message = f"an error occurred during closing of asynchronous generator {generator!r}"
                    self.call_exception_handler({"message": message, "exception": outcome, "asyncgen": generator})
        await shutdown_generators(self)
    finally:
        session.strand_dropped(self)
        INSIDE.reset(token)


def cancel_all_tasks(loop: Any) -> None:
    """Cancels what `asyncio.run` finds unfinished, and waits for it."""
    # A live client leaves other tasks than a served one (generators being closed): they come last, so that
    # the program's own have one order, and the callbacks by which all are waited for are nobody's.
    if current.session is None:
        cancel_all(loop)
        return
    left = tasks.all_tasks(loop)
    own = sorted((task for task in left if isinstance(task, Task)), key=hash)
    every = [*own, *(task for task in left if not isinstance(task, Task))]
    for task in every:
        task.cancel()
    if every:
        lanes.ours(lambda: loop.run_until_complete(tasks.gather(*every, return_exceptions=True)))()
    for task in every:
        if not task.cancelled() and (error := task.exception()) is not None:
            message = "unhandled exception during asyncio.run() shutdown"
            loop.call_exception_handler({"message": message, "exception": error, "task": task})


def call_exception_handler(self: Any, context: dict[str, Any]) -> None:
    # What stops a replay is told by its report, not by a task that nobody awaits any more.
    if not isinstance(context.get("exception"), Stop):
        handle_exception(self, context)


class _Ordered:
    """An iterable of awaitables whose tasks are made in its own order. `as_completed` makes them out of a
    set, so they would start in the order of their addresses: 11 orders in 200 calls."""

    def __init__(self, awaitables: Any, ensure_future: Any) -> None:
        self._awaitables = awaitables
        self._ensure = ensure_future

    def __iter__(self) -> Any:
        return iter([self._ensure(awaitable) for awaitable in dict.fromkeys(self._awaitables)])


def install() -> None:
    """Puts the seams in place, once."""
    for ours, theirs in (
        (run, handle_run), (_run_once, run_once), (new_task, create_task), (new_future, create_future),
        (timer_at, call_at), (call_from_outside, call_soon_threadsafe), (time_now, loop_time),
        (as_completed, original_as_completed), (run_in_executor, in_executor),
        (shutdown_default_executor, shutdown_executor), (shutdown_asyncgens, shutdown_generators),
        (generator_begins, first_iteration), (generator_dropped, finalize),
        (cancel_all_tasks, cancel_all), (call_exception_handler, handle_exception),
    ):  # fmt: skip
        functools.update_wrapper(ours, theirs)
    _Handle._run = run
    _Base._run_once, _Base.create_task, _Base.create_future = _run_once, new_task, new_future
    _Base.call_at, _Base.call_soon_threadsafe, _Base.time = timer_at, call_from_outside, time_now
    _Base.run_in_executor, _Base.shutdown_default_executor = run_in_executor, shutdown_default_executor
    _Base.shutdown_asyncgens = shutdown_asyncgens
    _Base.call_exception_handler = call_exception_handler
    runners._cancel_all_tasks = cancel_all_tasks  # type: ignore[attr-defined]
    _Base._asyncgen_firstiter_hook, _Base._asyncgen_finalizer_hook = generator_begins, generator_dropped
    _Selector._make_self_pipe = lanes.ours(_Selector._make_self_pipe)
    for module in (tasks, asyncio):
        module.__dict__["as_completed"] = as_completed
