"""One effect, as the taps and adapters that intercept it see it. The same object records and replays.

    call = session.open("http")                    # in the strand that makes the call
    call.ask(name, request, key)                   # states it; may raise Divergence or Cut
    if call.held:                                  # a fork: `live` is only known from here on
        call.ready()                               # or: await call.aready(); may raise Refusal too
    if call.live:
        with call.inside():                        # the client's own work belongs to the effect
            answer = original(...)
        call.part(head)                            # each piece, at the moment the program gets it
        call.end("ok")                             # or "error" with an exception, "closed", "cancelled"
    else:
        piece = call.take()                        # or: await call.atake()

`open` and `ask` are apart because a streamed request body is only known after it was sent: open
before the client starts, ask when the body is complete. Everything raised by our own recording is
kept from the program (fail open); Divergence, Cut and Refusal are meant for it.

Held calls
    A session that serves first and runs for real later (a fork) cannot say at `open` which it will be:
    that hangs on the whole request and on whether the served part is over. Its calls have `held` True.
    The tap then does what it does in a replay (collects the request, sends nothing, starts nothing),
    asks, and calls `ready` before it does anything else with the call. After that `live` is final:

    False   the tap goes on as in a replay: `take` or `atake`, piece by piece.
    True    the tap sends for real what it held back, inside `inside()`, exactly as the client would
            have without us, and records the answer: `part`, `end`. A body that could be drawn only
            once has been drawn by now, and is given on.

    What `ready` and `aready` raise is the end of the call, which the session has noted by then: the tap
    lets it through as it is, and whatever it still says of the call is ignored. Between `ask` and `ready`
    nothing but `end` may be called (a program that gives up).
    A call opened inside another one that runs live is not held: the policy was asked for the outer one.

    Some taps look at more than is below, so every kind has it: `session`, `lane`, `name`, `pos` (0: not
    asked yet), `kind`, and where it is served `recorded` (None: nothing is known of this call) and `hand`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from lockstep.log.model import Status, Value
from lockstep.session.policy import Declared


class Piece(msgspec.Struct, frozen=True):
    """What `take` hands out: a part of the outcome, or its end.

    status None: `value` is a part. OK: the end (`value` is the effect's value, None after parts).
    ERROR: `value` is the encoded exception. CLOSED: the recorded program read no further.
    CANCELLED is never handed out: `atake` raises CancelledError at the recorded place.
    """

    value: Value
    status: Status | None = None


class Asked(msgspec.Struct, frozen=True):
    """What `Call.ask` wants to know."""

    name: str
    kind: str
    request: Value
    key: Value


def status_of(error: BaseException) -> Status:
    """How a call ended that raised this. That its task was cancelled, or dropped while it waited, is the program's own
    doing, and no failure of the call."""
    asyncio = sys.modules.get("asyncio.exceptions")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return Status.CANCELLED
    return Status.CLOSED if isinstance(error, GeneratorExit) else Status.ERROR


def failed(call: Call, error: BaseException) -> None:
    """Recording: ends a call by what it raised."""
    status = status_of(error)
    call.end(status, None if status is Status.CLOSED else error)


class Inside(Protocol):
    """What `Call.inside` returns: a plain, re-enterable context manager."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...


class Call(Protocol):
    """The surface that taps use; `lockstep.session.effects`, `served` and `forked` implement it."""

    live: bool  # from `open` on; if held, from `ready` on and False before
    held: bool  # from `open` on: nothing may be sent or started before `ready`
    nested: bool  # begun inside another effect: recorded for show, never matched alone

    def ask(
        self, name: str, request: Value, key: Value, kind: str | None = None, declared: Declared | None = None
    ) -> None:  # fmt: skip
        """States the request, once. `key` is what must match (a subset of `request`); `kind` replaces
        the one given to `open`; `declared` is what the program says of the call's class, see
        `lockstep.tools.declared`. Replay: raises Divergence where the record has no such call here."""
        ...

    def ready(self) -> None:
        """Decides whether the call is live. Held: blocks until the served part is over, where the call is not
        in it; raises Divergence, Cut or Refusal. Else: nothing, at no cost."""
        ...

    async def aready(self) -> None:
        """The same for tasks: suspends as `atake` does, and is cancelled like it. Outside of an asyncio loop it
        blocks."""
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
        """Recording: a piece reached the program now. Of a `functools.partial` it is what that makes, on the
        writer's thread: of nothing that could have changed by then."""
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


class LiveCall(Call, Protocol):
    """A call that is live from `open` on."""

    def ask_later(self, make: Callable[[bytes], Asked], body: bytes) -> None:
        """As `ask`, where describing the request takes a while. `make(body)` is called on the writer's thread, so of
        nothing that could have changed by then."""
        ...
