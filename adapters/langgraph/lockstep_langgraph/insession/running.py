"""Graphs in a session: the code of a thread runs in its native lane, and each checkpoint that is made is a step.

A step is noted where LangGraph makes the checkpoint, in the order of the program, and not where a saver gets it, which
may be later and on another thread. So a graph has steps that has no saver, or one that is only asked at the end.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

from langgraph.checkpoint.base import get_checkpoint_metadata

from lockstep.log.address import unquote
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep.session.lanes import NATIVE
from lockstep_langgraph import driving
from lockstep_langgraph.insession import kept
from lockstep_langgraph.insession.books import native
from lockstep_langgraph.insession.states import Where
from lockstep_langgraph.lanes import of_namespace
from lockstep_langgraph.threads import Put


def driven(graph: Any, config: Any, source: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """What an invocation gives, with its native lane on while it runs and off while its caller does."""
    name = _lane(graph, config)
    return driving.driven(NATIVE, name, source) if name else source


def adriven(graph: Any, config: Any, source: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """The same for `astream`."""
    name = _lane(graph, config)
    return driving.adriven(NATIVE, name, source) if name else source


def _lane(graph: Any, config: Any) -> str:
    """The native lane that an invocation runs in, "" where no session is on."""
    session = sessions.session
    if session is None or lanes.current() is None:
        return ""
    try:
        from langgraph._internal._config import ensure_config

        kept.session()
        configurable: Mapping[str, Any] = ensure_config(graph.config, config).get("configurable") or {}
        namespace, thread = configurable.get("checkpoint_ns"), configurable.get("thread_id")
        if thread is None:
            within = NATIVE.get()
            thread = _thread(within) if within and namespace else _numbered(str(graph.name or "graph"))
        return native(str(thread), of_namespace(str(namespace or "")))
    except Exception as error:
        session.fault("the thread of a graph", error)
        return ""


def _thread(lane: str) -> str:
    return unquote(lane.split("/")[1])


def _numbered(name: str) -> str:
    """A name for what has no thread: the n-th invocation of that graph in its strand."""
    session = sessions.session
    assert session is not None
    lane = lanes.lane()
    number = lane.ordinal(f"graph {name}")
    above = lane.name.removeprefix(session.process).strip("/").replace("/", "-")
    return f"{above}-{name}.{number}" if above else f"{name}.{number}"


def noting(plain: Any) -> Any:
    """`PregelLoop._put_checkpoint`, which notes the step that a checkpoint is."""

    @functools.wraps(plain)
    def _put_checkpoint(self: Any, metadata: Any) -> Any:
        session = sessions.session
        if session is None or lanes.current() is None or not NATIVE.get():
            return plain(self, metadata)
        exiting = metadata is self.checkpoint_metadata
        parent = getattr(self, "_lockstep_parent", None)
        submit = getattr(self, "submit", None)
        saved = False

        def submitting(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            nonlocal saved
            if not saved and getattr(function, "__name__", "") == "_checkpointer_put_after_previous":
                saved = True
                _saved(session, self.checkpointer, *args[-4:])
            assert submit is not None
            return submit(function, *args, **kwargs)

        if submit is not None:
            self.submit = submitting
        try:
            made = plain(self, metadata)
        finally:
            if submit is not None:
                self.submit = submit
        if not saved and not exiting:
            _unsaved(session, self, parent, metadata)
        self._lockstep_parent = self.checkpoint["id"]
        return made

    return _put_checkpoint


def _saved(session: Any, saver: Any, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> None:
    """A checkpoint is about to go to a saver."""
    try:
        on = kept.session()
        assert on is not None
        where = Where(config)
        about = dict(get_checkpoint_metadata(config, metadata))
        on.of(saver).put(
            where.thread, Put(where.ns, where.id, where.branch, checkpoint, about, new_versions), ahead=True
        )
    except Exception as error:
        session.fault("a step of a graph", error)


def _unsaved(session: Any, loop: Any, parent: str | None, metadata: Any) -> None:
    """A checkpoint that no saver gets."""
    try:
        from langgraph._internal._typing import MISSING

        on = kept.session()
        assert on is not None
        held = ((name, channel.checkpoint()) for name, channel in loop.channels.items())
        values = {name: value for name, value in held if value is not MISSING}
        versions = dict(loop.checkpoint["channel_versions"])
        last: Mapping[str, Any] = getattr(loop, "_lockstep_versions", {})
        loop._lockstep_versions = versions
        checkpoint = {**loop.checkpoint, "channel_values": values, "channel_versions": versions}
        new = {name: version for name, version in versions.items() if last.get(name) != version}
        namespace = str((loop.config.get("configurable") or {}).get("checkpoint_ns") or "")
        put = Put(namespace, parent, None, checkpoint, dict(metadata), new)
        on.of(NOBODY).put(_thread(NATIVE.get()), put, ahead=True)
    except Exception as error:
        session.fault("a step of a graph", error)


class Nobody:
    """Stands for the saver of graphs that have none."""


NOBODY = Nobody()
