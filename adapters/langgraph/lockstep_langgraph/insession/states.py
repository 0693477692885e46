"""A thread's state from before the session, as the record has it."""

from __future__ import annotations

from typing import Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple

from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_langgraph.insession.kept import Kept
from lockstep_langgraph.threads import Put


class Where:
    """What a config addresses."""

    __slots__ = ("any_ns", "branch", "id", "ns", "thread")

    def __init__(self, config: Any) -> None:
        conf = (config or {}).get("configurable") or {}
        self.thread = str(conf.get("thread_id", ""))
        ns = conf.get("checkpoint_ns")
        self.any_ns = ns is None
        self.ns = str(ns or "")
        id = conf.get("checkpoint_id")
        self.id = str(id) if id else None
        branch = conf.get("lockstep_branch")
        self.branch = str(branch) if branch else None


def plainly(saver: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """What a saver's method does without a session."""
    method: Any = getattr(type(saver), name)
    return getattr(method, "__wrapped__", method)(saver, *args, **kwargs)


def config(thread: str, ns: str, id: str | None) -> Any:
    """The config that addresses a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}


def dumped(found: CheckpointTuple) -> Value:
    """What a saver gave, as data. Raises LockstepError for what can't be."""
    where, above = Where(found.config), found.parent_config
    told: dict[str, Value] = {
        "thread": where.thread,
        "ns": where.ns,
        "parent": Where(above).id if above else None,
        "checkpoint": snapshot.to_value(
            {**found.checkpoint, "channel_values": dict(found.checkpoint["channel_values"])}
        ),
        "metadata": snapshot.to_value(dict(found.metadata)),
        "writes": [[task, channel, snapshot.to_value(value)] for task, channel, value in found.pending_writes or ()],
    }
    return told


def loaded(told: Any) -> tuple[str, Put, list[tuple[str, str, Any]]]:
    """The reverse: the thread, its checkpoint and the writes of that one's tasks. Raises LockstepError."""
    checkpoint: Any = snapshot.from_value(told["checkpoint"])
    put = Put(
        str(told["ns"]), told["parent"], None, checkpoint, cast("Any", snapshot.from_value(told["metadata"])),
        checkpoint["channel_versions"],
    )  # fmt: skip
    return (
        str(told["thread"]),
        put,
        [(task, channel, snapshot.from_value(each)) for task, channel, each in told["writes"]],
    )


def learn(kept: Kept, told: Any) -> None:
    """Takes over what the record has of a saver's state."""
    thread, put, writes = loaded(told)
    kept.learn(thread, put, writes, WRITES_IDX_MAP)
    other = kept.other
    if other is None:
        return
    at = plainly(
        other, "put", config(thread, put.ns, put.parent), put.checkpoint, dict(put.metadata), dict(put.new_versions)
    )
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        tasks.setdefault(task, []).append((channel, value))
    for task, each in tasks.items():
        plainly(other, "put_writes", at, each, task)


def is_known(kept: Kept, asked: Where, found: CheckpointTuple | None) -> bool:
    """Recording: whether a saver gave what is expected of it, by what the session has put there or was told."""
    expected = kept.expected(asked.thread, asked.ns, asked.id, asked.branch)
    if found is None:
        return expected is None
    return expected == (found.checkpoint["id"], len(found.pending_writes or ()))


def note(kept: Kept, found: CheckpointTuple) -> None:
    """Recording: from here on it is known."""
    where, above = Where(found.config), found.parent_config
    checkpoint: Any = found.checkpoint
    values = dict(checkpoint["channel_values"])
    put = Put(
        where.ns, Where(above).id if above else None, None, {**checkpoint, "channel_values": values},
        dict(found.metadata), dict(checkpoint["channel_versions"]),
    )  # fmt: skip
    kept.learn(where.thread, put, list(found.pending_writes or ()), WRITES_IDX_MAP)
