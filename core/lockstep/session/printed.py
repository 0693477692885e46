"""What the program printed, lane by lane: digested while recording, compared while replaying.

Compared as text, whatever the pieces it is written in. Threads print in the recorded order, since a
channel changes hands between them as a lock does.

A replay compares with what the recorded text is once its secrets are revealed, and digests the text as
recorded: what a piece with secrets in it stands for is digested when all of it was printed.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b

from lockstep.log.model import Value
from lockstep.session.lanes import Lane
from lockstep.session.secrets import Secrets

_PATIENCE = 1.0  # seconds for another thread's write: one that is stuck stops nobody who prints beside it


def _bytes(data: Value) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogatepass")


class Printed:
    """One channel of one lane. `expected` fetches the recorded pieces (replay), None while recording.

    passed   what the last write was in the recording: the same text, but for secrets
    """

    def __init__(
        self,
        expected: Sequence[Callable[[], Value]] | None,
        open_end: bool = False,
        secrets: Secrets | None = None,
    ) -> None:
        self._expected = expected
        self._secrets = secrets
        self._hidden: list[tuple[int, int, bytes]] = []  # pieces with secrets, not printed yet: size, end, text
        self.passed = b""
        self._open_end = open_end  # an interrupted recording: more may follow than was stored
        self._ends: list[int] = []  # of the pieces fetched, in bytes of the whole channel
        self._buffer = b""
        self._hash = blake2b(digest_size=16, person=b"lockstep output")
        self.line = b""  # the present line so far, for reports

    def write(self, data: str | bytes) -> tuple[str, str] | None:
        """Takes what is printed now. Replay: (recorded, now) of the line where it differs, else None."""
        raw = self.passed = _bytes(data)
        if self._expected is None:
            self._hash.update(raw)
            return None
        while len(self._buffer) < len(raw) and self._more():
            pass
        expected, rest = self._buffer[: len(raw)], self._buffer[len(raw) :]
        if expected == raw or (self._open_end and raw.startswith(expected)):
            self._buffer = rest
            self.passed = self._recorded(raw)
            self._hash.update(self.passed)
            self.line = (self.line + raw).rpartition(b"\n")[2]
            return None
        if self._same_but_unknown(raw):
            self.line = (self.line + raw).rpartition(b"\n")[2]
            return None
        self._hash.update(raw)
        # The recorded line to its end, so that the report can show both whole.
        while b"\n" not in self._buffer and len(self._buffer) < 1000 and self._more():
            pass
        same = next(
            (i for i, (a, b) in enumerate(zip(expected, raw, strict=False)) if a != b), min(len(expected), len(raw))
        )
        line = (self.line + raw[:same]).rpartition(b"\n")[2]
        recorded = line + self._buffer[same:].partition(b"\n")[0]
        now = line + raw[same:].partition(b"\n")[0]
        return recorded.decode("utf-8", "replace"), now.decode("utf-8", "replace")

    def pending(self) -> bool:
        """Whether more was recorded than was printed. Only looks, so that any thread may ask."""
        return bool(self._buffer) or (self._expected is not None and len(self._ends) < len(self._expected))

    def left(self) -> str | None:
        """The first recorded line that was not printed, None if all was."""
        while b"\n" not in self._buffer and self._more():
            pass
        if not self._buffer:
            return None
        return (self.line + self._buffer.partition(b"\n")[0]).decode("utf-8", "replace")

    def reached(self, pieces: int) -> bool:
        """Whether so many of the recorded pieces have been printed."""
        ends = self._ends
        while len(ends) < pieces and self._more():
            pass
        return not pieces or ends[-1] - len(self._buffer) >= ends[pieces - 1]

    def digest(self) -> bytes:
        return self._hash.digest()

    def _more(self) -> bool:
        ends = self._ends
        if self._expected is None or len(ends) >= len(self._expected):
            return False
        hidden = self._expected[len(ends)]()
        piece = revealed = _bytes(hidden)
        if self._secrets is not None and b"lockstep-secret" in piece:
            revealed = _bytes(self._secrets.reveal(hidden))
        self._buffer += revealed
        ends.append(len(revealed) + (ends[-1] if ends else 0))
        if revealed is not piece:
            self._hidden.append((len(revealed), ends[-1], piece))
        return True

    def _same_but_unknown(self, raw: bytes) -> bool:
        """Whether this is the next recorded piece with a secret in it whose value was not known."""
        if self._secrets is None or not self._hidden:
            return False
        size, end, text = self._hidden[0]
        if end - size != self._ends[-1] - len(self._buffer) or not self._secrets.same(text, raw):
            return False
        del self._hidden[0]
        self._buffer = self._buffer[size:]
        self.passed = text
        self._hash.update(text)
        return True

    def _recorded(self, raw: bytes) -> bytes:
        """What was just printed, as it was recorded."""
        if not self._hidden:
            return raw
        end = self._ends[-1] - len(self._buffer)  # in bytes of the whole channel
        at = end - len(raw)
        taken: list[bytes] = []
        while self._hidden:
            size, stop, text = self._hidden[0]
            taken.append(raw[: max(0, stop - size - at)])
            if stop > end:
                return b"".join(taken)
            taken.append(text)
            raw, at = raw[max(0, stop - at) :], max(at, stop)
            del self._hidden[0]
        taken.append(raw)
        return b"".join(taken)


class Whole:
    """One channel of all lanes, in the order printed."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16, person=b"lockstep printed")
        self._strands: set[str] = set()
        self.writes = 0

    def write(self, strand: Lane, data: str | bytes) -> None:
        self._hash.update(_bytes(data))
        self._strands.add(strand.name)
        self.writes += 1

    def digest(self, still_open: Collection[str]) -> bytes | None:
        """None where a strand printed that is still open: how much of it is in there is a race."""
        return None if self._strands.intersection(still_open) else self._hash.digest()


class Outlet:
    """Recording: one write at a time on a channel, so that the order stored is the order written."""

    def __init__(self) -> None:
        # Re-entrant: signal handlers and finalizers print in the middle of a write.
        self._lock = _thread.RLock()
        self.last: Lane | None = None
        self._run = 0
        self.changes = 0  # how often it went to another strand

    def enter(self) -> bool:
        return self._lock.acquire(timeout=_PATIENCE)

    def leave(self, written: bool) -> None:
        self._lock.release()

    def wrote(self, strand: Lane) -> tuple[str, int] | None:
        """Counts a write. Returns who wrote before, and how often in a row, where that was another strand."""
        before = None
        if strand is not self.last:
            if self.last is not None:
                before = self.last.name, self._run
                self.changes += 1
            self.last, self._run = strand, 0
        self._run += 1
        return before
