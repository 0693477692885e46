"""What a session makes of what a saver is given: put, put_writes, what is done to whole threads, setup."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, get_checkpoint_metadata

from lockstep_langgraph.insession import states
from lockstep_langgraph.insession.kept import Session
from lockstep_langgraph.insession.operations import Op, Plain
from lockstep_langgraph.insession.states import Where, plainly
from lockstep_langgraph.threads import Put


def put(on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
    op, given = _putting(on, saver, plain, config, checkpoint), (config, checkpoint, metadata, new_versions)
    return op.do(given, {}, partial(_put_again, op, *given), partial(_put_noted, op, *given))


async def aput(
    on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any, metadata: Any, new_versions: Any
) -> Any:
    op, given = _putting(on, saver, plain, config, checkpoint), (config, checkpoint, metadata, new_versions)
    return await op.ado(given, {}, partial(_put_again, op, *given), partial(_put_noted, op, *given))


def _putting(on: Session, saver: Any, plain: Plain, config: Any, checkpoint: Any) -> Op:
    where = Where(config)
    return Op(on, saver, plain, "put", where.thread, namespace=where.ns, checkpoint=str(checkpoint["id"]))


def _put_noted(op: Op, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> None:
    where = Where(config)
    about = dict(get_checkpoint_metadata(config, metadata))
    op.kept.put(where.thread, Put(where.ns, where.id, where.branch, checkpoint, about, new_versions))
    op.core.flush()


def _put_again(op: Op, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
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
    op, given = _writing(on, saver, plain, config, task_id), (config, writes, task_id, task_path)
    op.do(given, {}, partial(_write_again, op, *given), partial(_write_noted, op, *given))


async def aput_writes(
    on: Session, saver: Any, plain: Plain, config: Any, writes: Any, task_id: str, task_path: str = ""
) -> None:
    op, given = _writing(on, saver, plain, config, task_id), (config, writes, task_id, task_path)
    await op.ado(given, {}, partial(_write_again, op, *given), partial(_write_noted, op, *given))


def _writing(on: Session, saver: Any, plain: Plain, config: Any, task_id: str) -> Op:
    where = Where(config)
    return Op(on, saver, plain, "put_writes", where.thread, namespace=where.ns, checkpoint=where.id, task=task_id)


def _write_noted(op: Op, config: Any, writes: Any, task_id: str, task_path: str) -> None:
    where = Where(config)
    op.kept.write(where.thread, where.ns, where.id or "", writes, WRITES_IDX_MAP, task_id, task_path)


def _write_again(op: Op, config: Any, writes: Any, task_id: str, task_path: str) -> None:
    op.scratch(config, writes, task_id, task_path)
    if op.kept.other is not None:
        _write_noted(op, config, writes, task_id, task_path)


# What is done to whole threads.


def changing(name: str) -> Plain:
    """The sync method that changes threads as a whole: delete_thread, delete_for_runs, copy_thread, prune."""

    def change(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> None:
        op = Op(on, saver, plain, name, _named(args))
        again = partial(_changed, op, args, kwargs)
        op.do(args, kwargs, again, again)

    return change


def achanging(name: str) -> Plain:
    """The same of the async ones."""

    async def change(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> None:
        op = Op(on, saver, plain, name, _named(args))
        again = partial(_changed, op, args, kwargs)
        await op.ado(args, kwargs, again, again)

    return change


def _named(args: tuple[Any, ...]) -> str:
    first = args[0] if args else ""
    return first if isinstance(first, str) else ", ".join(map(str, first))


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


# What a saver prepares in its database: in a replay it has none.


def setup(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> Any:
    return Op(on, saver, plain, "setup", type(saver).__name__).do(args, kwargs, _nothing, _nothing)


async def asetup(on: Session, saver: Any, plain: Plain, *args: Any, **kwargs: Any) -> Any:
    return await Op(on, saver, plain, "setup", type(saver).__name__).ado(args, kwargs, _nothing, _nothing)


def _nothing() -> None:
    pass
