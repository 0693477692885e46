"""The ids that LangChain and LangGraph draw in a turn: those of messages, and of runs, after which messages are called.

They come from the turn's seed, so a replay of the turn has the same: what is drawn in a lane depends on nothing but the
lane and how many were drawn in it before. They look like what the frameworks draw themselves, version and all.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID, uuid4

from lockstep.log import untapped
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep_langgraph import calls, turns

_GREGORIAN = 0x01B21DD213814000  # hundreds of nanoseconds from the beginning of a UUID's time to that of the clock's
_LAST = "checkpoint id"  # the time of the last one, among the numbers of a strand

# Whose ids are drawn, and for which lane, where the running code is in neither by itself.
_drawing: ContextVar[tuple[Any, str] | None] = ContextVar("lockstep_langgraph_drawing", default=None)


class Drawn:
    """Where the ids of one turn come from.

    seed   of the turn, see `turns`: it begins with the time, and so does an id of version 7
    """

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self._drawn: dict[str, int] = {}
        self._lock = untapped.allocate_lock()

    def uuid(self, lane: str, version: int) -> UUID:
        """The next id in this lane."""
        with self._lock:
            number = self._drawn.get(lane, 0)
            self._drawn[lane] = number + 1
        digest = hashlib.blake2b(f"{lane}\0{number}".encode(), key=self.seed, digest_size=16).digest()
        if version == 7:
            digest = self.seed[:6] + digest[6:]
        bits = int.from_bytes(digest, "big")
        bits = bits & ~(0xF << 76) & ~(0x3 << 62) | version << 76 | 0x2 << 62
        return UUID(int=bits)

    def draw(self, lane: str) -> str:
        """The next id in this lane, as `uuid4` has them."""
        return str(self.uuid(lane, 4))

    def checkpoint(self, lane: str) -> str | None:
        """The id of the next checkpoint in this lane of checkpoints; None where LangGraph draws its own."""
        return None


def of_turn(turn: Any) -> Any:
    """Those of a turn; see `turns.Ids`."""
    if turn.ids is None:
        turn.ids = Drawn(turn.seed)
    return turn.ids


@contextmanager
def drawn_for(turn: Any, lane: str) -> Iterator[None]:
    """What is drawn in this block is drawn for that lane of this turn."""
    token = _drawing.set((turn, lane))
    try:
        yield
    finally:
        _drawing.reset(token)


def _whose() -> tuple[Any, str] | None:
    found = _drawing.get()
    if found is None:
        turn = turns.running()
        if turn is None:
            return None
        found = turn, calls.lane()
    # What a call's own code draws is drawn apart: where the call is served, nobody draws it.
    return found if calls.within.get() is None else (found[0], f"{found[1]} within")


def drawing(plain: Callable[..., UUID], version: int) -> Callable[..., UUID]:
    """Wraps a function that draws an id, as one module knows it."""

    @functools.wraps(plain)
    def draw(*args: Any, **kwargs: Any) -> UUID:
        whose = _whose() if not (args or kwargs) else None
        if whose is None:
            return plain(*args, **kwargs)
        turn, lane = whose
        found: UUID = of_turn(turn).uuid(lane, version)
        return found

    return draw


def drawing_checkpoints(plain: Callable[..., UUID]) -> Callable[..., UUID]:
    """Wraps what draws the ids of checkpoints: those of a replay are the recorded ones."""

    @functools.wraps(plain)
    def draw(*args: Any, **kwargs: Any) -> UUID:
        found = _drawing.get()
        given = of_turn(found[0]).checkpoint(found[1]) if found is not None else None
        if given is not None:
            return UUID(given)
        if sessions.session is None or (strand := lanes.current()) is None:
            return plain(*args, **kwargs)
        return _in_strand(strand, *args, **kwargs)

    return draw


def _in_strand(strand: Any, node: int | None = None, clock_seq: int | None = None) -> UUID:
    """LangGraph's `uuid6`, but later than the last id of its strand. Its own is later than the last of the process,
    which a replay could not say: several threads draw at once, and it is told the recorded time after its recording."""
    timestamp = max(time.time_ns() // 100 + _GREGORIAN, strand.counts.get(_LAST, 0) + 1)
    strand.counts[_LAST] = timestamp
    # Not from the strand's random numbers: how many of those a library has drawn by now may hang on a race.
    told = f"{strand.name} {strand.ordinal('checkpoint ids')}".encode("utf-8", "surrogatepass")
    drawn = int.from_bytes(hashlib.blake2b(told, key=strand.session.seed, digest_size=8).digest())
    clock = (drawn >> 48 if clock_seq is None else clock_seq) & 0x3FFF
    number = (timestamp >> 12) << 80 | (timestamp & 0xFFF) << 64 | clock << 48
    number |= (drawn if node is None else node) & 0xFFFFFFFFFFFF
    return UUID(int=number & ~(0xF000 << 64 | 0xC000 << 48) | 6 << 76 | 0x8000 << 48)


class Uuids:
    """Stands for the module `uuid` in another module that draws by `uuid.uuid4`."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.uuid4 = drawing(lambda: plain.uuid4(), 4)  # noqa: PLW0108 - as it is when it is drawn: a session may tap it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def give(channels: Mapping[str, Any], writes: Any) -> None:
    """Gives messages their ids before they are stored. LangGraph's reducer gives them when it adds the messages to the
    state, while they are being stored on another thread: what a task wrote has them then, or has not."""
    from langchain_core.messages import BaseMessage

    draw = drawing(uuid4, 4)
    for channel, value in writes:
        operator = getattr(channels.get(channel), "operator", None)
        adds = getattr(operator, "func", operator)  # a partial of it, where it has a format
        if getattr(adds, "__name__", "").lstrip("_") != "add_messages":
            continue
        for message in value if isinstance(value, list) else (value,):
            if isinstance(message, BaseMessage) and message.id is None:
                message.id = str(draw())
