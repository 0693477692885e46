"""One effect, as the taps and adapters that intercept it see it. The same object records and replays.

    call = session.open("http")                    # in the strand that makes the call
    call.ask(name, request, key)                   # decides; may raise Divergence or Cut
    if call.live:
        with call.inside():                        # the client's own work belongs to the effect
            answer = original(...)
        call.part(head)                            # each piece, at the moment the program gets it
        call.end("ok")                             # or "error" with an exception, "closed", "cancelled"
    else:
        piece = call.take()                        # or: await call.atake()

`open` and `ask` are apart because a streamed request body is only known after it was sent: open
before the client starts, ask when the body is complete. Everything raised by our own recording is
kept from the program (fail open); Divergence and Cut are meant for it.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from lockstep.log.model import Status, Value


class Piece(msgspec.Struct, frozen=True):
    """What `take` hands out: a part of the outcome, or its end.

    status None: `value` is a part. OK: the end (`value` is the effect's value, None after parts).
    ERROR: `value` is the encoded exception. CLOSED: the recorded program read no further.
    CANCELLED is never handed out: `atake` raises CancelledError at the recorded place.
    """

    value: Value
    status: Status | None = None


class Inside(Protocol):
    """What `Call.inside` returns: a plain, re-enterable context manager."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...


class Call(Protocol):
    """The surface that taps use; `lockstep.session.effects` has the two implementations."""

    live: bool  # known from `open` on
    nested: bool  # begun inside another effect: recorded for show, never matched alone

    def ask(self, name: str, request: Value, key: Value, kind: str | None = None) -> None:
        """States the request, once. `key` is what must match (a subset of `request`); `kind` replaces
        the one given to `open`. Replay: raises Divergence where the record has no such call here."""
        ...

    def inside(self) -> Inside:
        """While recording: what runs in this block belongs to the effect. Around every await or call
        of the real client, and only that."""
        ...

    def program(self) -> Inside:
        """The reverse, in `inside`: around the program's own code that the client calls back (a
        generator body, a hook)."""
        ...

    def part(self, value: Value) -> None:
        """Recording: a piece reached the program now."""
        ...

    def end(self, status: str, value: Any = None) -> None:
        """Recording: the effect ended; for "error" `value` is the exception. Later calls are ignored,
        so a `finally` may say "closed" after everything. Replay: says that the program closed it."""
        ...

    def take(self) -> Piece:
        """Replay: blocks until the gate releases the next piece."""
        ...

    async def atake(self) -> Piece:
        """Replay, asyncio: suspends where the recording suspended, and resumes at the same moment."""
        ...
