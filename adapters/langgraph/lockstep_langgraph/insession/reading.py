"""What a session makes of a saver's reads: get_tuple, list, and the async ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import lanes
from lockstep.session.call import Piece
from lockstep_langgraph import calls
from lockstep_langgraph.insession import states
from lockstep_langgraph.insession.books import native
from lockstep_langgraph.insession.kept import Session
from lockstep_langgraph.insession.operations import Op, Plain
from lockstep_langgraph.insession.states import Where
from lockstep_langgraph.insession.waiting import real


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
