"""What the seams that are put into a team ask, and tell.

The same team is recorded, replayed and forked by the same seams: only who is asked differs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from lockstep.log.model import Value
from lockstep.session.native.calls import Calls
from lockstep_autogen.layout import Moment


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks of a team: the beginning of a turn.

    entry    the method: run, run_stream, on_messages, on_messages_stream, reset, load_state
    request  its arguments, inert: {"task": text, message, list of messages or None, "output_task_messages": bool};
             {"messages": […]} of `on_messages`, {"state": …} of `load_state`
    given    the messages of it, as AutoGen has them
    """

    entry: str
    request: Mapping[str, Value]
    given: tuple[Any, ...] = ()


class Told(Protocol):
    """Who hears of a team. While recording, nothing that these do reaches the program: they raise nothing then."""

    async def begins(self, asked: Asked, before: Moment) -> None:
        """A turn begins. `before`: the team as it is, with what it was given as what was said: step 0 of the turn."""
        ...

    async def cut(self, moment: Moment) -> Any:
        """A message, or those of speakers that spoke at once, have been heard by everybody, and nobody has been chosen
        to speak next. None: it goes on; a `StopMessage` stops the team here, so that its next `run` goes on from here
        as if nothing had been."""
        ...

    async def ends(self, result: Any, last: Moment | None) -> None:
        """The turn is over, and returned this: a `TaskResult`, a `Response`, None. `last`: what was said after the last
        cut, None for nothing."""
        ...

    def fails(self, error: BaseException, last: Moment | None) -> None:
        """The turn ended by an exception: of the program's, by cancelling, or `GeneratorExit` where its stream was read
        no further."""
        ...

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong, that the program is not to notice."""
        ...


class Seams(msgspec.Struct):
    """Of one attached team. They can be exchanged between its turns.

    calls   who answers the calls of its models, tools and humans, each in the lane of its agent
    told    who hears of its messages and turns
    speaks  called with the lane of a team and the name of a participant that is about to say something, which it does
            when this returns: for what has those who speak at once speak in some order. None: each when it likes
    """

    calls: Calls
    told: Told
    speaks: Callable[[str, str], Awaitable[None]] | None = None
