"""What the seams that are put into CrewAI ask, and tell.

The same crew is recorded, replayed and forked by the same seams: only who is asked differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from lockstep.log.model import Value
from lockstep.session.native.calls import Calls
from lockstep_crewai.layout import Moment, Replacement


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks of a crew, agent or flow: the beginning of a turn.

    entry    the method: kickoff, kickoff_async, akickoff, kickoff_for_each, kickoff_for_each_async, akickoff_for_each,
             replay, resume, resume_async
    request  its arguments by name, inert, those left out that were not given: {"inputs": …} of a crew or flow,
             {"messages": …, "response_format": …} of an agent; beside them
             "stream"   True of a crew or flow whose answer is streamed
             "pending"  of a flow that was paused in another process, and is resumed: its state, and what it waits for
             "unmade"   names of arguments that cannot be made again from data, as a native checkpoint's
    """

    entry: str
    request: Mapping[str, Value]


class Told(Protocol):
    """Who hears of what is wrapped. While recording, nothing that these do reaches the program: they raise nothing
    then. Each may be called from any thread, and several at once."""

    def begins(self, asked: Asked, before: Moment) -> None:
        """A turn begins. `before`: step 0 of it, with what it was given."""
        ...

    def step(self, moment: Moment) -> Replacement | None:
        """A task, a method or an agent's answer is done, and nobody has heard of it yet. A replacement is what it comes
        to in its place. In a replay this raises Divergence and Cut."""
        ...

    def counts(self, lane: str, tokens: Value) -> Value:
        """A crew has counted the tokens that it used (`counting`). What is given in their place, None to leave them."""
        ...

    def was_busy(self, lane: str, attempt: int) -> bool:
        """Whether the agent of a lane was at work already at that attempt to set it to work, when it was recorded."""
        ...

    def busy(self, lane: str, attempt: int) -> None:
        """It is now."""
        ...

    def attached(self, lane: str, name: str, about: Value) -> None:
        """Something has been kept elsewhere of the last step in a lane. Nobody tells of it while it is done again."""
        ...

    def ends(self, result: Value) -> None:
        """The turn is over, and came to this: see `canonical.result`."""
        ...

    def fails(self, error: BaseException) -> None:
        """The turn ended by an exception: of the program's, by cancelling, or what a replay stops it with."""
        ...

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong, that the program is not to notice while it is recorded. In a replay it is not
        called identical then."""
        ...


class Seams(msgspec.Struct):
    """Of one wrapped crew, agent or flow. They can be exchanged between its turns.

    calls  who answers the calls of its models, tools and humans, each in its lane
    told   who hears of its steps and turns
    again  whether it is done again, in a replay or fork: what CrewAI keeps of a kickoff is not kept of this one then
    """

    calls: Calls
    told: Told
    again: bool = False
