"""The checkpointer that can replay.

    graph = builder.compile(checkpointer=LockstepCheckpointer())

It is a saver like LangGraph's own in all that a program can ask of one, sync and async from the same object. What it
keeps is a run for each thread, `langgraph/<thread>`, which `lockstep log`, `replay`, `fork` and `bisect` read.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from lockstep_langgraph import history, insession, rewriting
from lockstep_langgraph.cells import Listing
from lockstep_langgraph.core import Core
from lockstep_langgraph.entries import Entry
from lockstep_langgraph.lazy import LazyValues
from lockstep_langgraph.stored import StoredShelf
from lockstep_langgraph.threads import Put, Thread
from lockstep_langgraph.values import Codec

BRANCH = "lockstep_branch"  # in `configurable`: the branch to go on with, one that Lockstep made

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory  # not in every version


class LockstepCheckpointer(BaseCheckpointSaver[Any]):
    """Keeps threads in a Lockstep store.

    store        path of the store; without one as everywhere: LOCKSTEP_STORE, or `.lockstep/store.db` found upward
    wrap         another saver, which keeps the threads: what happens in them is recorded beside it
    serde        a serializer of LangGraph's to use for all values instead of Lockstep's own readable form
    types        classes that values may have beside those that the graphs' schemas declare; objects of all others
                 come back as inert data
    on_conflict  of two turns at once on one thread: "warn" keeps both as branches, "raise" refuses the later one
    paranoid     compare every message of every list in each put, and not only those that nodes usually change in place
    """

    def __new__(cls, *args: Any, wrap: BaseCheckpointSaver[Any] | None = None, **options: Any) -> Self:
        if wrap is None or cls is not LockstepCheckpointer:
            return super().__new__(cls)
        from lockstep_langgraph.beside import Beside

        return cast("Self", super().__new__(Beside))

    def __init__(
        self,
        store: Any = None,
        *,
        wrap: BaseCheckpointSaver[Any] | None = None,
        serde: Any = None,
        types: Collection[Any] = (),
        on_conflict: Literal["warn", "raise"] = "warn",
        paranoid: bool = False,
    ) -> None:
        if on_conflict not in ("warn", "raise"):
            raise ValueError(f"on_conflict is 'warn' or 'raise', and not {on_conflict!r}")
        super().__init__(serde=serde)
        self._core = Core(StoredShelf(store), Codec(types, serde=serde), on_conflict, paranoid=paranoid)
        insession.attach()

    @classmethod
    def over(cls, core: Core) -> LockstepCheckpointer:
        """One that keeps its threads there: replays and forks."""
        saver = cls.__new__(cls)
        BaseCheckpointSaver.__init__(saver)
        saver._core = core
        return saver

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        where = _Where(config)
        core = self._core
        with core.threads.using(where.thread) as thread:
            if thread is None:
                core.read_nothing(where.thread, where.ns)
                return None
            entry = core.read(thread, where.ns, where.id, where.branch)
            return self._tuple(thread, entry, where.branch) if entry is not None else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        where = _Where(config) if config is not None else None
        upto = _Where(before).id if before is not None else None
        left = limit
        listing = Listing(self._core.codec)
        for id in [where.thread] if where is not None else self._core.threads.ids():
            with self._core.threads.using(id) as thread:
                found = [] if thread is None else _matching(thread, where, upto)
            for thread_of, entry in found:
                if left is not None and left <= 0:
                    return
                metadata = entry.metadata.make(self._core.codec)
                if filter and not all(metadata.get(name) == wanted for name, wanted in filter.items()):
                    continue
                if left is not None:
                    left -= 1
                with thread_of.lock:
                    found_tuple = self._tuple(thread_of, entry, where.branch if where is not None else None, listing)
                yield found_tuple

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        if not channels:
            return {}
        where = _Where(config)
        with self._core.threads.using(where.thread) as thread:
            entry = None
            if thread is not None:
                entry = thread.kept(where.ns, where.id) if where.id else thread.newest(where.ns, where.branch)
            if thread is None or entry is None:
                return {name: {"writes": []} for name in channels}
            found = history.of_channels(thread, entry, channels, self._core.codec, where.branch)
        return cast("Mapping[str, DeltaChannelHistory]", found)

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        where = _Where(config)
        about = dict(get_checkpoint_metadata(config, metadata))
        about.pop(BRANCH, None)
        entry = self._core.put(
            where.thread, Put(where.ns, where.id, where.branch, cast("Any", checkpoint), about, new_versions)
        )
        return _config(where.thread, entry.ns, entry.id, where.branch)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        where = _Where(config)
        self._core.write(
            where.thread, where.ns, where.id or "", where.branch, writes, WRITES_IDX_MAP, task_id, task_path
        )

    def delete_thread(self, thread_id: str) -> None:
        self._core.threads.drop(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        if run_ids:
            rewriting.delete_runs(self._core.threads, {str(id) for id in run_ids})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        rewriting.copy(self._core.threads, str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"no such way to prune: {strategy!r}; there are 'keep_latest' and 'delete'")
        rewriting.prune(self._core.threads, [str(id) for id in thread_ids], strategy)

    # The same for loops: what is done takes well under a millisecond, and waits for no loop

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self.get_delta_channel_history(config=config, channels=channels)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)

    # The rest of the contract

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Numbers; in a thread that came from a saver with text versions, text that sorts after them."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}.{0:016}"
        return 1 if current is None else int(current) + 1

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> LockstepCheckpointer:
        """A clone that shares everything, also what types are let in: `compile()` asks for one in LangGraph's strict
        mode, and the program goes on using the saver that it made."""
        self._core.codec = self._core.codec.with_types(extra_allowlist)
        return copy.copy(self)

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be recorded of calls and turns, in words. State that cannot be kept is raised instead."""
        return (*self._core.faults, *self._core.own.faults())

    def close(self) -> None:
        """Lets go of the store. A thread that is used afterwards is opened again."""
        self._core.own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _tuple(
        self, thread: Thread, entry: Entry, branch: str | None, listing: Listing | None = None
    ) -> CheckpointTuple:
        codec = self._core.codec
        cells = entry.cells
        checkpoint: dict[str, Any] = {"v": entry.v, "id": entry.id}
        if entry.ts is not None:
            checkpoint["ts"] = entry.ts
        checkpoint["channel_values"] = (
            LazyValues(cells, lambda name: listing.make(cells[name], name))
            if listing is not None
            else {name: cell.make(codec, name) for name, cell in cells.items()}
        )
        checkpoint["channel_versions"] = dict(entry.versions)
        checkpoint["versions_seen"] = {node: dict(versions) for node, versions in entry.seen.items()}
        checkpoint["updated_channels"] = list(entry.updated) if entry.updated is not None else None
        for name, item in entry.more.items():
            if item is None:
                checkpoint.pop(name, None)
            else:
                checkpoint[name] = item.make(codec)
        return CheckpointTuple(
            config=_config(thread.id, entry.ns, entry.id, branch),
            checkpoint=cast("Checkpoint", checkpoint),
            metadata=entry.metadata.make(codec),
            parent_config=_config(thread.id, entry.ns, entry.parent, branch) if entry.parent else None,
            pending_writes=[
                (write.task, write.channel, write.item.make(codec)) for write in thread.writes(entry, branch)
            ],
        )


class _Where:
    """What a config addresses."""

    __slots__ = ("_thread", "any_ns", "branch", "id", "ns")

    def __init__(self, config: RunnableConfig) -> None:
        conf: Mapping[str, Any] = config.get("configurable") or {}
        self._thread = conf.get("thread_id")
        ns = conf.get("checkpoint_ns")
        self.any_ns = ns is None
        self.ns = str(ns or "")
        id = conf.get("checkpoint_id")
        self.id = str(id) if id else None
        branch = conf.get(BRANCH)
        self.branch = str(branch) if branch else None

    @property
    def thread(self) -> str:
        if self._thread is None:
            raise KeyError("thread_id")  # as LangGraph's own savers do
        return str(self._thread)


def _matching(thread: Thread, where: _Where | None, before: str | None) -> list[tuple[Thread, Entry]]:
    spaces = thread.spaces() if where is None or where.any_ns else [where.ns]
    branch = where.branch if where is not None else None
    if where is not None and where.id is not None:
        wanted = [(ns, thread.find(ns, where.id)) for ns in spaces]
        for ns, _ in wanted:
            thread.addressed.add((ns, where.id))
        return [(thread, entry) for _, entry in wanted if entry is not None and (before is None or entry.id < before)]
    return [(thread, entry) for ns in spaces for entry in thread.ordered(ns, branch, before)]


def _config(thread: str, ns: str, id: str, branch: str | None) -> RunnableConfig:
    configurable = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}
    if branch is not None:
        configurable[BRANCH] = branch
    return {"configurable": configurable}
