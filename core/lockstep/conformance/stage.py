"""Where a capability is tried: a subject in one mode, a world, a store, and what the tests ask of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lockstep.conformance import breaking
from lockstep.conformance.scenario import Scenario
from lockstep.conformance.subject import Done, Found, Mode, Subject, Work
from lockstep.conformance.world import Seen, World
from lockstep.debugger import listing
from lockstep.debugger.listing import EffectRow, Log, Shown
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve


class Failed(Exception):
    """The adapter does not do what the capability is about; the message says what was expected and what came."""


class Took(msgspec.Struct, frozen=True):
    """What one act came to: for its user, and for the world."""

    done: Done
    seen: tuple[Seen, ...]

    @property
    def output(self) -> str:
        """The last word of the agent."""
        return self.done.outputs[-1] if self.done.outputs else ""


class Stage:
    """One capability in one mode. `directory` is its own, and gone afterwards."""

    def __init__(self, subject: Subject, reference: str, mode: Mode, world: World, directory: str) -> None:
        self.subject = subject
        self.reference = reference
        self.mode = mode
        self.world = world
        self.store = os.path.join(directory, "store.db")
        self.directory = directory

    # What is tried.

    def plain(self, scenario: Scenario, *, same: bool = False) -> Took:
        """Runs the agent without Lockstep."""
        return self._act(scenario, self.subject.run, same=same)

    def record(self, scenario: Scenario, *, same: bool = False, poisoned: int = 0) -> Took:
        """Records it. The world must have been reached: what is recorded is a run, and no other record's replay."""
        took = self._act(scenario, self.subject.record, same=same, poisoned=poisoned)
        self.expect(bool(took.seen), "the recorded agent asked nobody anything")
        return took

    def record_killed(self, scenario: Scenario) -> str:
        """Records it in a process of its own, which a tool kills. Gives the run's address."""
        work = self._work(scenario)
        job = os.path.join(self.directory, "job.json")
        with open(job, "wb") as file:
            file.write(msgspec.json.encode((self.reference, work)))
        self.world.begin(scenario)
        ended = subprocess.run(
            [sys.executable, "-m", "lockstep.conformance.child", job], capture_output=True, text=True, check=False
        )
        self.expect(ended.returncode < 0, f"a tool should have killed the agent, and it ended well: {ended.stderr}")
        self.expect(os.path.exists(self.store), f"nothing was left of the recording: {ended.stderr}")
        with open_store(self.store) as store:
            names = store.names()
        self.expect(bool(names), f"no run was left of the recording: {ended.stderr}")
        return names[0]

    def replay(self, scenario: Scenario, run: str) -> Took:
        return self._act(scenario, lambda work: self.subject.replay(work, run))

    def fork(
        self, scenario: Scenario, address: str, *, edits: Mapping[str, Value] | None = None, live: Collection[str] = ()
    ) -> Took:
        return self._act(scenario, lambda work: self.subject.fork(work, address, edits or {}, live))

    def bisect(self, scenario: Scenario, run: str, bad: Callable[[str], bool]) -> Found:
        self.world.begin(scenario)
        return self.subject.bisect(self._work(scenario), run, bad)

    @contextlib.contextmanager
    def broken(self, hook: str) -> Iterator[None]:
        """Within the block a recording hook raises, from the moment on at which the agent has asked its first question:
        before that a user is told of what goes wrong."""
        before = len(self.world.seen)
        with breaking.broken(hook, lambda: len(self.world.seen) > before):
            yield

    # What is looked at.

    def log(self, run: str) -> Log:
        with open_store(self.store) as store:
            place = resolve(store, run)
            return listing.log(run, place.timeline)

    def show(self, address: str) -> Shown:
        with open_store(self.store) as store:
            return listing.show(resolve(store, address))

    def effects(self, run: str) -> list[EffectRow]:
        """All outermost effects of a run."""
        return [effect for step in self.log(run).steps for effect in step.effects]

    def holders(self, run: str, answers: Sequence[Seen]) -> dict[str, EffectRow]:
        """By token: the one effect whose outcome has the answer as it was given, not as the model repeated it."""
        effects = self.effects(run)
        outcomes = [text(self.show(effect.address).outcome) for effect in effects]
        found: dict[str, EffectRow] = {}
        for seen in answers:
            if not seen.answer:
                continue
            holding = [effect for effect, outcome in zip(effects, outcomes, strict=True) if gives(outcome, seen.answer)]
            self.expect(
                len(holding) == 1,
                f"the answer {seen.answer} of {seen.kind} {seen.name} is the outcome of {len(holding)} effects, not of "
                f"one. Effects: {[effect.address for effect in effects]}",
            )
            found[seen.answer] = holding[0]
        return found

    def expect(self, holds: object, message: str) -> None:
        """Raises Failed where something does not hold."""
        if not holds:
            raise Failed(message)

    def expect_identical(self, recorded: Took, replayed: Took) -> None:
        """A replay that was the same run, to Lockstep's verdict and to the agent's user."""
        told = replayed.done.difference
        why = f": {told.code} {told.reason} (step {told.step}, {told.path})" if told is not None else ""
        self.expect(replayed.done.identical, f"the replay is not identical{why}")
        for field in ("outputs", "error", "pieces"):
            then, now = getattr(recorded.done, field), getattr(replayed.done, field)
            self.expect(then == now, f"the replay is called identical with other {field}: {then} and {now}")

    def _work(self, scenario: Scenario) -> Work:
        return Work(scenario, self.mode, self.world.url, self.store)

    def _act(self, scenario: Scenario, act: Callable[[Work], Done], **options: Any) -> Took:
        before = len(self.world.seen)
        self.world.begin(scenario, **options)
        done = act(self._work(scenario))
        return Took(done, tuple(self.world.seen[before:]))


def text(value: Any) -> str:
    """A value of the record as one text to look for tokens in."""
    return msgspec.json.encode(value, enc_hook=repr).decode()


def gives(outcome: str, token: str) -> bool:
    """Whether an outcome has a token of its own, and does not just repeat it."""
    return any(outcome[at - 1 : at] != "~" for at in range(len(outcome)) if outcome.startswith(token, at))


def number(address: str) -> int:
    """The step of an effect's address."""
    return int(address.rpartition(":")[2].partition(".")[0])


def path(address: str) -> str:
    """The step and effect of an address, without its run: 7.1."""
    return address.rpartition(":")[2]
