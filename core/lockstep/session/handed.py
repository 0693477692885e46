"""What an effect handed to the program, as a digest: the same for a recording and its replay."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from lockstep.log import canonical
from lockstep.log.model import Kind, Status, Value
from lockstep.session.tape import Recorded


class Handed:
    """What one effect handed to the program so far, as a digest. Pieces of bytes are one text: how a
    network cut them up is not part of it."""

    __slots__ = ("_digest", "_hash", "key", "pos")

    def __init__(self, key: bytes, pos: int) -> None:
        self.key = key
        self.pos = pos
        self._hash: Any = None
        self._digest: bytes | None = None

    def add(self, value: Value) -> None:
        if self._digest is None:
            self._so_far().update(value if isinstance(value, bytes) else canonical.digest(value))

    def end(self, status: str, value: Value) -> None:
        if self._digest is not None:
            return
        # A stream that was closed and one that was left open got the same answer.
        if status != Status.CLOSED:
            self._so_far().update(b"\0" + status.encode())
            if value is not None:
                self._hash.update(canonical.digest(value))
        self._digest = self.digest()
        self._hash = None  # a run has many effects, and the state of a hash takes 360 bytes

    @property
    def ended(self) -> bool:
        return self._digest is not None

    def digest(self) -> bytes:
        found: bytes = self._so_far().digest() if self._digest is None else self._digest
        return found

    def _so_far(self) -> Any:
        if self._hash is None:
            self._hash = blake2b(digest_size=16, person=b"lockstep outcome")
        return self._hash


def step_key(secrets: Any, thread: str, name: str, state: Value) -> bytes:
    """The match key of a step: of a native checkpoint, also by the native lane that it is of."""
    found: bytes = secrets.key("step", f"{thread} {name}" if thread else name, state)
    return found


def stepped(thread: str, state: Value) -> Value:
    """What a step asks to be compared with, as a difference shows it."""
    return {"thread": thread, "state": state} if thread else {"state": state}


def served(recorded: Recorded, body: Callable[[int], Value]) -> bytes:
    """The digest of all that is recorded of an effect's outcome, as `Handed` has it of what was handed out."""
    if recorded.ended and (key := recorded.pieces[-1][1].key):
        return key
    handed = Handed(recorded.begin.key, recorded.begin.pos)
    for seq, event, _ in recorded.pieces:
        if event.kind is Kind.PART:
            handed.add(body(seq))
    return handed.digest()
