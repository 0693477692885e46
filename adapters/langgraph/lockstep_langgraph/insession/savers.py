"""Savers in a session: the methods of their classes ask it first.

A class is wrapped as soon as it is there, and does nothing else than before where no session is on, or in what a call
of the program runs for real.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from lockstep.log import untapped
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep_langgraph.insession import databases, kept, reading, writing

_CHANGES = ("delete_thread", "delete_for_runs", "copy_thread", "prune")
_SYNC: dict[str, Callable[..., Any]] = {
    "get_tuple": reading.get_tuple,
    "list": reading.list_,
    "put": writing.put,
    "put_writes": writing.put_writes,
    "setup": writing.setup,
    **{name: writing.changing(name) for name in _CHANGES},
}
_ASYNC: dict[str, Callable[..., Any]] = {
    "aget_tuple": reading.aget_tuple,
    "alist": reading.alist,
    "aput": writing.aput,
    "aput_writes": writing.aput_writes,
    "asetup": writing.asetup,
    **{f"a{name}": writing.achanging(name) for name in _CHANGES},
}
_HISTORY = ("get_delta_channel_history", "aget_delta_channel_history")

_wrapped: set[type] = set()
_lock = untapped.allocate_lock()


def adopt(kind: type) -> None:
    """Has the methods of a saver's class ask the session."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    with _lock:
        for cls in kind.__mro__:
            if cls is BaseCheckpointSaver or cls in _wrapped or getattr(cls, "asks_for_itself", False):
                continue
            if issubclass(cls, BaseCheckpointSaver):
                _wrapped.add(cls)
                _wrap(cls)


def _wrap(cls: Any) -> None:
    for name, function in [*_SYNC.items(), *_ASYNC.items()]:
        plain = cls.__dict__.get(name)
        if inspect.isfunction(plain):
            asks = writing.asetup if name == "setup" and inspect.iscoroutinefunction(plain) else function
            setattr(cls, name, _asking(plain, asks))
    opens = cls.__dict__.get("from_conn_string")
    if isinstance(opens, classmethod):
        cls.from_conn_string = classmethod(_opening(opens.__func__))
    for name in _HISTORY:
        plain = cls.__dict__.get(name)
        if inspect.isfunction(plain):
            setattr(cls, name, _rebuilding(plain, name))


def _asking(plain: Any, function: Callable[..., Any]) -> Any:
    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if sessions.session is None or lanes.current() is None:
            return plain(self, *args, **kwargs)
        on = kept.session()
        return plain(self, *args, **kwargs) if on is None else function(on, self, plain, *args, **kwargs)

    return method


def _opening(plain: Any) -> Any:
    @functools.wraps(plain)
    def from_conn_string(cls: Any, *args: Any, **kwargs: Any) -> Any:
        on = kept.session() if sessions.session is not None and lanes.current() is not None else None
        return plain(cls, *args, **kwargs) if on is None else databases.Opened(on, cls, plain, args, kwargs)

    return from_conn_string


def _rebuilding(plain: Any, name: str) -> Any:
    """What is rebuilt from many checkpoints is so by reading each, so that those from before are noticed."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    general: Any = getattr(BaseCheckpointSaver, name, None)
    if general is None:
        return plain  # this version of LangGraph never asks for it

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        asks = sessions.session is not None and lanes.current() is not None
        return (general if asks else plain)(self, *args, **kwargs)

    return method


def watch() -> None:
    """Adopts the classes that there are, and from now on each that is made."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    base: Any = BaseCheckpointSaver

    def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        adopt(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)
    for cls in _below(base):
        adopt(cls)


def _below(cls: Any) -> list[Any]:
    found = cls.__subclasses__()
    return [*found, *(each for below in found for each in _below(below))]
