"""Replays and forks of runs that a framework keeps itself: its adapter is asked, in this process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from lockstep.adapter import registry
from lockstep.adapter.contract import Adapter
from lockstep.adapter.native import DEPTHS, Continued, Depth, ForkOptions, Native, Played, ReplayOptions
from lockstep.debugger.cuts import Cut
from lockstep.debugger.edits import Edit
from lockstep.debugger.probes import Made
from lockstep.debugger.view import Plain
from lockstep.errors import AddressError, Code, TargetError
from lockstep.log.address import Address
from lockstep.log.meta import keeper
from lockstep.log.store import Store, open_store
from lockstep.log.timeline import Place, resolve
from lockstep.session import current
from lockstep.session.policy import Policy


class Found(msgspec.Struct, frozen=True):
    """A native run at hand. `place` is of the store, which is open."""

    store: Store
    place: Place
    adapter: Adapter
    native: Native
    target: Any

    def replay(self, options: ReplayOptions) -> Played:
        self._whole()
        self._known(options.own)
        return self.native.replay(self.place.timeline.reader, self.target, options)

    async def areplay(self, options: ReplayOptions) -> Played:
        self._whole()
        self._known(options.own)
        return await self.native.areplay(self.place.timeline.reader, self.target, options)

    def _whole(self) -> None:
        address = self.place.address
        if self.place.step is not None:
            told = str(Address(address.path, address.branch))
            raise AddressError(
                Code.NO_ADDRESS, f"a replay is of a whole run: {told}. To stop after a step: until={address.step}"
            )

    def fork(self, options: ForkOptions) -> Continued:
        self._known(options.own)
        return self.native.fork(self.store, self.place, self.target, self._numbered(options))

    async def afork(self, options: ForkOptions) -> Continued:
        self._known(options.own)
        return await self.native.afork(self.store, self.place, self.target, self._numbered(options))

    def _numbered(self, options: ForkOptions) -> ForkOptions:
        """With edits of calls by their numbers, which adapters know. Raises AddressError LS206."""
        from lockstep.debugger import edits as editing

        edits = editing.numbered(self.place.timeline, options.edits)
        return msgspec.structs.replace(options, edits=edits)

    def plain(self, own: Mapping[str, Any]) -> Plain | None:
        """What makes the program's values of what is stored in another form. Raises TargetError LS402."""
        self._known(own)
        make = self.native.plain
        return make(self.place.timeline.reader, self.target, own) if make is not None else None

    def _known(self, own: Mapping[str, Any]) -> None:
        known = self.native.own
        strange = [f"{name}=" for name in own if name not in known]
        if strange:
            have = ", ".join(f"{name}= ({what})" for name, what in known.items()) or "none"
            raise TargetError(
                Code.BAD_TARGET,
                f"{', '.join(strange)} is nothing that a run of {self.adapter.title} knows. Its own arguments: {have}",
            )


@contextmanager
def looked_up(store: str, address: str, target: Any) -> Iterator[Found | None]:
    """What an address names, with the store open as long as the block runs; None where it is no run of a framework's
    own.

    Raises StoreError, AddressError, AdapterError LS408 where the run's adapter is not installed, TargetError LS402
    where the target is not one of that adapter, and LS404 where the framework is missing.
    """
    with open_store(store) as opened:
        place = resolve(opened, address)
        name = keeper(place.timeline.reader.meta)
        if not name:
            yield None
            return
        adapter = registry.get(name)
        yield Found(opened, place, adapter, capable(adapter, address), fitting(adapter, address, target))


def capable(adapter: Adapter, address: str) -> Native:
    """What the adapter does with such runs. Raises TargetError LS402 where that is nothing."""
    if adapter.native is None:
        raise TargetError(
            Code.BAD_TARGET, f"{address} is a run of {adapter.title}'s own, which its adapter here can only show"
        )
    return adapter.native


def fitting(adapter: Adapter, address: str, target: Any) -> Any:
    """The target, which may be given as `module:name`. Raises TargetError LS401, LS402, LS404."""
    if current.session is not None:
        raise TargetError(Code.BAD_TARGET, "a session is on already: another can't begin inside it")
    registry.require(adapter)
    if isinstance(target, str):
        from lockstep.launch.target import load

        if adapter.native is not None and adapter.native.prepare is not None:
            adapter.native.prepare()
        target = load(target, modules=True)
    if not adapter.target.accepts(target):
        raise TargetError(
            Code.BAD_TARGET,
            f"{address} is a run of {adapter.title}: its target is a {adapter.target.what}, "
            f"not a {type(target).__name__}",
        )
    return target


def probe_options(
    edits: tuple[Edit, ...], cut: Cut, policy: Policy, branch: str, own: Mapping[str, Any] = {}
) -> ForkOptions:
    """How a probe of bisect forks at its cut."""
    return ForkOptions(edits=edits, policy=policy, branch=branch, within=cut.within, exact=True, own=own)


def made(done: Continued) -> Made:
    """The probe that a fork was."""
    report = done.report
    difference = report.difference
    told = "" if difference is None else f"{difference.code} {difference.reason}"
    return Made(report.branch, report.live, report.refused, told, report.seconds)


def identity(target: Any) -> bytes:
    """Tells a target from every other one, in this process: two bisects of the same object are of the same program, and
    so are those of lists of the same objects."""
    if isinstance(target, list | tuple):
        return b"".join(map(identity, target))
    try:
        return _identities.setdefault(target, os.urandom(8))
    except TypeError:
        return os.urandom(8)


_identities: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()


def options(
    store: str, depth: str, turn: int | None, until: int | None, speed: float, deadline: float,
    own: Mapping[str, Any] = {},
) -> ReplayOptions:  # fmt: skip
    """The options of a replay. Raises TargetError LS402 for a depth or turn that there is not."""
    known: Depth | None = next((each for each in DEPTHS if each == depth), None)
    if known is None:
        raise TargetError(Code.BAD_TARGET, f"depth is one of {', '.join(DEPTHS)}, not {depth!r}")
    if turn is not None and turn < 1:
        raise TargetError(Code.BAD_TARGET, f"turns are counted from 1: there is no turn {turn}")
    return ReplayOptions(store=store, depth=known, turn=turn, until=until, speed=speed, deadline=deadline, own=own)


def only_native(own: Mapping[str, Any] = {}, /, **given: Any) -> None:
    """Raises TargetError LS402 where something was asked of a session's run that only a framework's has. `own`: what
    is not known by name, whatever it is."""
    names = [*(f"{name}=" for name in own), *(f"{name}=" for name, value in given.items() if value)]
    if names:
        raise TargetError(
            Code.BAD_TARGET, f"{', '.join(names)} is for a run that a framework keeps itself, and this is none"
        )
