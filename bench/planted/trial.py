"""One trial: a run with a fault in it, and what searches of it answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log2
from typing import Any, Protocol

import msgspec
from bench.planted import addresses, faults
from bench.planted.faults import Case
from bench.planted.provider import Dice, Provider

import lockstep
from lockstep.debugger import verdict as verdicts
from lockstep.debugger.belief import RESCUE, SPOIL, Rate
from lockstep.debugger.search import SKIP
from lockstep.debugger.verdict import Verdict
from lockstep.debugger.view import View
from lockstep.log.store import open_store

CONFIDENCE = 0.95
ONCE, BUDGET, OWN = "once", "budget", "own"


class Agent(Protocol):
    """An agent in a framework, and how it is searched."""

    name: str
    provider: Provider

    def places(self, steps: int, kind: str) -> Sequence[int]:
        """The steps that can have such a fault."""
        ...

    def case(self, steps: int, kind: str, at: int, seed: str) -> Case: ...

    def record(self, case: Case, store: str) -> str:
        """The bad run's address."""
        ...

    def target(self, store: str) -> Any:
        """What a bisect is given to run."""
        ...

    def total(self, view: View) -> int | None:
        """The control total that a run came to, None where it broke down."""
        ...


class Trial(msgspec.Struct, frozen=True):
    """What one search of one bad run answered.

    number   of the trial in its cell: it decides kind, place and seed
    at       the planted step; `answer` is its address in the record
    search   once: each probe is taken at its word. budget: `confidence=0.95` with 4 log2 n probes. own: with bisect's
             own budget
    named    the step that the search names, of one that is not sure the likeliest; "" if none
    stated   how likely it says that is; `sure`: it reached the confidence asked for
    broken   probes that could not be judged
    live     answers that were asked for anew
    seconds  of the search; `recording`: of the bad run
    alone    the step has no other answer
    drawn    the rates of rescues and spoiled probes were drawn for it from what the search expects
    """

    adapter: str
    steps: int
    number: int
    kind: str
    at: int
    answer: str
    rescue: float
    spoil: float
    breaks: float
    search: str
    verdict: str
    named: str
    stated: float
    sure: bool
    probes: int
    broken: int
    live: int
    seconds: float
    recording: float
    alone: bool = False
    drawn: bool = False

    @property
    def right(self) -> bool:
        """Whether the planted answer is named, and nothing else."""
        return self.named == self.answer or (self.alone and self.step_right)

    @property
    def step_right(self) -> bool:
        """Whether its step is."""
        return self.named.partition(".")[0] == self.answer.partition(".")[0]

    @property
    def held(self) -> bool:
        """Whether what was named is right, be it an answer or a step."""
        return self.right if "." in self.named else self.step_right


class Planted(msgspec.Struct, frozen=True):
    """A bad run that was recorded."""

    case: Case
    number: int
    run: str
    answer: str
    alone: bool
    store: str
    seconds: float


def planted(agent: Agent, steps: int, number: int, store: str) -> Planted:
    """Records the bad run of that number. Kinds take turns, and places are drawn."""
    kind = faults.kind_of(number)
    chance = random.Random(f"{agent.name} {steps} {number}")
    at = chance.choice(agent.places(steps, kind))
    case = agent.case(steps, kind, at, f"{steps} {number}")
    began = time.perf_counter()
    run = agent.record(case, store)
    seconds = time.perf_counter() - began
    answer = addresses.holding(run, store, agent.provider.planted)
    return Planted(case, number, run, answer, addresses.is_alone(run, store, answer), store, seconds)


def each_kind(agent: Agent, steps: int, folder: str) -> Iterator[Trial]:
    """A trial of each kind of fault: one that never ends well, with each probe taken at its word."""
    for number in range(len(faults.KINDS)):
        yield from searched(agent, planted(agent, steps, number, f"{folder}/{number}.db"), Dice(), [ONCE])


def searched(agent: Agent, bad: Planted, dice: Dice, searches: Sequence[str]) -> Iterator[Trial]:
    """Searches it in each of these ways. `own` goes on where `budget` came to its end: it would make the same probes up
    to there, and the very same ones where that was sure. No other search finds a probe of another."""
    before: Trial | None = None
    for search in searches:
        goes_on = search == OWN and before is not None and before.search == BUDGET
        if goes_on and before is not None and (before.sure or before.probes < budget(bad.case.steps)):
            yield msgspec.structs.replace(before, search=OWN)
            continue
        if not goes_on:
            clear(bad)
        began = time.perf_counter()
        verdict = _verdict(agent, bad, dice, search)
        spent = time.perf_counter() - began + (before.seconds if goes_on and before is not None else 0.0)
        before = _told(agent, bad, dice, search, verdict, spent)
        yield before
    clear(bad)


def drawn(seed: str) -> Dice:
    """Rates as the search expects them."""
    chance = random.Random(seed)

    def rate(of: Rate) -> float:
        return 0.0 if chance.random() < of.never else chance.betavariate(of.often, of.seldom)

    return Dice(rate(RESCUE), rate(SPOIL))


def budget(steps: int) -> int:
    """Probes that a search may make which is to be compared."""
    return floor(4 * log2(steps))


def enough(steps: int) -> int:
    """Probes that a search needs at most where nothing is ever rescued, and each is taken at its word."""
    return ceil(log2(steps)) + 1


def clear(bad: Planted) -> None:
    """No probe of it is kept."""
    with open_store(bad.store) as store:
        for branch in store.run(bad.run).branches:
            if branch.name.startswith("bisect-"):
                store.delete_branch(bad.run, branch.name)


def _verdict(agent: Agent, bad: Planted, dice: Dice, search: str) -> Verdict:
    options: dict[str, Any] = {}
    if search != ONCE:
        options = {"confidence": CONFIDENCE, "max_probes": budget(bad.case.steps) if search == BUDGET else None}
    judge = _judging(agent, bad.case, dice, f"{bad.case.seed} {dice.rescue} {dice.spoil} {dice.breaks}")
    return lockstep.bisect(bad.run, agent.target(bad.store), bad=judge, store=bad.store, **options)


def _judging(agent: Agent, case: Case, dice: Dice, seed: str) -> Callable[[View], bool]:
    """The predicate. Each time that it was asked another probe comes, with dice of its own; it is asked about the
    recording first."""
    asked = 0
    right = case.total(case.steps)

    def bad(view: View) -> bool:
        nonlocal asked
        total = agent.total(view)
        asked += 1
        agent.provider.probe(dice, f"{seed} {asked}")
        return total != right  # also of one that broke down: that this is no verdict is for bisect to know

    return bad


def _told(agent: Agent, bad: Planted, dice: Dice, search: str, verdict: Verdict, seconds: float) -> Trial:
    return Trial(
        agent.name, bad.case.steps, bad.number, bad.case.kind, bad.case.at, bad.answer, dice.rescue, dice.spoil,
        dice.breaks, search, verdict.verdict, _named(verdict), verdict.confidence,
        verdict.verdict == verdicts.CULPRIT and verdict.confidence >= CONFIDENCE, verdict.probes,
        len(verdict.judged(SKIP)), sum(probe.asked for probe in verdict.tried), seconds, bad.seconds, bad.alone,
    )  # fmt: skip


def _named(verdict: Verdict) -> str:
    if verdict.verdict == verdicts.CULPRIT:
        return verdict.effect or str(verdict.step)
    return verdict.likeliest
