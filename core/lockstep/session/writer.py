"""Gets events from the program's threads to the log without making them wait.

`put` costs a queue operation; one thread of ours makes of each event what is stored (its secrets hidden, its key
and digest), in the order put, and packs and commits what has queued. Back to back that takes a third of what it
takes where the program comes from its network, with nothing of it in the processor's caches.
Our thread waits a little for more to come, also while more keeps coming: woken for every event it would take the
interpreter from the program each time. `flush` says when everything put before is durable, and is not kept waiting.
Nothing here raises into the program: what goes wrong is told to `fault`, once for each kind of trouble.

A store that cannot be written for a while (full disk, a stopped process that holds the lock) is tried
again while the events wait in memory. When they exceed their bound, or the store is damaged, recording
ends there: the run stays as it was, cut off, rather than becoming a record with a hole.
"""

from __future__ import annotations

import _thread
import contextlib
from _queue import Empty, SimpleQueue
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.errors import Code, NoRoom, StoreError
from lockstep.log import untapped
from lockstep.log.model import Event, Kind, RunState
from lockstep.session import lanes

if TYPE_CHECKING:
    from lockstep.log.store import Appender

# Our thread is no strand of the program. Not threading.Thread, which it would see in threading.enumerate().
_start_thread = untapped.start_new_thread
_allocate = untapped.allocate_lock

BOUND = 128 << 20  # bytes of events that may wait in memory
STACK = 16 << 20  # C decoders crash on deep JSON in small stacks; with 8 MB they raise
SHALLOW = 16  # events that may wait without being weighed
MANY = 64  # with so many waiting the thread goes to work
LINGER = 0.004  # seconds in which more events may join a commit
BATCH = 512
EASE = 4  # part of the bound that may be taken before a source that can wait has to
PATIENCE = 10.0  # seconds that such a source is kept waiting
SOON = 0.005  # seconds
STALL = 0.25  # seconds a full queue may hold up the program, once
RETRY = 0.2  # seconds between attempts on a store that cannot be written
FORK_WAIT = 2.0
FULL_WAIT = 1.0

# What a process that has nothing else to say need not store.
_QUIET = (Kind.START, Kind.LANE)

# Ends of a marker's errand.
_FLUSH, _PAUSE, _CLOSE = range(3)


type Finish = Callable[[Event], Event]  # makes of an event what is stored
type _Given = tuple[Event, Finish | None, int]  # with its weight


class _Mark:
    """A place in the queue. `done` is released when everything before it was dealt with; `ok`: it is durable."""

    __slots__ = ("deadline", "done", "errand", "faults", "ok")

    def __init__(self, errand: int, timeout: float, faults: int = 0) -> None:
        self.errand = errand
        self.deadline = untapped.monotonic() + timeout
        self.faults = faults
        self.ok = False
        self.done = _allocate()
        self.done.acquire()


class Late:
    """The appender of a process that may have nothing to say: makes its stream when there is more to store than
    that it began. A forked child that becomes another program at once leaves nothing behind."""

    def __init__(self, make: Callable[[], Appender]) -> None:
        self._make = make
        self._real: Appender | None = None
        self._waiting: list[Event] = []
        self.stream = 0

    @property
    def opened(self) -> bool:
        return self._real is not None

    def append(self, events: Sequence[Event]) -> int:
        """See `Appender`."""
        if self._real is None:
            self._waiting += events
            if all(event.kind in _QUIET for event in self._waiting):
                return 0
            self._open()
            events = ()
        waiting, self._waiting = self._waiting, []
        return self._real.append([*waiting, *events])  # type: ignore[union-attr]

    def close(self, state: RunState | None, faults: int = 0) -> None:
        """See `Appender`."""
        if self._real is None:
            self._open()
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._real.append(waiting)  # type: ignore[union-attr]
        self._real.close(state, faults)  # type: ignore[union-attr]

    def abandon(self) -> None:
        """See `Appender`."""
        if self._real is not None:
            self._real.abandon()

    def _open(self) -> None:
        self._real = self._make()
        self.stream = self._real.stream


class Writer:
    """The queue and thread between a session and its stream. One per process that records."""

    def __init__(self, appender: Appender, fault: Callable[[str, BaseException], None], *, bound: int = BOUND) -> None:
        self.appender = appender
        self._fault = fault
        self._bound = bound
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._held = 0  # weighed bytes that are not durable yet
        self._guard: Any = (
            _thread.RLock()
        )  # re-entrant: the collector may run a finalizer that records; of _held, and of marks that are called back
        self._given = self._written = 0  # events put, and durable; about, since several threads count the former
        self._soon = False  # our thread will look for what belongs to every commit, if nobody wakes it before
        self._pending = 0  # of _held, handed to the appender
        self._draining = _allocate()  # one thread drains where ours is gone
        self._urgent = _allocate()  # free: what has queued is wanted now
        self._urgent.acquire()
        self._forking = False  # the thread that forks holds _draining
        self._told: set[str] = set()
        self._finish: Event | None = None
        self._ended = False  # nothing more is accepted
        self._failing = False  # the appender holds what it could not commit yet
        self._full = False  # because there is no room for it
        self._broken = False  # recording was given up
        self._lost = 0  # events that could not be finished
        self._closed = False  # the stream is closed
        self._running = False
        self._busy = False  # something came a moment ago: more is to come
        self._paused = False  # after a fork, until something is put
        self.collect: Callable[[], list[Event]] | None = None  # gives what belongs to every commit
        self.idle: Callable[[], None] | None = None  # told when all of it is stored
        self._quiet: tuple[Kind, ...] = ()  # events that do not end a pause
        if isinstance(appender, Late):
            self._paused, self._quiet = True, _QUIET
        else:
            self._begin()

    def put(self, event: Event, finish: Finish | None = None) -> None:
        """Hands over an event, whose body must not be changed any more. Our thread makes of it what is stored: by
        `finish`, one after the other in the order put. Never blocks for long, never raises."""
        if self._ended:
            return
        if self._paused and event.kind not in self._quiet:
            self._resume()
        self._given += 1
        queued = self._queue.qsize()
        if queued < SHALLOW:
            self._queue.put((event, finish, 0))
        else:
            self._put_weighed(event, finish)
            if queued == MANY:
                self._hurry()

    def nudge(self) -> None:
        """Has what belongs to every commit stored within a few ms, as after an event."""
        if not self._soon and not self._ended:
            self._soon = True
            if self._paused:
                self._resume()
            self._queue.put(None)

    @property
    def behind(self) -> bool:
        """Whether something that was put may not be durable yet."""
        return self._written != self._given

    def ease(self) -> None:
        """For a source that can be kept waiting, as a pipe can: waits while very much is queued."""
        if self._held * EASE > self._bound and self._running:
            deadline = untapped.monotonic() + PATIENCE
            while self._held * EASE > self._bound and not self._broken and untapped.monotonic() < deadline:
                untapped.sleep(0.001)

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until all that was put is durable against kill -9. False: it is not, or not in time."""
        if self._closed or self._broken:
            return False
        return self._send(_Mark(_FLUSH, timeout), timeout)

    def close(self, timeout: float = 30.0, faults: int = 0) -> bool:
        """Ends the stream, with the state of its FINISH event if there was one. The run shows `faults`, or the
        number in that event, as incomplete. False: not all of it became durable in time."""
        if self._ended and not self._broken:
            return self._closed
        self._ended = True
        return self._send(_Mark(_CLOSE, timeout, faults), timeout)

    def before_fork(self) -> None:
        """Drains, and ends the thread: a forked child inherits neither it nor what it holds, and CPython warns
        about forking a process with threads."""
        if self._running:
            threads = untapped.threads()
            mark = _Mark(_PAUSE, FORK_WAIT)
            if self._send(mark, FORK_WAIT):
                wait_until_gone(threads)
            else:
                with self._guard:
                    mark.errand = _FLUSH  # the store is stuck: the fork cannot wait, and the thread stays
        # Nobody may be inside SQLite while the process forks: its locks would stay locked in the child.
        self._forking = self._draining.acquire(timeout=FORK_WAIT)

    def after_in_parent(self) -> None:
        """Goes on; what was put meanwhile has queued. The thread begins with the next event: CPython 3.13 looks
        for threads after these hooks, and warns of them. Where other threads wait for what they have queued, there
        may be no next event, and they are warned of anyway."""
        if self._queue.empty():
            self._paused = not self._closed and not self._running
        elif not self._closed:
            self._begin()
        if self._forking:
            self._forking = False
            self._draining.release()

    def _resume(self) -> None:
        with self._guard:
            paused, self._paused = self._paused, False
        if paused:
            self._begin()

    def after_in_child(self) -> None:
        """This writer is the parent's: it accepts nothing here, and its connection is neither used nor closed."""
        self._ended = self._closed = True
        self._running = self._paused = False
        self._queue = SimpleQueue()
        self._draining = _allocate()
        self._guard = _thread.RLock()
        self._urgent = _allocate()
        self._urgent.acquire()
        self.appender.abandon()

    # -- the program's threads

    def _put_weighed(self, event: Event, finish: Finish | None) -> None:
        heavy = weight(event.body)
        if self._held + heavy > self._bound:
            deadline = untapped.monotonic() + STALL
            while self._held + heavy > self._bound:
                if self._broken:
                    return
                if untapped.monotonic() > deadline:
                    megabytes = self._bound >> 20
                    error = StoreError(Code.UNWRITABLE, f"the store fell behind by more than {megabytes} MB of events")
                    self._give_up("queueing events", error)
                    return
                untapped.sleep(0.005)
        with self._guard:
            self._held += heavy
        self._queue.put((event, finish, heavy))
        if not self._running:
            self._drain()

    def _send(self, mark: _Mark, timeout: float) -> bool:
        if self._paused:
            self._resume()
        self._queue.put(mark)
        self._hurry()
        if not self._running:
            self._drain()
        return mark.done.acquire(timeout=timeout) and mark.ok

    def _hurry(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is free already
            self._urgent.release()

    def _drain(self) -> None:
        """In place of our thread: while the interpreter shuts down, and at the limit of threads, none can start.
        In the middle of a fork this waits for its end, after which the thread is there again."""
        with self._draining:
            token = lanes.INSIDE.set(True)
            try:
                while not self._running and self._step(block=False):
                    pass
            finally:
                lanes.INSIDE.reset(token)

    def _begin(self) -> None:
        if self._running:
            return
        self._running = True
        if not start_thread(self._run):
            self._running = False  # what is put waits for `_drain`

    # -- the writer's thread

    def _run(self) -> None:
        lanes.INSIDE.set(True)
        with self._draining:
            pass  # one thread at a time: another may be in the middle of a step in place of this one
        while self._step(block=True):
            pass

    def _step(self, *, block: bool) -> bool:
        """Deals with what has queued, up to a mark. False: nothing more to do here."""
        given, mark = self._gather(block)
        events: list[Event] = []
        if self.collect is not None:
            self._soon = False
            try:
                events += self.collect()
                self._soon = bool(events)
            except Exception as error:
                self._tell("collecting reads", error)
        events += self._finished(given)
        self._write(events)
        if self.idle is not None and not events:
            self.idle()
        if mark is None:
            return block or bool(events)
        if mark.errand == _CLOSE:
            self._end(mark)
        else:
            with self._guard:
                if mark.errand == _PAUSE:
                    self._running = False
        mark.ok = not self._failing and not self._broken
        mark.done.release()
        return mark.errand == _FLUSH

    def _finished(self, given: list[_Given]) -> Iterator[Event]:
        """What is stored of what was put."""
        for event, finish, _ in given:
            try:
                yield event if finish is None else finish(event)
            except Exception as error:
                self._lost += 1
                self._fault(f"{event.kind.name.lower()} of {event.what} {event.name}".rstrip(), error)

    def _gather(self, block: bool) -> tuple[list[_Given], _Mark | None]:
        given: list[_Given] = []
        try:
            item = self._first(block)
            while True:
                if type(item) is _Mark:
                    return given, item
                if item is not None:
                    self._pending += item[2]
                    given.append(item)
                    if len(given) >= BATCH:
                        break
                item = self._queue.get_nowait()
        except Empty:
            pass
        return given, None

    def _first(self, block: bool) -> Any:
        """The first of what has queued, when there was some time for more to come. Empty: there is nothing to wait
        for."""
        if not block:
            return self._queue.get_nowait()
        if self._busy:
            # Who waits at the queue is woken by the next event, and takes the interpreter from the program there.
            if self._queue.qsize() < MANY:
                self._urgent.acquire(timeout=LINGER)
            with contextlib.suppress(Empty):
                return self._queue.get_nowait()
            self._busy = False
        # While some wait for another attempt, new ones are waited for only until that is due.
        item = self._queue.get(True, RETRY if self._failing else SOON if self._soon else None)
        if type(item) is not _Mark:
            self._urgent.acquire(timeout=LINGER)
            self._busy = True
        return item

    def _write(self, events: list[Event]) -> None:
        if self._broken or not (events or self._failing):
            return
        try:
            for event in events:
                if event.kind is Kind.FINISH:
                    self._finish = event
            self.appender.append(events)
        except StoreError as error:
            self._failing = True
            self._full = isinstance(error, NoRoom)
            if error.code is Code.UNWRITABLE:
                self._tell("writing to the store", error)
            else:
                self._give_up("writing to the store", error)
        except BaseException as error:
            self._give_up("writing to the store", error)
        else:
            self._failing = False
            self._written = self._given if self._queue.empty() else -1
            with self._guard:
                self._held -= self._pending
            self._pending = 0

    def _end(self, mark: _Mark) -> None:
        if self._full:  # the program is not kept from ending by a disk that nobody is about to clear
            mark.deadline = min(mark.deadline, untapped.monotonic() + FULL_WAIT)
        while self._failing and not self._broken and untapped.monotonic() < mark.deadline:
            untapped.sleep(RETRY)
            self._write([])
        state, faults = _ending(self._finish)
        try:
            self.appender.close(None if self._failing or self._broken else state, max(faults, mark.faults, self._lost))
            self._closed = True
        except BaseException as error:
            self._give_up("closing the stream", error)
        self._running = False

    def _give_up(self, where: str, error: BaseException) -> None:
        self._broken = self._ended = True
        self._tell(where, error)

    def _tell(self, where: str, error: BaseException) -> None:
        if where not in self._told:
            self._told.add(where)
            self._fault(where, error)


def start_thread(run: Callable[[], None]) -> bool:
    """Starts a thread of ours, of which the program sees nothing. False: none can start."""
    token = lanes.INSIDE.set(True)
    before = _thread.stack_size()
    try:
        _thread.stack_size(STACK)
        _start_thread(run, ())
    except (RuntimeError, ValueError):
        return False
    finally:
        _thread.stack_size(before)
        lanes.INSIDE.reset(token)
    return True


def wait_until_gone(before: int) -> None:
    """Waits until the system has ended a thread of ours that has said it is done, as CPython asks the system.
    `before`: how many threads there were."""
    deadline = untapped.monotonic() + 0.02
    while before and untapped.threads() >= before and untapped.monotonic() < deadline:
        untapped.sleep(0.0001)


def _ending(finish: Event | None) -> tuple[RunState | None, int]:
    if finish is None:
        return None, 0
    faults = finish.body.get("faults") if isinstance(finish.body, dict) else None
    return RunState(str(finish.what)), len(faults) if isinstance(faults, list) else 0


def weight(body: Any, depth: int = 4) -> int:
    """About how many bytes a body takes, seen no deeper than a request's body lies."""
    kind = type(body)
    if kind is str or kind is bytes:
        return len(body) + 50
    if kind is dict and depth:
        return 100 + sum([weight(item, depth - 1) for item in body.values()])
    if kind is list and depth:
        return 100 + sum([weight(item, depth - 1) for item in body])
    return 50
