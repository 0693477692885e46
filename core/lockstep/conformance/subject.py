"""What an adapter gives the tests: a subject that builds agents of scenarios and runs them in its framework."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import msgspec

from lockstep.conformance.scenario import Scenario
from lockstep.errors import Difference
from lockstep.log.model import Value


class Mode(msgspec.Struct, frozen=True):
    """One way of the framework to run an agent; everything is tried in each.

    asynchronous  whether the agent runs on an event loop; where all of them do, whether its tools are coroutines
    """

    name: str
    asynchronous: bool


class Work(msgspec.Struct, frozen=True):
    """An agent to run.

    url    where the world is: the model at `{url}/v1` (OpenAI's wire formats), the tools by `outside.use`
    store  path of the store to record into and to replay from
    """

    scenario: Scenario
    mode: Mode
    url: str
    store: str


class Done(msgspec.Struct, frozen=True):
    """How an agent's run went, as its user saw it.

    outputs     the agent's last word to each prompt
    error       what it raised, as "Type: message"; "" if nothing
    pieces      of a streamed answer: its texts, as they came
    run         recording and fork: the address of the run or branch, as `lockstep log` takes it
    state       fork: complete, failed, refused, diverged or interrupted
    identical   replay: the verdict
    cut         replay: stopped at the end of an interrupted recording
    difference  replay: the first difference; fork: of the served part
    faults      recording: Lockstep's own errors, in words
    refused     fork: the calls that were refused, in words
    """

    outputs: tuple[str, ...] = ()
    error: str = ""
    pieces: tuple[str, ...] = ()
    run: str = ""
    state: str = ""
    identical: bool = False
    cut: bool = False
    difference: Difference | None = None
    faults: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """What bisect answered: as `lockstep.bisect` does."""

    verdict: str
    step: int | None
    effect: str | None
    probes: int


class Subject(Protocol):
    """An adapter under test. What its methods run is Lockstep's ordinary way for this framework, as its guide shows it:
    the tests judge by what the store holds, by what the world was asked, and by what the agent's user got.

    modes        ways to run an agent, at least one
    unsupported  capabilities that the framework cannot have, with the reason: reported, never passed over
    hooks        the adapter's own recording hooks, as `module:Class.function`: each is made to fail in turn
    core_hooks   optional: those of the core's that it records by, where they are not a session's
    relied       optional: the hooks that state goes through which the framework relies on: a fault there is told the
                 agent, with its code
    drops_text   optional: whether the framework drops what a model says beside the tool calls that it wants, so that
                 neither the agent nor a record has it
    """

    @property
    def modes(self) -> tuple[Mode, ...]: ...

    @property
    def unsupported(self) -> Mapping[str, str]: ...

    @property
    def hooks(self) -> tuple[str, ...]: ...

    def run(self, work: Work) -> Done:
        """Without Lockstep. Exceptions of the agent are in `error`, here and below."""
        ...

    def record(self, work: Work) -> Done: ...

    def replay(self, work: Work, run: str) -> Done: ...

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        """A refused call is no exception here: `state` and `refused` tell it."""
        ...

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        """`bad` judges the agent's last output."""
        ...
