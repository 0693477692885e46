"""What an agent is asked to do in a test: who says what, and which tools it has. Data only.

Every framework has a tool-calling agent, so that is what a scenario describes, from the side of the world: what the
model says each time it is asked. A subject builds its framework's ordinary agent of it, with these tools, against the
model at `Work.url`, and gives it the prompts.
"""

from __future__ import annotations

import msgspec

from lockstep.session.policy import EffectClass


class Tool(msgspec.Struct, frozen=True):
    """A tool of one argument, `argument`, a text. Its body is `outside.use` or `outside.ause`.

    effect  its class, to be declared in the framework's own way
    fails   so many of its calls raise `outside.ToolFailed`, the first ones of an act
    meets   so many of its calls wait for each other, and the last to come is answered first
    delay   seconds that a call takes
    gives   what it returns: a `text`, or an `object` that is no data (`outside.Opaque`)
    kills   its call kills the process, as kill -9 does
    """

    name: str
    effect: EffectClass = "read"
    fails: int = 0
    meets: int = 1
    delay: float = 0.0
    gives: str = "text"
    kills: bool = False


class Call(msgspec.Struct, frozen=True):
    """A tool call that the model asks for. `{last}` in the argument stands for the last answer it was told."""

    tool: str
    argument: str


class Says(msgspec.Struct, frozen=True):
    """What the model says at one of its turns: tool calls, to be made concurrently where there are several, or, without
    any, its last word to a prompt, in which it repeats what it was told.

    fails   so many requests for it are answered with status 500, the first ones of an act. The agent tries again
    status  it is answered with this error instead, however often it is asked
    cut     its connection breaks after so many events of the stream
    """

    calls: tuple[Call, ...] = ()
    fails: int = 0
    status: int = 200
    cut: int | None = None


class Scenario(msgspec.Struct, frozen=True):
    """One agent and what happens to it.

    says     the model's turns, in order, over all prompts
    prompts  what the user says: each is a turn of the conversation, and the agent remembers those before
    streams  the agent has the model's answers streamed
    ending   what the agent's own code adds to the model's last word
    key      the key that its model client sends
    """

    name: str
    says: tuple[Says, ...]
    tools: tuple[Tool, ...] = ()
    prompts: tuple[str, ...] = ("How do things stand?",)
    system: str = "You look things up and tell what you found."
    streams: bool = False
    ending: str = ""
    key: str = "conformance-key"

    def tool(self, name: str) -> Tool:
        """The tool of that name."""
        return next(tool for tool in self.tools if tool.name == name)


def change(scenario: Scenario, **fields: object) -> Scenario:
    """The same scenario but for some fields: what a program is after somebody has worked on it."""
    return msgspec.structs.replace(scenario, **fields)
