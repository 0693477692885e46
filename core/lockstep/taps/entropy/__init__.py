"""Entropy: one recorded seed per run, from which every lane derives what it draws.

A draw makes no event and costs no more than the system's own; only its number is kept, so that a
replay which draws more or less is found. Seeded generators (`random.Random(42)`, `default_rng(5)`,
`random.seed(7)`) are never touched.

Not seen: random bytes that C or Rust code asks from the system (OpenSSL, duckdb, SQLite's `random()`),
`_random.Random` used directly, and which thread drew first from numpy's one global generator.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

# A launched program has not begun while `site` runs: nobody can have seeded anything. Nor can anybody
# in a module that was never imported. Looked at before the imports below load it.
_site = getattr(sys.modules.get("site"), "__spec__", None)
_untouched = "random" not in sys.modules or bool(getattr(_site, "_initializing", False))

from lockstep.taps.entropy import generators, numpy_state, streams, system, tempnames, uuids  # noqa: E402
from lockstep.taps.held import Originals  # noqa: E402
from lockstep.taps.patches import Patches  # noqa: E402

_STATE = struct.Struct("<625I")  # Mersenne twister: 624 words and the position

_patches = Patches()
_on = False
_before: dict[str, Any] = {}


def install() -> None:
    """Patches once; inert without a session."""
    global _on
    if _on:
        return
    _on = True
    if _untouched:
        generators.seeded = False
    generators.install(_patches)
    system.install(_patches)
    uuids.install(_patches)
    tempnames.install(_patches)


def start(session: Any, facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """Begins to record or to replay. `facts`: what the recording's `start` returned, None while recording.

    session.seed    32 bytes, the run's
    """
    install()
    streams.fresh()
    found = _facts() if facts is None else facts
    recorded = found.get("random", {})
    _before.clear()
    _before["numpy"] = numpy_state.facts()
    if facts is not None and found.get("numpy") is not None:
        numpy_state.restore(found["numpy"])
    state = recorded.get("state")
    _before["random"] = generators.start(
        session.seed, recorded.get("routing", generators.LANE), None if state is None else _unpack(state)
    )
    return found


def stop(session: Any) -> None:
    """Ends it: the program's generators are what they would be without us, after a replay what they were."""
    replayed = session.resumes or not session.recording
    if "random" in _before:
        generators.stop(_before.pop("random"), replayed)
    numpy = _before.pop("numpy", None)
    if replayed and numpy is not None:
        numpy_state.restore(numpy)


def held_names() -> list[str]:
    """`module.name` of each global outside the standard library that still holds an original of ours."""
    return originals().names()


def hash_facts() -> dict[str, Any]:
    """What orders sets of strings here: whether hashes are randomised, and a hash to compare."""
    return {"randomized": bool(sys.flags.hash_randomization), "probe": hash("lockstep")}


def originals() -> Originals:
    """What other modules may have taken before, with what stands for it."""
    return Originals({**system.replaced(), **uuids.replaced(), **generators.replaced()})


def _facts() -> dict[str, Any]:
    seeded = generators.seeded
    if seeded is False:
        random: dict[str, Any] = {"routing": generators.LANE}
    else:
        # Where nobody knows, the first thread goes on with what there is, and others get their own.
        routing = generators.SHARED if seeded else generators.STRAND
        random = {"routing": routing, "state": _pack(generators.state())}
    return {"random": random, "numpy": numpy_state.facts(), "hash": hash_facts()}


def _pack(state: tuple[Any, ...]) -> list[Any]:
    version, words, gauss = state
    return [version, _STATE.pack(*words), gauss]


def _unpack(packed: list[Any]) -> tuple[Any, ...]:
    version, words, gauss = packed
    return version, _STATE.unpack(words), gauss
