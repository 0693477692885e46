"""Who answers the calls of a native run, as an adapter sees it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from lockstep.session.call import Call


class Calls(Protocol):
    """`Journal` and `Memory` record, `Server` serves, `Forking` does both. Usable from any thread and loop.

    A call goes as in `lockstep.session.call`; whoever begins it need not know which kind it is:

        call = calls.call("main/plan", "model")
        call.ask("gpt-4o", request, key)          # Server: may raise Divergence or Cut
        if call.held:
            call.ready()                          # or: await call.aready(); Forking: may raise Refusal, Divergence
        if call.live:
            with call.inside():
                answer = run()
            call.end("ok", value)                 # `call.part(chunk)` before it, for a stream
        else:
            piece = call.take()                   # or: await call.atake()
    """

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """Begins a call in this lane, of a kind such as "model" or "tool". `within`: the live call whose own code
        makes this one, which is then shown inside it and never matched alone. Raises what is latched: Divergence,
        Cut or Refusal."""
        ...


class Strand:
    """A lane, as the calls of a session know theirs: its name is all that a native run has of it.

    state  what is recorded of it (`Server`, `Forking`)
    """

    __slots__ = ("name", "state")

    reads: ClassVar[dict[str, int]] = {}  # no taps, no reads

    def __init__(self, name: str, state: Any = None) -> None:
        self.name = name
        self.state = state

    @property
    def strand(self) -> Strand:
        return self


class Uncounted:
    """In the place of a list of what was handed out, where nobody asks for it: a native run has no end of its own,
    and its journal may be open for months."""

    __slots__ = ()

    def append(self, handed: Any) -> None:
        """Forgets it."""


UNCOUNTED = Uncounted()
