"""Module `random`: its functions draw from a generator of the running lane, unseeded ones from the seed.

All module functions are methods of one hidden instance and come down to three of them: `random`,
`getrandbits` and `gauss` (which keeps half of each pair of values for the next call). Those three are
replaced on the instance and in the module, so that `choice`, `shuffle` and the rest follow by
themselves. One generator for all would give each thread its draws by race.

A generator that the program seeds is its own affair: after `random.seed(7)`, and from `getstate` or
`setstate` on, the module's functions draw from the hidden instance as they would without us. Only what
a client library draws inside an effect never does: a replay does not run the client, so its back-off
must not move the program's sequence.
"""

from __future__ import annotations

import os
import random
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from lockstep.session import current as active
from lockstep.session.lanes import Lane, current
from lockstep.taps.entropy import streams
from lockstep.taps.entropy.streams import byte_stream, derive
from lockstep.taps.entropy.system import real_urandom
from lockstep.taps.patches import Patches, disguise, stand_in

SOURCE = "random"

# Who draws from what. LANE: each lane from its own. STRAND: the first thread, with its tasks, from the
# hidden instance, other threads from their own. SHARED: all from the hidden instance.
LANE, STRAND, SHARED = "lane", "strand", "shared"

_inst: random.Random = random._inst
_class_seed: Callable[..., None] = random.Random.seed

# The hidden instance's own methods, whatever is put over them.
_real: dict[str, Any] = {
    name: getattr(random, name) for name in ("random", "getrandbits", "gauss", "seed", "getstate", "setstate")
}

seeded: bool | None = None
"""Whether the program has given the hidden instance a state of its own; None where we came too late to know."""

_routing = LANE
_epoch = object()  # changes whenever lanes must choose their generator anew
_private = random.Random(int.from_bytes(real_urandom(32)))  # for code inside effects


class _Generator:
    """The generator of one lane, or the way from the lane to the hidden instance."""

    __slots__ = ("count", "epoch", "gauss", "getrandbits", "own", "random")

    def __init__(self, own: random.Random | None, count: int) -> None:
        self.count = count
        self.epoch = _epoch
        self.own = own
        self.random: Callable[[], float] = _real["random"] if own is None else own.random
        self.getrandbits: Callable[[int], int] = _real["getrandbits"] if own is None else own.getrandbits
        self.gauss: Callable[..., float] = _real["gauss"] if own is None else own.gauss


def _generator(lane: Lane) -> _Generator:
    found: _Generator | None = lane.taps.get(SOURCE)
    if found is not None and found.epoch is _epoch:
        return found
    shared = _routing == SHARED or (_routing == STRAND and lane.strand.parent is None)
    own = None if shared else random.Random(int.from_bytes(derive(lane.session.seed, lane.name, SOURCE)))
    made = lane.taps[SOURCE] = _Generator(own, 0 if found is None else found.count)
    return made


def _draw_random(_: object) -> float:
    if active.session is None:
        return _real["random"]()  # type: ignore[no-any-return]
    lane = current()
    if lane is None:
        return _private.random()
    generator: Any = lane.taps.get(SOURCE)
    if generator is None or generator.epoch is not _epoch:
        generator = _generator(lane)
    generator.count += 1
    return generator.random()  # type: ignore[no-any-return]


def _draw_bits(_: object, k: int, /) -> int:
    if active.session is None:
        return _real["getrandbits"](k)  # type: ignore[no-any-return]
    lane = current()
    if lane is None:
        return _private.getrandbits(k)
    generator: Any = lane.taps.get(SOURCE)
    if generator is None or generator.epoch is not _epoch:
        generator = _generator(lane)
    generator.count += 1
    return generator.getrandbits(k)  # type: ignore[no-any-return]


def _draw_gauss(_: object, mu: float = 0.0, sigma: float = 1.0) -> float:
    if active.session is None:
        return _real["gauss"](mu, sigma)  # type: ignore[no-any-return]
    lane = current()
    if lane is None:
        return _private.gauss(mu, sigma)
    generator = _generator(lane)
    generator.count += 1
    return generator.gauss(mu, sigma)


def _seed(_: object, a: Any = None, version: int = 2) -> None:
    global seeded
    lane = None if active.session is None else current()
    if active.session is not None and lane is None:
        _private.seed(a, version)
        return
    seeded = a is not None
    if lane is None:
        _real["seed"](a, version)
    elif seeded:
        _route(SHARED)
        _real["seed"](a, version)
    else:
        # Back to draws that nobody can foresee: this lane's sequence begins anew, from its own bytes.
        if _routing != LANE:
            _route(LANE)
        drawn = byte_stream(lane, "random.seed").draw(32)
        lane.taps[SOURCE] = _Generator(random.Random(int.from_bytes(drawn)), _generator(lane).count)


def _getstate(_: object) -> tuple[Any, ...]:
    global seeded
    if active.session is not None:
        lane = current()
        if lane is None:
            return _private.getstate()
        own = _generator(lane).own
        if own is not None:
            _real["setstate"](own.getstate())
        _route(SHARED)
        seeded = True
    return _real["getstate"]()  # type: ignore[no-any-return]


def _setstate(_: object, state: tuple[Any, ...]) -> None:
    global seeded
    if active.session is not None:
        if current() is None:
            _private.setstate(state)
            return
        _route(SHARED)
    _real["setstate"](state)
    seeded = True


def _seed_any(self: random.Random, a: Any = None, version: int = 2) -> None:
    # Of every other generator. Unseeded, it asks the kernel from C, where no other tap sees it.
    if a is None and active.session is not None:
        lane = current()
        if lane is not None:
            a = int.from_bytes(byte_stream(lane, "random.Random").draw(32))
    _class_seed(self, a, version)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "random": _draw_random,
    "getrandbits": _draw_bits,
    "gauss": _draw_gauss,
    "seed": _seed,
    "getstate": _getstate,
    "setstate": _setstate,
}
_ours: dict[str, Any] = {name: stand_in(function, _real[name], "random") for name, function in _FUNCTIONS.items()}


def _route(routing: str) -> None:
    global _routing, _epoch
    _routing = routing
    _epoch = object()


def install(patches: Patches) -> None:
    """Replaces the functions in the module and on its hidden instance, and the class's unseeded seeding."""
    for name, function in _ours.items():
        patches.set(random, name, function)
        patches.set(_inst, name, function)
    disguise(_seed_any, _class_seed, "random", "seed")
    _seed_any.__qualname__ = "Random.seed"
    patches.set(random.Random, "seed", _seed_any)
    if hasattr(os, "register_at_fork"):
        # After the module's own hook, which reseeds the hidden instance from the kernel.
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def replaced() -> dict[Any, Any]:
    """Originals that other modules may hold, with what stands for them."""
    return {_real[name]: function for name, function in _ours.items()}


# Sessions.


def start(seed: bytes, routing: str, state: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Begins to route draws; returns the state that the hidden instance had.

    `state` is given to the hidden instance. Without one it is seeded too, for those who took its
    methods before us and whom no look through the modules finds.
    """
    before: tuple[Any, ...] = _real["getstate"]()
    if state is not None:
        _real["setstate"](state)
    elif routing == LANE:
        _real["seed"](int.from_bytes(derive(seed, "hidden", SOURCE)))
    _private.seed(int.from_bytes(real_urandom(32)))
    _route(routing)
    return before


def stop(before: tuple[Any, ...], replayed: bool) -> None:
    """Ends it. What the program did to a generator of its own during a recording stays, as it would have."""
    if replayed or _routing == LANE:
        _real["setstate"](before)


def state() -> tuple[Any, ...]:
    """The state of the hidden instance."""
    return _real["getstate"]()  # type: ignore[no-any-return]


# Forks. The child's key is the parent lane and how many times that has forked.

_forking: dict[int, tuple[str, int]] = {}  # by thread


def _before_fork() -> None:
    lane = current()
    _forking[get_ident()] = ("", 0) if lane is None else (lane.name, lane.ordinal("fork of the seed"))


def _after_fork() -> None:
    _private.seed(int.from_bytes(real_urandom(32)))
    session = active.session
    if session is None:
        return
    streams.forked(*_forking.get(get_ident(), ("", 0)))
    _real["seed"](int.from_bytes(derive(session.seed, "hidden", SOURCE)))
    _route(LANE)
