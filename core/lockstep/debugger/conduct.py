"""Several probes under way at once: what is begun, what has become needless, and what the search is told. No I/O.

A search yields the probes that it wants to be under way, the one that it needs most first, and is sent the first of
them that has ended. It yields anew then, and what is under way and not wanted any more is needless: it is ended. So one
that yields a single probe each time is a search by single probes, in that order.

    conduct = Conduct(search, series, predicate, jobs)
    conduct.begin()
    while conduct.found is None:
        for flight in conduct.needless(): ...                   # have it ended
        for flight in conduct.due(): ...                        # have it made
        conduct.ended(number, made)                             # the one that ended first
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

import msgspec

from lockstep.debugger.cuts import Cut
from lockstep.debugger.orders import Order
from lockstep.debugger.predicate import Predicate
from lockstep.debugger.probes import Made, Series
from lockstep.debugger.search import SKIP
from lockstep.debugger.verdict import Probe, Told, Verdict, Wanted
from lockstep.errors import EditError


class Flight(msgspec.Struct, frozen=True):
    """A probe that is under way. `number` tells it from others; `nth`: which of its cut's it is, all of which have
    one `name`."""

    number: int
    wanted: Wanted
    nth: int
    name: str
    branch: str

    @property
    def cut(self) -> Cut:
        return self.wanted.cut


class Needless:
    """What came of a probe that was ended: nothing."""


NEEDLESS = Needless()

# What came of a probe; an error where no edit can make it.
type Outcome = Made | EditError | Needless


class Crew(Protocol):
    """Makes probes, up to `jobs` at once."""

    @property
    def jobs(self) -> int: ...

    def begin(self, number: int, cut: Cut, branch: str) -> None:
        """Has a probe made, anew, on a branch of that name."""
        ...

    def end(self, number: int) -> None:
        """Has one ended that is of no use any more. What came of it is told by `next` like that of others."""
        ...

    def next(self) -> tuple[int, Outcome]:
        """Waits for the first that has ended, and says what came of it. Raises what stops the search."""
        ...


class Maker(Protocol):
    """Makes the probes that orders ask for, several at once, in other processes or on other machines."""

    def begin(self, number: int, order: Order) -> None: ...

    def end(self, number: int) -> None: ...

    def next(self) -> tuple[int, Made | EditError | None]:
        """As `Crew.next`; None of one that was ended, of which what it did is left as a branch that was interrupted."""
        ...


class Ordered:
    """A `Crew` by orders. `order`: what all of them have in common."""

    def __init__(self, maker: Maker, order: Order, jobs: int) -> None:
        self.jobs = jobs
        self._maker = maker
        self._order = order

    def begin(self, number: int, cut: Cut, branch: str) -> None:
        self._maker.begin(number, msgspec.structs.replace(self._order, cut=cut, branch=branch))

    def end(self, number: int) -> None:
        self._maker.end(number)

    def next(self) -> tuple[int, Outcome]:
        number, made = self._maker.next()
        return number, NEEDLESS if made is None else made


class Conduct:
    """The conduct of one bisect.

    tried    probes as they were judged
    dropped  how many were ended since they had become needless; `dropped_calls`: that had happened in them
    found    the verdict, None while the search goes on
    """

    def __init__(
        self, search: Generator[Sequence[Wanted], Told, Verdict], run: str, series: Series, predicate: Predicate,
        jobs: int, tried: list[Probe],
    ) -> None:  # fmt: skip
        self._search = search
        self._run = run
        self._series = series
        self._predicate = predicate
        self._jobs = jobs
        self._wanted: Sequence[Wanted] = ()
        self._flying: dict[int, Flight] = {}
        self._needless: set[int] = set()
        self._begun = 0
        self.tried = tried
        self.dropped = 0
        self.dropped_calls = 0
        self.found: Verdict | None = None

    def begin(self) -> None:
        self._ask(None)

    @property
    def wanted(self) -> Wanted:
        """What the search needs most."""
        return self._wanted[0]

    @property
    def flying(self) -> Mapping[int, Flight]:
        return self._flying

    def needless(self) -> list[Flight]:
        """What is to be ended now."""
        wanted = Counter(self._series.name(one.cut) for one in self._wanted)
        found: list[Flight] = []
        for number, flight in self._flying.items():
            if wanted[flight.name]:
                wanted[flight.name] -= 1
            elif number not in self._needless:
                found.append(flight)
        self._needless |= {flight.number for flight in found}
        return found

    def due(self) -> list[Flight]:
        """What is to be made now. Probes that have been made before are told to the search at once: then what it wants
        is another thing, and there may be more to end."""
        while self.found is None:
            flying = Counter(flight.name for number, flight in self._flying.items() if number not in self._needless)
            due: list[Wanted] = []
            for one in self._wanted:
                name = self._series.name(one.cut)
                if flying[name]:
                    flying[name] -= 1
                else:
                    due.append(one)
            known = next(((one, kept) for one in due if (kept := self._series.kept(one.cut)) is not None), None)
            if known is None:
                return [self._fly(one) for one in due[: self._jobs - len(self._flying)]]
            wanted, (nth, branch) = known
            self._series.take(wanted.cut, nth)
            self._judged(wanted, self._series.probe(wanted.cut, self._predicate, None, branch))
        return []

    def ended(self, number: int, outcome: Outcome) -> None:
        """Tells the search what came of one."""
        flight = self._flying.pop(number)
        needless = number in self._needless
        self._needless.discard(number)
        if isinstance(outcome, Needless):
            self.dropped += 1
            self.dropped_calls += self._series.drop(flight.cut, flight.nth)
        elif isinstance(outcome, EditError):
            # A probe whose answers the framework of the run cannot give: nothing ran.
            probe = Probe(self._run, flight.cut.place, SKIP, str(outcome), 0, 0.0, False)
            self._judged(flight.wanted, probe, heard=not needless)
        else:
            probe = self._series.probe(flight.cut, self._predicate, outcome, None)
            self._judged(flight.wanted, probe, heard=not needless)

    def _fly(self, wanted: Wanted) -> Flight:
        nth = self._series.turn(wanted.cut)
        self._series.take(wanted.cut, nth)
        self._begun += 1
        name, branch = self._series.name(wanted.cut), self._series.name(wanted.cut, nth)
        flight = Flight(self._begun, wanted, nth, name, branch)
        self._flying[flight.number] = flight
        return flight

    def _judged(self, wanted: Wanted, probe: Probe, *, heard: bool = True) -> None:
        self.tried.append(probe)
        if heard and self.found is None:
            self._ask(Told(wanted.cut, probe))

    def _ask(self, told: Told | None) -> None:
        try:
            self._wanted = next(self._search) if told is None else self._search.send(told)
        except StopIteration as ended:
            self.found = ended.value
            self._wanted = ()
