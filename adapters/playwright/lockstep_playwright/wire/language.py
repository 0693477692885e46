"""What Playwright's client says to its driver: JSON after four bytes of length, on a pipe.

What counts of a message is which object is asked for what, with which arguments, and for how long. Its number, and the
place in the user's code that it comes from, do not: they move with every line that is added.

Tried with playwright 1.60 to 1.65 (`playwright._impl._transport`, since 1.65 `playwright._impl.transport`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from lockstep.taps.processes.languages import Language, learn

_LENGTH = 4  # bytes, the lowest first
_COUNTS = ("timeout",)  # of what a message says about itself


class Messages:
    """Reads one conversation: pieces of bytes in, a line a message out."""

    def __init__(self) -> None:
        self._rest = b""

    def __call__(self, data: bytes) -> bytes:
        self._rest += data
        lines: list[bytes] = []
        while len(self._rest) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._rest[:_LENGTH], "little")
            if len(self._rest) < end:
                break
            lines.append(_line(self._rest[_LENGTH:end]))
            self._rest = self._rest[end:]
        return b"".join(lines)


def _line(message: bytes) -> bytes:
    try:
        told: dict[str, Any] = json.loads(message)
        about = told.get("metadata") or {}
        arguments = {**(told.get("params") or {}), **{name: about[name] for name in _COUNTS if name in about}}
        text = f"{told.get('method')} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)} of {told.get('guid')}"
    except (ValueError, TypeError, AttributeError):
        text = f"? {base64.b64encode(message).decode()}"
    return text.encode("utf-8", "surrogatepass") + b"\n"


def is_driver(argv: Sequence[str]) -> bool:
    """Whether these are the words of command of the driver that comes with Playwright's client."""
    return argv[-1:] == ["run-driver"] and any("playwright" in word for word in argv)


# Where in the user's code the action was begun that speaks now: in the sync API it stands on another stack.
speaking = ""


def spoken_at(site: str) -> None:
    global speaking
    speaking = site


def learn_it() -> None:
    learn(Language("playwright", speaks=is_driver, reader=Messages, site=lambda: speaking))
