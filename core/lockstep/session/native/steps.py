"""Steps of a native run that its own code makes again: each against the one before in its lane.

The key of a step is a digest over its own record and the key of the step before in its lane: equal where all that came
before is equal too. So what is recorded and what is made again compare by it, without the positions of either.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from lockstep.log.canonical import canonical
from lockstep.log.checkpoints import CHANNELS, GONE, WHOLE
from lockstep.log.model import Value

if TYPE_CHECKING:
    from lockstep.session.native.journal import Journal


class Last(msgspec.Struct):
    """The step before, in one lane: its position, its channels, its key; and how many of its turn there are so far."""

    pos: int
    channels: Mapping[str, Value]
    key: bytes
    number: int = 0


class Moment(Protocol):
    """What is told of a step before the program goes on from it."""

    @property
    def lane(self) -> str:
        """Where it closes."""
        ...

    @property
    def name(self) -> str:
        """Whose it is."""
        ...

    @property
    def source(self) -> str:
        """Its kind."""
        ...


class Steps[M: Moment](Protocol):
    """The last step of each lane, of an adapter's moments."""

    def made(self, moment: M, next: Last, body: Mapping[str, Value]) -> bytes:
        """The key of a step, by its hidden record; the next one of its lane is made against it."""
        ...


def key_of(before: bytes, source: str, name: str, body: Mapping[str, Value], *more: Value) -> bytes:
    """The identity of a step. `before`: that of the one before it in its lane, b"" for none; `more`: what counts of it
    beside its channels."""
    said: dict[str, Value] = {part: body[part] for part in (CHANNELS, GONE, WHOLE) if part in body}
    hashed = blake2b(before, digest_size=16)
    hashed.update(canonical([source, name, said, *more]))
    return hashed.digest()


def write[M: Moment](journal: Journal, steps: Steps[M], moment: M, body: Mapping[str, Value], next: Last) -> None:
    """Writes a step with this record, of which nothing is hidden yet. Raises StoreError."""
    hidden: Any = journal.hide(dict(body))
    of = next.pos
    key = steps.made(moment, next, hidden)
    next.pos = journal.step(moment.lane, moment.name, moment.source, hidden, key, of)
