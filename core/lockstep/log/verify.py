"""Shows that a stored run is what was recorded: each branch's streams, and what binds a branch to what it shares.

A chain without a seal shows consistency: who can write the file and knows the format can make a new consistent one.
With the key, a seal shows who wrote it.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Iterator, Sequence

import msgspec

from lockstep.errors import LockstepError, StoreError
from lockstep.log import chain, roll, seal
from lockstep.log import cut as cuts_of
from lockstep.log.address import MAIN, called, is_branch
from lockstep.log.model import BranchInfo, RunState, Value
from lockstep.log.steps import is_native
from lockstep.log.store import ROOT, RunReader
from lockstep.log.verify_stream import Problem, StreamCheck

__all__ = ["Branch", "Problem", "Trust", "Verified", "verify"]


class Trust(enum.StrEnum):
    """What is known of who wrote a run."""

    UNKEYED = "not keyed"  # nobody sealed it
    UNCHECKED = "not checked"  # it is sealed, and there is no key here to check that
    OTHER_KEY = "another key"  # it is sealed with a key that is not the one here
    AUTHENTIC = "authentic"  # all of it is sealed with the key that is here
    FORGED = "not authentic"  # it is not what the owner of the key sealed


class Branch(msgspec.Struct, frozen=True):
    """What one branch shows by its own events; see `Verified`. `address`: as in `refund@try-2`."""

    address: str
    consistent: bool
    open_end: bool
    trust: Trust
    key: str
    events: int


class Verified(msgspec.Struct, frozen=True):
    """What a run shows.

    consistent   no problem was found
    open_end     some stream has no end (interrupted or growing), so a missing tail would not show
    trust        see there; `key`: the id of the key that it is sealed with, "" for none
    recorded_as  the name that it was recorded under, "" if that is not known
    events       checked in all streams; `head`: that of the first stream, hex
    branches     what each branch shows, the one that was asked for first
    """

    run: str
    consistent: bool
    open_end: bool
    trust: Trust
    key: str
    recorded_as: str
    events: int
    head: str
    problems: tuple[Problem, ...]
    branches: tuple[Branch, ...] = ()


def verify(reader: RunReader, key: seal.Key | None = None) -> Verified:
    """Checks a run with all its branches, or a branch with those that it comes from; with a key also who wrote it.
    Reads all of it once; damage is reported, not raised."""
    name = reader.info.name
    asked = called(name, reader.branch)
    problems = [Problem(asked, "", -1, -1, f"the store's file: {line}") for line in _file(reader)]
    meta: Value = None
    try:
        meta = reader.stored.meta
    except StoreError as error:
        problems.append(Problem(asked, "", -1, -1, f"the run's header (meta): {error.message}"))
    known: dict[str, Value] = meta if isinstance(meta, dict) else {}
    scope = _scope(reader)
    cuts = _cuts(reader, scope, native=is_native(known))
    # Of the branches that one comes from, what it shares; its own seal is also over that.
    stops = {one.parent: one.base for one in scope} if reader.branch != MAIN else {}
    checked = {one.name: _Branch(reader, one, cuts.get(one.name), key, stops.get(one.name), known) for one in scope}
    found = {one.name: [*checked[one.name].problems()] for one in scope}
    everything = [*problems, *(problem for one in scope for problem in found[one.name])]
    bad: set[str] = set()
    told = []
    for one in scope:
        if problems or found[one.name] or one.parent in bad:
            bad.add(one.name)
        told.append(checked[one.name].told(consistent=one.name not in bad))
    told.sort(key=lambda each: each.address != asked)
    first = told[0]
    if stops:
        told = [msgspec.structs.replace(each, trust=first.trust, key=first.key, open_end=False) for each in told]
        told[0] = first
    supervised = "command" not in known or any(one.process == roll.LAUNCH for one in checked[MAIN].checks)
    return Verified(
        run=asked,
        consistent=not everything,
        open_end=first.open_end or (reader.branch == MAIN and not supervised),
        trust=Trust.FORGED if any(each.trust is Trust.FORGED for each in told) else first.trust,
        key=first.key,
        recorded_as=str(known.get("run") or ""),
        events=sum(each.events for each in told),
        head=checked[reader.branch].head,
        problems=tuple(everything),
        branches=tuple(told),
    )


def verify_branch(taken: RunReader, branch: BranchInfo, ours: RunReader, key: seal.Key | None = None) -> list[Problem]:
    """Checks a branch before it is taken into a run that has what it shares.

    taken   reads the branch's own streams as they are stored elsewhere
    branch  what is told of it there
    ours    reads the branch here that it says it comes from, which is not checked itself
    """
    run = called(ours.info.name, branch.name)
    meta = ours.stored.meta
    known: dict[str, Value] = meta if isinstance(meta, dict) else {}
    if taken.header() != ours.header():
        return [Problem(run, "", -1, -1, "it is of another run")]
    parent = next(one for one in ours.branches if one.name == ours.branch)
    at_home = msgspec.structs.replace(branch, problem="")  # there it may lack what it shares
    shared = _cuts(ours, [parent, at_home], native=is_native(known)).get(branch.name)
    return [*_Branch(taken, at_home, shared, key, None, known).problems()]


class _Branch:
    """The check of one branch: of its streams, and of what it says of its parent."""

    def __init__(
        self, reader: RunReader, info: BranchInfo, shared: _Shared | None, key: seal.Key | None, stop: int | None,
        known: Value,
    ) -> None:  # fmt: skip
        """`known`: the run's meta; `stop`: where a branch leaves it that is checked instead, as a number of the
        branch."""
        started, meta = reader.header()
        native = is_native(known)
        self._info = info
        self._name = called(reader.info.name, info.name)
        self._key = key
        self._whole = stop is None
        self._shared = shared
        self.checks = []
        seen = {stream.id for stream in reader.streams}
        for stream in info.streams:
            first = stream.process == ROOT
            if stop is not None and not first and stream.id not in seen:
                continue  # of a process that is not shared
            base = chain.base(started, meta, stream.process)
            other = info.name != MAIN
            if other:
                head = shared.head if shared is not None else info.head
                base = chain.branch_base(started, meta, stream.process, info.name, info.pos, info.base, head)
            begins = other and first
            flying = shared.closing if begins and shared is not None else ()
            self.checks.append(
                StreamCheck(
                    reader.stored, stream, key, self._name, base, info.streams, flying, info.pos if begins else 0,
                    shares=other, native=native, stop=max(0, stop - info.base) if stop is not None and first else None,
                )
            )  # fmt: skip

    @property
    def head(self) -> str:
        return self.checks[0].head.hex() if self.checks else ""

    def problems(self) -> Iterator[Problem]:
        if self._info.problem or not is_branch(self._info.name):
            problem = self._info.problem or "that is no name for a branch"
            yield self._problem(f"where the branch comes from makes no sense: {problem}")
        elif self._info.parent:
            yield from self._leaving()
        for check in self.checks:
            yield from check.problems()
        if self._whole and self._key is not None and any(one.key == self._key.id for one in self._seals):
            for check in self.checks:
                if check.end.seal is None:
                    yield Problem(
                        self._name, check.process, -1, -1, "has no seal, where other streams of the run have one"
                    )

    def _leaving(self) -> Iterator[Problem]:
        """Whether it left its parent where it says."""
        info, shared = self._info, self._shared
        if shared is None or shared.problem:
            yield self._problem(f"what it shares cannot be read: {shared.problem if shared is not None else ''}")
            return
        if shared.head != info.head:
            yield self._problem("what it shares with its parent was changed, moved, added or dropped")
        elif not shared.same:
            yield self._problem("where it left its parent (number, steps, calls in flight) is not what is there")

    def told(self, *, consistent: bool) -> Branch:
        seals = self._seals
        ended = bool(self.checks) and all(check.end.state is not RunState.GROWING for check in self.checks)
        return Branch(
            self._name, consistent, not ended, _trust(seals, self._key, not consistent), seals[0].key if seals else "",
            sum(check.checked for check in self.checks),
        )  # fmt: skip

    @property
    def _seals(self) -> list[seal.Seal]:
        return [check.end.seal for check in self.checks if check.end.seal is not None]

    def _problem(self, what: str) -> Problem:
        return Problem(self._name, "", -1, -1, what)


class _Shared(msgspec.Struct, frozen=True):
    """What a branch shares, as it is now.

    same     whether number, steps and calls in flight at the cut are those that are stored
    closing  the calls in flight there that close a step when they end
    head     that of its parent's chain there
    """

    same: bool = False
    closing: Sequence[int] = ()
    head: bytes = b""
    problem: str = ""


def _cuts(reader: RunReader, scope: Sequence[BranchInfo], *, native: bool) -> dict[str, _Shared]:
    """By branch. Each parent is read once, however many branches have left it."""
    found: dict[str, _Shared] = {}
    for parent in scope:
        left = sorted((one for one in scope if one.parent == parent.name and not one.problem), key=lambda one: one.pos)
        if not left:
            continue
        try:
            above = reader.on(parent.name)
            own = next(one.id for one in reversed(parent.streams) if one.process == ROOT)
            positions = [one.pos for one in left]
            for one, cut in zip(left, cuts_of.cuts(above.heads(above.main), positions, native=native), strict=True):
                found[one.name] = _shared(reader, one, cut, own, one.base - parent.base)
        except LockstepError as error:
            for one in left:
                found.setdefault(one.name, _Shared(problem=error.message))
    return found


def _shared(reader: RunReader, info: BranchInfo, cut: cuts_of.Cut, stream: int, count: int) -> _Shared:
    told = cut.seq, cut.steps, cuts_of.pack(cut.flying)
    same = told == (info.base, info.before, info.flying) and len(cut.flying) <= cuts_of.MOST
    closing = array("Q", [call.pos for call in cut.flying if call.closing and 0 <= call.pos < 1 << 63])
    try:
        return _Shared(same, closing, reader.stored.head(stream, max(0, count)))
    except LockstepError as error:
        return _Shared(same, closing, problem=error.message)


def _trust(sealed: list[seal.Seal], key: seal.Key | None, problems: bool) -> Trust:
    if not sealed:
        return Trust.UNKEYED
    if key is None:
        return Trust.UNCHECKED
    if all(one.key != key.id for one in sealed):
        return Trust.OTHER_KEY
    return Trust.FORGED if problems else Trust.AUTHENTIC


def _scope(reader: RunReader) -> list[BranchInfo]:
    """The branches to check, parents first."""
    if reader.branch == MAIN:
        return list(reader.branches)
    by_name = {one.name: one for one in reader.branches}
    path = [by_name[reader.branch]]
    while path[-1].parent:
        path.append(by_name[path[-1].parent])
    return path[::-1]


def _file(reader: RunReader) -> list[str]:
    try:
        return reader.check_file()
    except StoreError as error:
        return [error.message]
