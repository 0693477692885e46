"""What a saver's methods do while a session is on.

While recording, the saver does what it is asked, and the session notes it: a checkpoint is a step of the run, and what
a thread held before the session is an effect `state` where it is first read. In replays and forks the saver itself is
never asked: it could be the production's, and holds what the recorded session has put there.

A saver whose async methods wait (for a database) keeps its task waiting; such a wait is an effect too, so that the task
goes on in a replay where it went on then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple, get_checkpoint_metadata

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import exceptions, lanes
from lockstep.session.call import Piece
from lockstep.session.effects import LiveCall
from lockstep.session.forked import Continued, given
from lockstep.session.lanes import leave
from lockstep.session.policy import Declared
from lockstep.session.served import ServedCall
from lockstep_langgraph import calls
from lockstep_langgraph.held import Threads
from lockstep_langgraph.insession import states
from lockstep_langgraph.insession.books import native, told_after
from lockstep_langgraph.insession.kept import STATE, Kept, Session
from lockstep_langgraph.insession.states import Where, plainly
from lockstep_langgraph.threads import Put

type Plain = Callable[..., Any]

_READ = Declared("read", "a saver's state")

# Where a saver of ours keeps its threads now; None: where it always does.
_elsewhere: ContextVar[Threads | None] = ContextVar("lockstep_langgraph_elsewhere", default=None)


class Op:
    """One call of a saver's method.

    name     of the method, without the `a` of the async ones
    about    what of its arguments tells it from others
    """

    def __init__(self, on: Session, saver: Any, plain: Plain, name: str, thread: str, **about: Value) -> None:
        self.on = on
        self.core = on.core
        self.saver = saver
        self.plain = plain
        self.name = name
        self.thread = thread
        self.request: dict[str, Value] = {"thread": thread, "read" if name in READS else "does": name, **about}
        core = getattr(saver, "_core", None)
        if core is not None:
            core.elsewhere = _elsewhere.get

    @property
    def kept(self) -> Kept:
        return self.on.of(self.saver)

    # The saver itself.

    def real(self, *args: Any, **kwargs: Any) -> Any:
        """What the saver does; whatever it needs for that is nothing of the program's."""
        token = lanes.INSIDE.set(lanes.INSIDE.get() or True)
        try:
            made = self.plain(self.saver, *args, **kwargs)
            return [*made] if self.name == "list" else made
        finally:
            leave(token)

    def scratch(self, *args: Any, **kwargs: Any) -> Any:
        """What it would do with the threads that are in memory."""
        saver = self._stand_in() or self.saver
        to = _elsewhere.set(self.kept.threads)
        try:
            with told_after():
                made = plainly(saver, self.name, *args, **kwargs)
                return [*made] if self.name == "list" else made
        finally:
            _elsewhere.reset(to)

    def _stand_in(self) -> Any:
        """The saver in memory that stands in for one which is not ours; None for ours."""
        kept = self.kept
        if self.on.scratch and kept.other is None and getattr(self.saver, "_core", None) is None:
            kept.other = in_memory(self.saver)
        return kept.other

    def learn(self, value: Any) -> None:
        """Takes over a state from before. Raises LockstepError."""
        self._stand_in()
        states.learn(self.kept, value)

    def scratch_tuple(self, config: Any) -> CheckpointTuple | None:
        """A checkpoint of those that are in memory."""
        reader = Op(self.on, self.saver, self.plain, "get_tuple", self.thread)
        found: CheckpointTuple | None = reader.scratch(config)
        return found

    # Its effect, where it has one.

    def ask(self) -> Any:
        """Recording: begins the effect."""
        call = self.core.open(STATE)
        call.ask(self.thread, self.request, self.request, declared=_READ)
        return call

    def failed(self, error: BaseException) -> None:
        """Recording: the saver raised."""
        self.ask().end(Status.ERROR, error)

    def recorded(self) -> ServedCall | None:
        """Replay: the effect that the recording has here."""
        lane = lanes.lane()
        effects, cursor = lane.state.effects, lane.state.cursor
        if cursor >= len(effects) or self.core.recording:
            return None
        begin = effects[cursor].begin
        if begin.what != STATE or begin.key != self._key():
            return None
        call = (Continued if self.core.resumes else ServedCall)(self.core, lane, STATE)
        call.ask(self.thread, self.request, self.request)
        return call

    def beyond(self) -> Value:
        """A fork past its cut: what the record still has for this question, {} for nothing."""
        piece = self._left()
        if piece is None:
            return {}
        self.note(piece, "reused")
        return self.outcome(piece, None)

    def left(self) -> Any:
        """The same without taking it for what this gives; None for nothing."""
        piece = self._left()
        return piece.value if piece is not None and piece.status is Status.OK else None

    def _left(self) -> Piece | None:
        lane = lanes.lane()
        if not self.core.resumes or (not self.core.recording and lane.state.cursor < len(lane.state.effects)):
            return None
        found = self.on.left(self._key())
        return next(given(self.core, found)) if found is not None else None

    def note(self, piece: Piece, how: str) -> None:
        record = LiveCall(self.core, lanes.lane(), STATE, None)
        record.ask(self.thread, self.request, self.request, declared=_READ)
        record.given(piece, how)

    def outcome(self, piece: Piece, call: Any) -> Value:
        """What a recorded effect gave. Raises what it raised."""
        if piece.status is Status.ERROR:
            raise exceptions.revive(piece.value, call)
        return piece.value

    def _key(self) -> bytes:
        key: bytes = self.core.secrets.asked(STATE, self.thread, self.request, self.request)[2]
        return key

    def unservable(self, error: LockstepError) -> None:
        self.core.diverge(
            Code.UNSERVABLE, f"the state of thread {self.thread} can't be made again: {error.message}",
            lane=lanes.lane(), kind=STATE, name=self.thread,
        )  # fmt: skip

    def guarded(self, note: Callable[[], None]) -> None:
        """Recording: what the session notes for itself never reaches the program."""
        try:
            note()
        except Exception as error:
            self.core.fault(f"{self.name} of thread {self.thread}", error)


READS = frozenset({"get_tuple", "list"})


def in_memory(saver: Any) -> Any:
    """A saver that stands in for another: with its serializer, so that values come back as that has them."""
    from langgraph.checkpoint.memory import InMemorySaver

    made: Any = InMemorySaver(serde=saver.serde)
    made.get_next_version = saver.get_next_version
    return made


# Reading.


def reading(on: Session, saver: Any, plain: Plain, config: Any) -> tuple[Op, Where]:
    where = Where(config)
    about: dict[str, Value] = {"checkpoint": where.id or "latest"}
    if where.ns:
        about["namespace"] = where.ns
    op = Op(on, saver, plain, "get_tuple", where.thread, **about)
    if where.branch:
        op.request["branch"] = where.branch
    expected = op.kept.expected(where.thread, where.ns, where.id, where.branch)
    if expected is not None:
        op.request["known"] = expected[0]
    return op, where


def get_tuple(on: Session, saver: Any, plain: Plain, config: Any) -> CheckpointTuple | None:
    op, where = reading(on, saver, plain, config)
    if on.scratch:
        call = op.recorded()
        return served(op, where, config, op.outcome(call.take(), call) if call is not None else op.beyond())
    found: CheckpointTuple | None
    try:
        found = op.real(config)
    except Exception as error:
        op.failed(error)
        raise
    if not states.is_known(op.kept, where, found):
        told(op, op.ask(), where, found)
    return found


async def aget_tuple(on: Session, saver: Any, plain: Plain, config: Any) -> CheckpointTuple | None:
    op, where = reading(on, saver, plain, config)
    if on.scratch:
        call = op.recorded()
        return served(op, where, config, op.outcome(await call.atake(), call) if call is not None else op.beyond())
    found: CheckpointTuple | None
    found, waited = await real(op, lambda: plain(saver, config))
    if waited is not None or not states.is_known(op.kept, where, found):
        told(op, waited or op.ask(), where, found)
    return found


def told(op: Op, call: Any, where: Where, found: CheckpointTuple | None) -> None:
    """Recording: ends the effect of a read with what was found."""
    value: Value = None
    if found is not None:
        value = {"id": str(found.checkpoint["id"])}
        if not states.is_known(op.kept, where, found):
            try:
                value = states.dumped(found)
                states.note(op.kept, found)
            except Exception as error:
                op.core.fault(f"state of thread {op.thread}", error)
                value = {"unstorable": str(error)}
    call.end(Status.OK, value)


def served(op: Op, where: Where, config: Any, value: Any) -> CheckpointTuple | None:
    """Replay: what a read gives, by the recorded effect ({}: there is none)."""
    if value is None:
        return None
    if value == {}:
        fork = op.core.resumes and (op.core.recording or lanes.lane().state.cursor >= len(lanes.lane().state.effects))
        if not fork or "known" in op.request or op.on.touched(native(where.thread)):
            found: CheckpointTuple | None = op.scratch(config)
            return found
        return first_read(op, where, config)
    if "unstorable" in value:
        op.unservable(LockstepError(Code.UNSERVABLE, str(value["unstorable"])))
    id = value.get("id")
    if id is None:
        try:
            op.learn(value)
        except LockstepError as error:
            op.unservable(error)
        id = value["checkpoint"]["id"]
    same: CheckpointTuple | None = op.scratch(config if where.id else states.config(where.thread, where.ns, id))
    return same


def first_read(op: Op, where: Where, config: Any) -> CheckpointTuple | None:
    """A fork past its cut comes to a thread that the recorded run never had to do with: it is as it is now."""
    found: CheckpointTuple | None = op.real(config) if not is_async(op.plain) else None
    if found is None:
        return None
    value = states.dumped(found)
    op.note(Piece(value, Status.OK), "")
    op.learn(value)
    again: CheckpointTuple | None = op.scratch(config)
    return again


def is_async(plain: Plain) -> bool:
    code = getattr(plain, "__code__", None)
    return code is not None and bool(code.co_flags & 0x280)  # a coroutine function, or an async generator function


# Listing.


def listing(on: Session, saver: Any, plain: Plain, config: Any, kwargs: Mapping[str, Any]) -> tuple[Op, list[Any]]:
    """The operation, and what is expected of it: namespace and id of each."""
    where, upto = Where(config), Where(kwargs.get("before")).id
    filter, limit = kwargs.get("filter"), kwargs.get("limit")
    about: dict[str, Value] = {"namespace": None if where.any_ns else where.ns, "filter": calls.inert(filter)}
    given = {"checkpoint": where.id, "before": upto, "limit": limit}
    about.update({name: value for name, value in given.items() if value is not None})
    op = Op(on, saver, plain, "list", where.thread, **about)
    expected = op.kept.ids(where, config is None, filter, upto, limit)
    op.request["known"] = len(expected)
    return op, expected


def list_(on: Session, saver: Any, plain: Plain, config: Any, **kwargs: Any) -> Iterator[CheckpointTuple]:
    op, expected = listing(on, saver, plain, config, kwargs)
    if on.scratch:
        call = op.recorded()
        if call is None:
            yield from unlisted(op, expected, config, kwargs)
        else:
            yield from relisted(op, op.outcome(call.take(), call))
        return
    try:
        found = op.real(config, **kwargs)
    except Exception as error:
        op.failed(error)
        raise
    if list(map(_at, found)) != expected:
        enlisted(op, op.ask(), found)
    yield from found


async def alist(on: Session, saver: Any, plain: Plain, config: Any, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
    op, expected = listing(on, saver, plain, config, kwargs)
    if on.scratch:
        call = op.recorded()
        if call is None:
            there: Iterator[CheckpointTuple] = iter(unlisted(op, expected, config, kwargs))
        else:
            there = relisted(op, op.outcome(await call.atake(), call))
        for found in there:
            yield found
        return

    async def drawn() -> list[CheckpointTuple]:
        return [found async for found in plain(saver, config, **kwargs)]

    listed, waited = await real(op, drawn)
    if waited is not None or list(map(_at, listed)) != expected:
        enlisted(op, waited or op.ask(), listed)
    for found in listed:
        yield found


def _at(found: CheckpointTuple) -> tuple[str, str, str]:
    where = Where(found.config)
    return where.thread, where.ns, str(found.checkpoint["id"])


def enlisted(op: Op, call: Any, found: list[CheckpointTuple]) -> None:
    """Recording: ends the effect of a listing with what was found."""
    rows: list[Value] = []
    for each in found:
        thread, ns, id = _at(each)
        if states.is_known(op.kept, Where(states.config(thread, ns, id)), each):
            rows.append({"thread": thread, "ns": ns, "id": id})
            continue
        try:
            rows.append(states.dumped(each))
            states.note(op.kept, each)
        except Exception as error:
            op.core.fault(f"state of thread {thread}", error)
            rows.append({"unstorable": str(error)})
    call.end(Status.OK, {"listed": rows})


def unlisted(op: Op, expected: list[Any], config: Any, kwargs: Mapping[str, Any]) -> list[CheckpointTuple]:
    """A listing that has no recorded effect here: what is in memory. A fork past its cut gets what was there before
    from a recorded one that asked the same."""
    left = op.left()
    rows = {row["checkpoint"]["id"]: row for row in left["listed"] if "checkpoint" in row} if left is not None else {}
    for row in rows.values():
        op.learn(row)
    found: list[CheckpointTuple] = op.scratch(config, **kwargs)
    if rows and list(map(_at, found)) != expected:
        listed: list[Value] = []
        for thread, ns, id in map(_at, found):
            listed.append(rows.get(id) or {"thread": thread, "ns": ns, "id": id})
        op.note(Piece({"listed": listed}, Status.OK), "reused")
    return found


def relisted(op: Op, value: Any) -> Iterator[CheckpointTuple]:
    """Replay: what a listing gives, by its recorded effect."""
    rows = value["listed"]
    for row in rows:
        if "unstorable" in row:
            op.unservable(LockstepError(Code.UNSERVABLE, str(row["unstorable"])))
        if "id" not in row:
            try:
                op.learn(row)
            except LockstepError as error:
                op.unservable(error)
    for row in rows:
        at = states.config(row["thread"], row["ns"], row.get("id") or row["checkpoint"]["id"])
        found = op.scratch_tuple(at)
        if found is not None:
            yield found


# Writing.


def put(on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
    op = _putting(on, saver, plain, config, checkpoint)
    given = config, checkpoint, metadata, new_versions
    if on.scratch:
        call = op.recorded()
        if call is not None:
            op.outcome(call.take(), call)
        return _put_scratch(op, *given)
    try:
        made = op.real(*given)
    except Exception as error:
        op.failed(error)
        raise
    op.guarded(lambda: _put_noted(op, *given))
    return made


async def aput(
    on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any, metadata: Any, new_versions: Any
) -> Any:
    op = _putting(on, saver, plain, config, checkpoint)
    given = config, checkpoint, metadata, new_versions
    if on.scratch:
        call = op.recorded()
        if call is not None:
            op.outcome(await call.atake(), call)
        return _put_scratch(op, *given)
    made, waited = await real(op, lambda: plain(saver, *given))
    if waited is not None:
        waited.end(Status.OK)
    op.guarded(lambda: _put_noted(op, *given))
    return made


def _putting(on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any) -> Op:
    where = Where(config)
    return Op(on, saver, plain, "put", where.thread, namespace=where.ns, checkpoint=str(checkpoint["id"]))


def _put_noted(op: Op, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> None:
    where = Where(config)
    about = dict(get_checkpoint_metadata(config, metadata))
    op.kept.put(where.thread, Put(where.ns, where.id, where.branch, checkpoint, about, new_versions))
    op.core.flush()


def _put_scratch(op: Op, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
    where = Where(config)
    if getattr(op.saver, "_core", None) is not None and op.kept.has(where.ns, str(checkpoint["id"])):
        return states.config(where.thread, where.ns, str(checkpoint["id"]))
    made = op.scratch(config, checkpoint, metadata, new_versions)
    if op.kept.other is not None:
        _put_noted(op, config, checkpoint, metadata, new_versions)
    return made


def put_writes(
    on: Session, saver: Any, plain: Plain, config: Any, writes: Any, task_id: str, task_path: str = ""
) -> None:
    op = _writing(on, saver, plain, config, task_id)
    if on.scratch:
        call = op.recorded()
        if call is not None:
            op.outcome(call.take(), call)
        _write_scratch(op, config, writes, task_id, task_path)
        return
    try:
        op.real(config, writes, task_id, task_path)
    except Exception as error:
        op.failed(error)
        raise
    op.guarded(lambda: _write_noted(op, config, writes, task_id, task_path))


async def aput_writes(
    on: Session, saver: Any, plain: Plain, config: Any, writes: Any, task_id: str, task_path: str = ""
) -> None:
    op = _writing(on, saver, plain, config, task_id)
    if on.scratch:
        call = op.recorded()
        if call is not None:
            op.outcome(await call.atake(), call)
        _write_scratch(op, config, writes, task_id, task_path)
        return
    _, waited = await real(op, lambda: plain(saver, config, writes, task_id, task_path))
    if waited is not None:
        waited.end(Status.OK)
    op.guarded(lambda: _write_noted(op, config, writes, task_id, task_path))


def _writing(on: Session, saver: Any, plain: Plain, config: Any, task_id: str) -> Op:
    where = Where(config)
    return Op(on, saver, plain, "put_writes", where.thread, namespace=where.ns, checkpoint=where.id, task=task_id)


def _write_noted(op: Op, config: Any, writes: Any, task_id: str, task_path: str) -> None:
    where = Where(config)
    op.kept.write(where.thread, where.ns, where.id or "", writes, WRITES_IDX_MAP, task_id, task_path)


def _write_scratch(op: Op, config: Any, writes: Any, task_id: str, task_path: str) -> None:
    op.scratch(config, writes, task_id, task_path)
    if op.kept.other is not None:
        _write_noted(op, config, writes, task_id, task_path)


# What is done to whole threads.


def changing(name: str) -> Plain:
    """The sync method that changes threads as a whole: delete_thread, delete_for_runs, copy_thread, prune."""

    def change(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> None:
        op = Op(on, saver, plain, name, *_named(args))
        if on.scratch:
            call = op.recorded()
            if call is not None:
                op.outcome(call.take(), call)
        else:
            try:
                op.real(*args, **kwargs)
            except Exception as error:
                op.failed(error)
                raise
        _changed(op, args, kwargs)

    return change


def achanging(name: str) -> Plain:
    """The same of the async ones."""

    async def change(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> None:
        op = Op(on, saver, plain, name, *_named(args))
        if on.scratch:
            call = op.recorded()
            if call is not None:
                op.outcome(await call.atake(), call)
        else:
            _, waited = await real(op, lambda: plain(saver, *args, **kwargs))
            if waited is not None:
                waited.end(Status.OK)
        _changed(op, args, kwargs)

    return change


def _named(args: tuple[Any, ...]) -> tuple[str]:
    first = args[0] if args else ""
    return (first if isinstance(first, str) else ", ".join(map(str, first)),)


def _changed(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """The same to the threads in memory."""
    if getattr(op.saver, "_core", None) is not None:
        op.scratch(*args, **kwargs)
        return
    gone = [str(args[0])] if op.name == "delete_thread" else []
    if op.name == "prune" and kwargs.get("strategy") == "delete":
        gone = [*map(str, args[0])]
    for thread in gone:
        op.kept.threads.drop(thread)
        if op.kept.other is not None:
            plainly(op.kept.other, "delete_thread", thread)


def setup(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> Any:
    """What a saver prepares in its database: in a replay it has none."""
    return None if on.scratch else Op(on, saver, plain, "setup", type(saver).__name__).real(None, *args, **kwargs)


async def asetup(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> Any:
    op = Op(on, saver, plain, "setup", type(saver).__name__)
    if on.scratch:
        call = op.recorded()
        return op.outcome(await call.atake(), call) if call is not None else None
    made, waited = await real(op, lambda: plain(saver, *args, **kwargs))
    if waited is not None:
        waited.end(Status.OK)
    return made


# Async methods that wait.


async def real(op: Op, begin: Callable[[], Any]) -> tuple[Any, Any]:
    """Recording: what an async method gives, and the effect that it is where it waits (None where it does not). Raises
    what it raises, with the effect ended."""
    running = begin()
    token = lanes.INSIDE.set(lanes.INSIDE.get() or True)
    try:
        awaited = running.send(None)
    except StopIteration as stop:
        return stop.value, None
    except Exception as error:
        leave(token)
        op.failed(error)
        raise
    finally:
        leave(token)
    call = op.ask()
    try:
        with call.inside():
            return await _Rest(running, awaited), call
    except BaseException as error:
        calls.failed(call, error)
        raise


class _Rest:
    """What is left of a coroutine that has begun to wait for `awaited`."""

    def __init__(self, running: Any, awaited: Any) -> None:
        self._running = running
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        awaited = self._awaited
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                step: Callable[[], Any] = partial(self._running.throw, error)
            else:
                step = partial(self._running.send, sent)
            try:
                awaited = step()
            except StopIteration as stop:
                return stop.value
