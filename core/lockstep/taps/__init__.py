"""Taps: one module per source of non-determinism in any Python program.

Each has `install()` (patch once, inert without a session), `start(session, facts) -> facts` and
`stop(session)`; one that can lose its patches to another tool has `check(session)`, one that keeps
something of a session `forked(session)`. Facts are what a replay must know before the program runs:
given by the recording's `start` (which gets None) and handed to the replay's. One with `originals()` names what modules
may have taken before; it is rewritten there for the length of a session.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lockstep.log.model import Value
from lockstep.taps import held

# In the order of starting; stopped in reverse. Threads and loops first: they name the lanes.
TAPS = (
    "threads", "loops", "collector", "clock", "entropy", "http", "output", "stdin", "processes", "multiprocess",
    "guard", "host", "environ", "files",
)  # fmt: skip


# Those whose functions modules may have taken before.
TAKEN = ("clock", "entropy", "files")


def install() -> None:
    """Installs every tap. Inert, and cheap, until a session starts."""
    for name in TAPS:
        import_module(f"lockstep.taps.{name}").install()


def start(session: Any, facts: dict[str, Value] | None = None) -> dict[str, Value]:
    """Starts every tap for a session; returns what a replay must know."""
    install()
    found: dict[str, Value] = {}
    for name in TAPS:
        found[name] = import_module(f"lockstep.taps.{name}").start(session, (facts or {}).get(name))
        if name == "collector":
            # Not before: the look may start a collection, whose finalizers read the clock.
            held.rewrite(import_module(f"lockstep.taps.{name}").originals() for name in TAKEN)
    return found


def forked(session: Any) -> None:
    """In a forked child, whose session this is: taps that keep something of a session go on with it."""
    for name in TAPS:
        tap = import_module(f"lockstep.taps.{name}")
        if hasattr(tap, "forked"):
            tap.forked(session)


def check(session: Any) -> None:
    """Before the end is reported: names what was lost on the way."""
    for name in TAPS:
        tap = import_module(f"lockstep.taps.{name}")
        if hasattr(tap, "check"):
            tap.check(session)


def stop(session: Any) -> None:
    """Makes every tap inert again."""
    held.undo()
    for name in reversed(TAPS):
        import_module(f"lockstep.taps.{name}").stop(session)
