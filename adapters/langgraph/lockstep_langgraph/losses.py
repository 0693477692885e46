"""What does not come back from a checkpoint as it was put there: where, what, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Lock
from typing import Any

import msgspec

NOT_ALLOWED = "its class is not allowed"
_OURS = "lockstep.errors:"
_NUMBERS = re.compile(r"\[\d+\]")
_LONG = 200  # characters of a class's name
_TEXT = 10_000  # of what an exception says
_MOST = 1000  # distinct ones that a process remembers, and tells


class Loss(msgspec.Struct, frozen=True):
    """`path`: as in `messages[3].artifact`; `what`: the class; `why` it does not come back as itself."""

    path: str
    what: str
    why: str

    def text(self) -> str:
        """One line, with what to do."""
        where = self.path or "the state"
        if self.why == NOT_ALLOWED:
            name = self.what.rpartition(":")[2].rpartition(".")[2]
            return (
                f"{where} holds a {self.what}, which comes back as its data: declare it in the graph's state, "
                f"or say LockstepCheckpointer(types=[{name}])"
            )
        return f"{where} holds a {self.what}, which does not come back as itself: {self.why}"


class Reports:
    """What was reported: each type once for each place, whatever its index in a list."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._told: set[tuple[str, str]] = set()
        self.losses: list[Loss] = []

    def tell(self, found: Iterable[Loss]) -> None:
        """Warns of what is new among these, by the logger "lockstep". Not of what we have stopped a node with: nobody
        wants that back."""
        for loss in found:
            if loss.what.startswith(_OURS):
                continue
            key = (_NUMBERS.sub("[]", loss.path), loss.what)
            with self._lock:
                if key in self._told or len(self._told) >= _MOST:
                    continue
                self._told.add(key)
                self.losses.append(loss)
            import logging

            logging.getLogger("lockstep").warning("%s", loss.text())


def shown(name: object) -> str:
    """A class's name as a record has it, which may be anything."""
    text = name if isinstance(name, str) else f"<{type(name).__name__}>"
    return text if text.isprintable() and len(text) <= _LONG else ascii(text[:_LONG])


def text_of(error: Any) -> str:
    """What an encoded exception says, with its class."""
    if not isinstance(error, dict):
        return "a damaged exception"
    args = error.get("args")
    said = [str(item) for item in args if isinstance(item, str | int | float)] if isinstance(args, list) else []
    return f"{shown(error.get('module'))}.{shown(error.get('name'))}: {', '.join(said)[:_TEXT]}"


def is_secret(cls: type) -> bool:
    """Whether it is one of pydantic's secrets, which are never stored in clear."""
    return any(base.__name__ == "_SecretBase" and base.__module__ == "pydantic.types" for base in cls.__mro__)
