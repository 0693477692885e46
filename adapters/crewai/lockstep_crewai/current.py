"""Whose code is running: which turn of which wrapped object, and in which lane of it.

    place = current.place()                       # None: nobody is asked, the original runs as if we were not there
    with current.within(naming.tool_lane(place.lane, 0)): …         # a strand of its own, beside others

All of it is one ContextVar. CrewAI copies the context wherever it goes on in another thread or task, with one
exception: `CrewStructuredTool.ainvoke` runs a plain function without. So that is wrapped at `ainvoke` itself, where the
context is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

from lockstep_crewai.places import Place

if TYPE_CHECKING:
    from lockstep_crewai.wrapping import Root


class Noted:
    """Of a step that is running: whether it has been told of. `began`: see `Moment`."""

    __slots__ = ("began", "told")

    def __init__(self, began: int) -> None:
        self.began = began
        self.told = False


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Inside of a turn.

    root    what is wrapped
    lane    in which calls are made: "research/find"
    steps   that of the crew or flow that is running, in which steps close: "research"
    of      `id` of the crew, flow or agent that is running
    each    of a `kickoff_for_each` that is on: the numbers of its inputs, which copies of the crew are made for
    number  of such an input, from 1
    noted   of a task or method that is running: whether its step has been told of
    restores  whether CrewAI goes on with another one of its class in its place, made of a native checkpoint
    """

    root: Root
    lane: str
    steps: str
    of: int
    each: Iterator[int] | None = None
    number: int = 0
    noted: Noted | None = None
    restores: bool = False


scope: ContextVar[Scope | None] = ContextVar("lockstep_crewai_scope", default=None)


def place() -> Place | None:
    """Who is asked by the code that runs now. None outside of a wrapped kickoff: call the original at once."""
    found = scope.get()
    return Place(found.root, found.lane) if found is not None else None


@contextmanager
def at(here: Scope | None) -> Iterator[None]:
    """What runs in this block is there."""
    token = scope.set(here)
    try:
        yield
    finally:
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            scope.reset(token)


@contextmanager
def within(lane: str) -> Iterator[None]:
    """What runs in this block makes its calls in this lane, which is a part of the one that it is in. For whatever runs
    beside something else. Outside of a wrapped kickoff: nothing."""
    found = scope.get()
    if found is None:
        yield
        return
    with at(msgspec.structs.replace(found, lane=lane)):
        yield
