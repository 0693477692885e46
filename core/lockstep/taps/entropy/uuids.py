"""UUIDs that are made from the clock, by the system's library or in Rust: the value itself is a read.

uuid4 and uuid8 draw from `os.urandom` and `random`, which are tapped. The time-based ones depend on
the machine's address, on what other threads made before, and on C code that reads the clock, so their
128 bits are recorded as they came. Python 3.14 adds uuid6 and uuid7; the package uuid_utils (run ids of
langchain) draws all of its own in Rust.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session import current as active
from lockstep.session.lanes import current, ours
from lockstep.session.reads import read
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches, stand_in

_patches: Patches | None = None
_replaced: dict[Any, Any] = {}


def install(patches: Patches) -> None:
    """Taps module `uuid` and package uuid_utils, now or when they are imported."""
    global _patches
    _patches = patches
    when_imported("uuid", _standard)
    when_imported("uuid_utils", _rust)


def replaced() -> dict[Any, Any]:
    """Originals that other modules may hold, with what stands for them."""
    return _replaced


def _standard(module: ModuleType) -> None:
    safeties = (module.SafeUUID.safe, module.SafeUUID.unsafe, module.SafeUUID.unknown)

    def taken(value: Any) -> int:
        return int(value.int) << 2 | safeties.index(value.is_safe)

    def made(number: int) -> Any:
        return module.UUID(int=number >> 2, is_safe=safeties[number & 3])

    for name in ("uuid1", "uuid6", "uuid7"):
        _tap(module, name, "uuid", taken, made)
    _tap(module, "getnode", "uuid", int, int)


def _rust(module: ModuleType) -> None:
    def made(number: int) -> Any:
        return module.UUID(int=number)

    for name in ("uuid1", "uuid4", "uuid6", "uuid7"):
        _tap(module, name, "uuid_utils", lambda value: int(value.int), made)
    for name in ("_uuid4_int", "_uuid7_int", "getnode"):
        _tap(module, name, "uuid_utils", int, int)


def _tap(module: ModuleType, name: str, prefix: str, taken: Callable[[Any], int], made: Callable[[int], Any]) -> None:
    function = getattr(module, name, None)
    if function is None or _patches is None:
        return
    source = f"{prefix}.{name}"
    # What Python code of it reads and draws on the way is part of the value, not a read of its own.
    real = ours(function)

    def tapped(_: object, *args: Any, **kwargs: Any) -> Any:
        lane = None if active.session is None else current()
        if lane is None:
            return function(*args, **kwargs)
        return made(read(lane, source, lambda: taken(real(*args, **kwargs))))

    ours_now = stand_in(tapped, function, module.__name__)
    _replaced[function] = ours_now
    _patches.set(module, name, ours_now)
