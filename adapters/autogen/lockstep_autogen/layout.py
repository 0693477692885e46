"""What of a team is in the log, and how it is called there.

A run is one team or agent that was attached, `autogen/<name>`; a turn is one `run`, or what else its user had it do.
Each turn begins with a step of what it was given; each message closes a step. The STEP's name is who spoke, joined by
", "; its body is a record (`lockstep.log.checkpoints`) with these channels

    "messages"   what was said in this step: {"source", "type", …, "inner": [the speaker's own events, …]}
    "selected"   whom the team chose to speak next before that, [] where nobody was asked
    "stop"       why the team stopped here: the text of its reason, else None
    others       the team's state, as `states.channels` has it

and beside them, counted in no digest,

    "was"        {"id", "created_at"} of each message and of what is in it, in order: as they really were
    "consistent" False where the state was not that of a cut
    "halted"     why Lockstep stopped the team here (`stopping`)
    "order"      of those who spoke at once, in what order the team heard them: [[name, how often in a row], …], of an
                 agent's answer `=name`

A turn that Ctrl-C or a model that failed has cut off has no END: it reads as interrupted. One that ended by another
exception has one with that.

What a step's key is, see `lockstep.session.native.steps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from lockstep.log.checkpoints import record
from lockstep.log.model import Value
from lockstep.session.native import steps
from lockstep.session.native.ran import CONSISTENT

# Kinds of effects.
MODEL, TOOL, HUMAN = "model", "tool", "human"

# Sources of steps: what begins a turn, a message, and what a user did to a team between its runs.
INPUT, MESSAGE = "input", "loop"
RESET, LOAD = "reset", "update"
RESTORE = "restore"  # the entry of a turn in which a team was given a recorded state

MESSAGES, SELECTED, STOP = "messages", "selected", "stop"
SAID = (MESSAGES, SELECTED, STOP)  # the channels that are no state
WAS, ORDER, HALTED = "was", "order", "halted"

ANSWER = "="  # before a name in `ORDER`: of its answer, and not of a message on the way to it


class Spoken(msgspec.Struct, frozen=True):
    """One message of a step.

    source   who said it: an agent, a team in a team, or "user"
    message  AutoGen's own, as everybody has it
    inner    what the speaker did on the way to it
    """

    source: str
    message: Any
    inner: Sequence[Any] = ()


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a team at one moment: what a step is made of.

    lane        of the team; `team`: it, or a single agent
    source      INPUT, MESSAGE, RESET or LOAD
    spoken      what was said since the last moment of this team, in the order in which it arrived
    selected    whom the team chose to speak
    stop        why it stops now, "" where it does not
    consistent  whether the team's state is whole: everybody has heard everything, and nobody has been chosen yet
    order       in which the team heard those who spoke at once, pieces of streams included: see `ORDER`
    """

    lane: str
    team: Any
    source: str = MESSAGE
    spoken: tuple[Spoken, ...] = ()
    selected: tuple[str, ...] = ()
    stop: str = ""
    consistent: bool = True
    order: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Who spoke."""
        return ", ".join(dict.fromkeys(each.source for each in self.spoken)) or self.source


def body_of(
    before: Mapping[str, Value] | None, after: Mapping[str, Value], was: Sequence[Value], *, consistent: bool
) -> dict[str, Value]:
    """The record of a step, against the channels of the step before in its lane; whole where there is none."""
    made = record(before, after)
    made[WAS] = [*was]
    if not consistent:
        made[CONSISTENT] = False
    return made


def in_a_row(names: Sequence[str]) -> list[Value]:
    """Names in their order, each once with how often it comes in a row."""
    return [[name, sum(1 for _ in same)] for name, same in groupby(names)]


def one_by_one(told: Value) -> list[str]:
    """The reverse."""
    found: list[str] = []
    for each in told if isinstance(told, list) else ():
        match each:
            case [str(name), int(count)]:
                found += [name] * count
    return found


def key_of(before: bytes, source: str, name: str, body: Mapping[str, Value]) -> bytes:
    """See `lockstep.session.native.steps`: whether it was a cut counts too."""
    return steps.key_of(before, source, name, body, body.get(CONSISTENT, True))
