"""`LockstepCheckpointer(wrap=saver)`: threads stay with the other saver, what happens in them is recorded beside it.

Whatever is asked of it, the other saver does, with what it was given and nothing else. Steps, writes and calls go into
the thread's run as well. That is a recording: a fault of it is reported and reaches nobody, unlike one of the saver.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, get_checkpoint_metadata

from lockstep.session import current as sessions
from lockstep_langgraph.checkpointer import LockstepCheckpointer
from lockstep_langgraph.insession.kept import Lenient
from lockstep_langgraph.insession.states import Where
from lockstep_langgraph.threads import Put


class Beside(LockstepCheckpointer):
    """A checkpointer that records beside another saver. With a session on, it is that saver."""

    asks_for_itself = True  # the saver's own methods ask a session

    def __init__(self, store: Any = None, *, wrap: BaseCheckpointSaver[Any], **options: Any) -> None:
        super().__init__(store, **options)
        self.wrapped: Any = wrap
        self.serde = wrap.serde
        if not options:
            self._core.codec = Lenient()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "wrapped" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["wrapped"], name)  # `setup` and the like

    # What is recorded of it: first, since nodes change messages in place while the other saver waits for its database.

    def _recorded(self, what: str, record: Callable[[], object]) -> None:
        if sessions.session is None:
            try:
                record()
            except Exception as error:
                self._core.fault(what, error)

    def _read(self, config: Any, found: CheckpointTuple | None) -> None:
        """Notes where a turn goes on from: a state that is not in the run yet, since it was there before, is now."""
        where = Where(config)
        core = self._core
        if found is not None:
            at, above, checkpoint = Where(found.config), found.parent_config, found.checkpoint
            with core.threads.using(where.thread, create=True) as thread:
                assert thread is not None
                if thread.kept(at.ns, at.id) is None:
                    parent = Where(above).id if above else None
                    given: Any = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
                    versions = dict(checkpoint["channel_versions"])
                    put = Put(at.ns, parent, None, given, dict(found.metadata), versions)
                    thread.put(put, "main", core.codec)
                    for task, writes in _by_task(found.pending_writes or ()).items():
                        thread.write(at.ns, checkpoint["id"], writes, WRITES_IDX_MAP, task, "", None, core.codec)
        with core.threads.using(where.thread) as thread:
            if thread is None or found is None:
                core.read_nothing(where.thread, where.ns)
            else:
                core.read(thread, where.ns, where.id or found.checkpoint["id"], None)

    def _put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> None:
        where = Where(config)
        about = dict(get_checkpoint_metadata(config, metadata))
        self._core.put(where.thread, Put(where.ns, where.id, None, checkpoint, about, new_versions))

    def _write(self, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        where = Where(config)
        self._core.write(where.thread, where.ns, where.id or "", None, writes, WRITES_IDX_MAP, task_id, task_path)

    # Sync.

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        found: CheckpointTuple | None = self.wrapped.get_tuple(config)
        self._recorded("what a thread held", lambda: self._read(config, found))
        return found

    def list(self, config: Any, **options: Any) -> Iterator[CheckpointTuple]:
        yield from self.wrapped.list(config, **options)

    def get_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.wrapped.get_delta_channel_history(config=config, channels=channels)
        return found

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._recorded("a checkpoint", lambda: self._put(config, checkpoint, metadata, new_versions))
        return self.wrapped.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._recorded("writes", lambda: self._write(config, writes, task_id, task_path))
        self.wrapped.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self.wrapped.delete_thread(thread_id)
        self._recorded("a thread's end", lambda: self._core.threads.drop(str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.wrapped.delete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.wrapped.copy_thread(source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], **options: Any) -> None:
        self.wrapped.prune(thread_ids, **options)

    # Async.

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        found: CheckpointTuple | None = await self.wrapped.aget_tuple(config)
        self._recorded("what a thread held", lambda: self._read(config, found))
        return found

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        async for found in self.wrapped.alist(config, **options):
            yield found

    async def aget_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await self.wrapped.aget_delta_channel_history(config=config, channels=channels)
        return found

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._recorded("a checkpoint", lambda: self._put(config, checkpoint, metadata, new_versions))
        return await self.wrapped.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._recorded("writes", lambda: self._write(config, writes, task_id, task_path))
        await self.wrapped.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.wrapped.adelete_thread(thread_id)
        self._recorded("a thread's end", lambda: self._core.threads.drop(str(thread_id)))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self.wrapped.adelete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.wrapped.acopy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], **options: Any) -> None:
        await self.wrapped.aprune(thread_ids, **options)

    # The rest of the contract.

    @property
    def config_specs(self) -> Any:
        return self.wrapped.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.wrapped.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Beside:
        self._core.codec = self._core.codec.with_types(extra_allowlist)
        clone = copy.copy(self)
        clone.wrapped = self.wrapped.with_allowlist(extra_allowlist)
        return clone


def _by_task(writes: Sequence[tuple[str, str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for task, channel, value in writes:
        found.setdefault(task, []).append((channel, value))
    return found
