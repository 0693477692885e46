"""The seams in LangGraph's loop that a replay uses, all of them private; tried with langgraph 1.1.0 to 1.2.24.

A replay is on where the running turn has one (`turn.replay`); everywhere else these patches only ask for that. They
give checkpoints the ids that were recorded (ids of tasks and interrupts are made of them), stop the loop where the
replay stops, and hand it what nodes wrote, where no node is to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any, Protocol

from lockstep.errors import AdapterError, Code
from lockstep.log import untapped
from lockstep_langgraph import turns


class Replay(Protocol):
    """What the loop asks of a replay."""

    def proceed(self) -> None:
        """A superstep is about to begin. Raises what stops the replay: Divergence, Cut."""
        ...

    def checkpoint_id(self, namespace: str, keep: bool) -> str | None:
        """The id of the checkpoint that is about to be made. `keep`: it is not put, and the next has the same."""
        ...

    def serve(self, loop: Any) -> Sequence[Any]:
        """Gives tasks that have not begun what they wrote; returns those that need not run."""
        ...


_id: ContextVar[str | None] = ContextVar("lockstep_langgraph_checkpoint", default=None)
_seams = (
    ("PregelLoop", "tick"),
    ("PregelLoop", "accept_push"),
    ("PregelLoop", "_put_checkpoint"),
    ("SyncPregelLoop", "match_cached_writes"),
    ("AsyncPregelLoop", "amatch_cached_writes"),
)
_plain: dict[tuple[Any, str], Any] = {}
_installed = 0
_installing = untapped.allocate_lock()


def install() -> None:
    """Puts them in. As often as it is called, `uninstall` has to be to undo it. Raises AdapterError LS408 where this
    version of LangGraph has not what is needed."""
    global _installed
    from langgraph.pregel import _checkpoint, _loop

    with _installing:
        _installed += 1
        if _plain:
            return
        missing = [f"{cls}.{name}" for cls, name in _seams if name not in vars(getattr(_loop, cls, object))]
        if not hasattr(_checkpoint, "uuid6"):
            missing.append("create_checkpoint's uuid6")
        if missing:
            _installed -= 1
            raise AdapterError(
                Code.NO_ADAPTER,
                f"this version of langgraph cannot replay a thread: it has no {', '.join(missing)}. "
                "Versions 1.1.0 to 1.2.24 were tried",
            )
        for cls, name in _seams:
            owner: Any = getattr(_loop, cls)
            plain = _plain[owner, name] = vars(owner)[name]
            setattr(owner, name, _PATCHES[name](plain))
        module: Any = _checkpoint
        _plain[module, "uuid6"] = module.uuid6
        module.uuid6 = _drawn(module.uuid6)


def uninstall() -> None:
    global _installed
    with _installing:
        _installed = max(0, _installed - 1)
        if not _installed:
            for (owner, name), plain in _plain.items():
                setattr(owner, name, plain)
            _plain.clear()


def _replay() -> Replay | None:
    return getattr(turns.running(), "replay", None)


def _tick(plain: Any) -> Any:
    @wraps(plain)
    def tick(self: Any) -> Any:
        replay = _replay()
        if replay is None:
            return plain(self)
        replay.proceed()
        more = plain(self)
        self.tasks = {id: _hasty(task) for id, task in self.tasks.items()}
        return more

    return tick


def _accept_push(plain: Any) -> Any:
    @wraps(plain)
    def accept_push(self: Any, *args: Any, **kwargs: Any) -> Any:
        replay = _replay()
        if replay is None:
            return plain(self, *args, **kwargs)
        replay.proceed()
        pushed = plain(self, *args, **kwargs)
        if pushed is not None:
            pushed = self.tasks[pushed.id] = _hasty(pushed)
        return pushed

    return accept_push


def _hasty(task: Any) -> Any:
    """The task with retries that do not wait: what they wait for is recorded."""
    policies = task.retry_policy
    if not policies:
        return task
    many = policies if isinstance(policies, (list, tuple)) and not hasattr(policies, "_fields") else (policies,)
    return replace(
        task, retry_policy=tuple(each._replace(initial_interval=0.0, max_interval=0.0, jitter=False) for each in many)
    )


def _put_checkpoint(plain: Any) -> Any:
    @wraps(plain)
    def put_checkpoint(self: Any, metadata: Any) -> Any:
        replay = _replay()
        if replay is None or metadata is self.checkpoint_metadata:  # the latter: what an exit puts has its id
            return plain(self, metadata)
        namespace = self.config["configurable"].get("checkpoint_ns") or ""
        token = _id.set(replay.checkpoint_id(namespace, self.durability == "exit"))
        try:
            return plain(self, metadata)
        finally:
            _id.reset(token)

    return put_checkpoint


def _drawn(plain: Any) -> Any:
    @wraps(plain)
    def uuid6(*args: Any, **kwargs: Any) -> Any:
        return _id.get() or plain(*args, **kwargs)

    return uuid6


def _match(plain: Any) -> Any:
    @wraps(plain)
    def match_cached_writes(self: Any) -> Any:
        replay = _replay()
        return plain(self) if replay is None else replay.serve(self)

    return match_cached_writes


def _amatch(plain: Any) -> Any:
    @wraps(plain)
    async def amatch_cached_writes(self: Any) -> Any:
        replay = _replay()
        return await plain(self) if replay is None else replay.serve(self)

    return amatch_cached_writes


_PATCHES = {
    "tick": _tick,
    "accept_push": _accept_push,
    "_put_checkpoint": _put_checkpoint,
    "match_cached_writes": _match,
    "amatch_cached_writes": _amatch,
}
