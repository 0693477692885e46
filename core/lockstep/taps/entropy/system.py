"""The system's random bytes: `os.urandom`, `os.getrandom`, `ssl.RAND_bytes`, and `SystemRandom` with all of `secrets`.

uuid4, numpy's unseeded generators (by `secrets`) and tempfile end in these. A client library's draws
inside an effect, and ours, go to the system. Not seen: C or Rust code that asks by itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session import current as active
from lockstep.session.lanes import current
from lockstep.taps.entropy import streams
from lockstep.taps.entropy.streams import byte_stream
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches, stand_in

real_urandom: Callable[[int], bytes] = os.urandom
real_getrandom: Callable[..., bytes] | None = getattr(os, "getrandom", None)


def _bytes(source: str) -> Callable[[int], bytes]:
    def urandom(_: object, size: int, /) -> bytes:
        lane = None if active.session is None else current()
        # What the system would refuse (a negative or no number) it says itself.
        if lane is None or type(size) is not int or size < 0:
            return real_urandom(size)
        stream: Any = lane.taps.get(source)
        if stream is None or stream.forks is not streams.forks:
            stream = byte_stream(lane, source)
        return stream.draw(size)  # type: ignore[no-any-return]

    return stand_in(urandom, real_urandom, "os")  # type: ignore[no-any-return]


urandom = _bytes("os.urandom")
_system_random = _bytes("SystemRandom")


def _getrandom(_: object, size: int, flags: int = 0) -> bytes:
    lane = None if active.session is None else current()
    if lane is None or type(size) is not int or size < 0:
        return real_getrandom(size, flags)  # type: ignore[misc]
    return byte_stream(lane, "os.getrandom").draw(size)


getrandom: Any = stand_in(_getrandom, real_getrandom, "os")


_openssl: dict[Any, Any] = {}


def _tap_openssl(patches: Patches, module: ModuleType) -> None:
    real = module.RAND_bytes

    def rand_bytes(_: object, size: int, /) -> bytes:
        lane = None if active.session is None else current()
        if lane is None or type(size) is not int or size < 0:
            return real(size)  # type: ignore[no-any-return]
        return byte_stream(lane, "ssl.RAND_bytes").draw(size)

    _openssl[real] = stand_in(rand_bytes, real, "ssl")
    patches.set(module, "RAND_bytes", _openssl[real])


def install(patches: Patches) -> None:
    when_imported("ssl", lambda module: _tap_openssl(patches, module))
    patches.set(os, "urandom", urandom)
    patches.set(random, "_urandom", _system_random)  # what SystemRandom asks
    if real_getrandom is not None:
        patches.set(os, "getrandom", getrandom)


def replaced() -> dict[Any, Any]:
    """Originals that other modules may hold, with what stands for them."""
    found: dict[Any, Any] = {real_urandom: urandom, **_openssl}
    if real_getrandom is not None:
        found[real_getrandom] = getrandom
    return found
