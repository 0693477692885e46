"""One call of a leaf, from what it asks to what its caller gets: it runs for real and is recorded, or is served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import msgspec

from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.session.call import failed
from lockstep.session.native import answers
from lockstep.session.native.answers import Question, Running
from lockstep_crewai.events import Listener, listening
from lockstep_crewai.places import Place

# Kind and name of the call whose own code is running, both "" outside of one.
inside: ContextVar[tuple[str, str]] = ContextVar("lockstep_crewai_inside", default=("", ""))


@contextmanager
def running(call: Any, kind: str, heard: Listener) -> Iterator[None]:
    """What runs in this block belongs to a call that is recorded, and is listened to."""
    token = inside.set((kind, str(getattr(call, "name", ""))))
    try:
        with Running(call), listening(heard):
            yield
    finally:
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            inside.reset(token)


class Leaf(msgspec.Struct, frozen=True):
    """What is done with a call of one kind.

    keep    makes data of what the caller gets; `make` the reverse
    serves  called before an answer is handed out: what happens here although nothing runs
    tell    called with each piece of a call that is served
    """

    keep: Callable[[Any], Value] = snapshot.to_value
    make: Callable[[Value], Any] = snapshot.from_value
    serves: Callable[[], object] = lambda: None
    tell: Callable[[Value], object] = lambda piece: None


def outside(
    place: Place, kind: str, make: Callable[[], Question], really: Callable[[], Any], leaf: Leaf, heard: Any = Listener
) -> Any:
    """A call of something that is not of the agents. `really` runs it; `heard` makes of a call what listens to it."""
    call = place.asked(kind, make)
    if call is None:
        return really()
    if call.held:
        call.ready()
    if not call.live:
        leaf.serves()
        value: Value = None
        for piece in answers.took(call):
            value = piece.value
            if piece.status is None:
                leaf.tell(value)
        return answers.made(call, leaf.make, value, framework="CrewAI")
    try:
        with running(call, kind, heard(call)):
            result = really()
    except BaseException as error:
        failed(call, error)
        raise
    call.end(Status.OK, kept(place, f"{kind} {getattr(call, 'name', '')}", result, leaf.keep))
    return result


async def aoutside(
    place: Place,
    kind: str,
    make: Callable[[], Question],
    really: Callable[[], Awaitable[Any]],
    leaf: Leaf,
    heard: Any = Listener,
) -> Any:
    """The same for a coroutine."""
    call = place.asked(kind, make)
    if call is None:
        return await really()
    if call.held:
        await call.aready()
    if not call.live:
        leaf.serves()
        value: Value = None
        async for piece in answers.taken(call):
            value = piece.value
            if piece.status is None:
                leaf.tell(value)
        return answers.made(call, leaf.make, value, framework="CrewAI")
    try:
        with running(call, kind, heard(call)):
            result = await really()
    except BaseException as error:
        failed(call, error)
        raise
    call.end(Status.OK, kept(place, f"{kind} {getattr(call, 'name', '')}", result, leaf.keep))
    return result


def kept(place: Place, name: str, result: Any, keep: Callable[[Any], Value]) -> Value:
    """What of a result is recorded."""
    try:
        return keep(result)
    except Exception as error:
        # The program has its result; only the recording is the poorer, and says so.
        place.fault(f"result of {name}", error)
        return answers.unstorable(error)
