"""Which pipe `communicate` finds ready in a replay: the one that it found in the recording."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockstep.taps.processes import descriptors
from lockstep.taps.processes.waiting import serving

_module: Any = subprocess
_real: Any = _module._PopenSelector
EXPIRED = "expired"


class Selector(_real):  # type: ignore[misc]
    """In the place of the real one: asks the record."""

    def __init__(self, popen: Any, process: Any) -> None:
        super().__init__()
        self._popen = popen
        self._process = process

    def select(self, timeout: float | None = None) -> list[tuple[Any, int]]:
        process = self._process
        keys = {descriptors.pipe_of(key.fd).channel: key for key in self.get_map().values()}
        stdin = keys.pop("stdin", None)
        candidates: list[tuple[int, str]] = []
        if stdin is not None:
            failing = descriptors.pipe_of(stdin.fd).failing()
            if failing is not None:
                candidates.append((failing, "stdin"))
            elif process.unfed() is not None or process.session.recording:
                return [(stdin, stdin.events)]
        piece = process.due(tuple(keys))
        if piece is not None:
            candidates.append(piece)
        number = vars(self._popen)["_lockstep_expires"]
        expires = process.at(EXPIRED, number)
        if expires is not None:
            candidates.append((expires, EXPIRED))
        if candidates:
            _, what = min(candidates)
        elif stdin is not None:
            what = "stdin"  # more than was recorded, which its write will say
        else:
            what = next(iter(keys))
        if what == EXPIRED:
            process.cause(EXPIRED, number)
            vars(self._popen)["_lockstep_expired"] = True
            return []
        key = stdin if what == "stdin" else keys[what]
        return [(key, key.events)]


def selector() -> Any:
    """Stands for `subprocess._PopenSelector`."""
    return _real() if serving.now is None else Selector(*serving.now)


@contextmanager
def choosing(popen: Any, process: Any) -> Iterator[None]:
    """While `communicate` of this process runs."""
    serving.now = popen, process
    try:
        yield
    finally:
        serving.now = None
