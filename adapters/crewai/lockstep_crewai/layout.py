"""What of a crew, agent or flow is in the log, and how it is called there.

A run is one object that was wrapped, `crewai/<name>`; a turn is one kickoff of it. Each turn begins with a step of what
it was given; each task of a crew, each method of a flow and the answer of an agent that was kicked off by itself closes
a step. The STEP's lane is that of the crew or flow, its name the rest of the lane in which the task or method ran
(`naming`); its body is a record (`lockstep.log.checkpoints`) with these channels

    "inputs"    of the first step of a turn: what the kickoff was given
    "output"    what the task or method came to: {"raw", "json", "pydantic"} of a task, of a method what it returned
    "agent"     the role of the agent that did the task
    "context"   what the task was told of earlier ones
    "state"     of a flow: its state, without its id
    "error"     in place of an output: what the task or method failed with, in a line
    "paused"    likewise: what a flow waits for a person to say

and beside them, counted in no digest,

    "began"        of one that ran beside others: how many steps of its lane had been done when it began, where that is
                   fewer than come before it
    "beside"       True where another one was running in its lane when it was done. What a flow's state is then, is a
                   race: it is an annotation, and the channel has what it was before
    "edited"       of a fork: what of its output and state somebody gave in its place, see `replaced`
    "annotations"  what else is known of the step: a map of inert data

How many tokens a crew says it has used is a CAUSE event in its lane, with

    "tokens"       what CrewAI counted then

and that an agent was found at work, of which CrewAI has no two at once, is one in the lane of who found it so, with

    "busy"         the number of that attempt in its lane and turn, from 1

A kickoff that Ctrl-C has cut off has no END: it reads as interrupted. One that ended by another exception has one with
that.

What a step's key is, see `lockstep.session.native.steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.log.checkpoints import record
from lockstep.log.model import Value
from lockstep.log.native import LOOP, OWN

TOKENS = "tokens"  # `what` of a CAUSE event, and its body's only entry
BUSY = "busy"  # likewise
CHECKPOINT = "checkpoint"  # the name of an attachment of a step: {"id", "location", "branch"} of a native checkpoint

# Kinds of effects.
MODEL, TOOL, HUMAN = "model", "tool", "human"

# Sources of steps: what begins a turn, and what was done in it.
INPUT, DONE, ANSWERED = "input", OWN, LOOP

# What a step is of.
TASK, METHOD, ANSWER = "task", "method", "answer"

INPUTS, OUTPUT, AGENT, CONTEXT, STATE, ERROR, PAUSED = (
    "inputs", "output", "agent", "context", "state", "error", "paused",
)  # fmt: skip
# In which order a difference in them is told: what was done first, and what it led to last.
CHANNEL_ORDER = (INPUTS, OUTPUT, ERROR, PAUSED, AGENT, CONTEXT, STATE)
ANNOTATIONS, BEGAN, BESIDE, EDITED = "annotations", "began", "beside", "edited"


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a step, before the program goes on from it.

    lane         where it closes: that of the crew or flow, "research"
    name         the rest of the lane in which it ran: "find", "find~2"
    source       INPUT, DONE or, of an agent's answer, ANSWERED
    kind         TASK, METHOD or ANSWER; "" of an input
    channels     as above, inert, with nothing hidden in it
    payload      the object itself: a `TaskOutput`, what a method returned, a `LiteAgentOutput`; None of others
    of           the task, flow or agent
    annotations  likewise inert
    began        how many steps of its lane had been done when it began
    beside       whether another one of its lane is running
    """

    lane: str
    name: str
    source: str = DONE
    kind: str = ""
    channels: Mapping[str, Value] = {}
    payload: Any = None
    of: Any = None
    annotations: Mapping[str, Value] = {}
    began: int = 0
    beside: bool = False

    @property
    def at(self) -> str:
        """The lane in which it ran, in which its calls are."""
        return f"{self.lane}/{self.name}" if self.kind in (TASK, METHOD) else self.lane


class Replacement(msgspec.Struct, frozen=True):
    """What a step is to have come to in place of what it did. `payload`: as `Moment.payload`."""

    payload: Any


def body_of(before: Mapping[str, Value] | None, moment: Moment, number: int) -> dict[str, Value]:
    """The record of a step, against the channels of the step before in its lane; whole where there is none. `number`:
    how many steps of its lane and turn come before it."""
    made = record(before, moment.channels)
    if moment.annotations:
        made[ANNOTATIONS] = dict(moment.annotations)
    if moment.beside:
        made[BESIDE] = True
    if moment.began < number:
        made[BEGAN] = moment.began
    return made


def settled(moment: Moment, before: Mapping[str, Value]) -> Moment:
    """The same, where it is done beside another one: its flow's state is no channel of it."""
    if not moment.beside or STATE not in moment.channels:
        return moment
    channels = {name: value for name, value in moment.channels.items() if name != STATE}
    if STATE in before:
        channels[STATE] = before[STATE]
    annotations = {**moment.annotations, STATE: moment.channels[STATE]}
    return msgspec.structs.replace(moment, channels=channels, annotations=annotations)
