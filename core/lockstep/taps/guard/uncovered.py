"""What is said of something that no tap covers: what it is, where it happens, and that a replay stops there."""

from __future__ import annotations

from lockstep.errors import Code
from lockstep.session import current, lanes, sites

SERVED = "served"  # connections from outside: nothing that the program does


def name(source: str, what: str, at: str | None = None) -> None:
    """Names something that is live in this session; it goes on. `at`: its place, by default where we are."""
    session = current.session
    if session is not None:
        session.note(source, f"{what} ({at or place()})".lstrip())


def refuse(source: str, what: str, at: str | None = None) -> None:
    """Names something that would reach outside. A replay stops here, before it does: Divergence LS210. So does a fork,
    unless its policy lets it: Refusal LS301."""
    session = current.session
    if session is None:
        return
    if lanes.collecting():
        session.collected(f"{source} {what}".rstrip())
        return
    name(source, what, at)
    if not session.recording:
        if session.stopped:
            session.raise_latched()
        session.diverge(
            Code.NOT_COVERED, f"not covered: {source} {what}".rstrip(), kind=source, name=what, source=sites.site(2)
        )  # fmt: skip
    elif source != SERVED:
        session.reaches(source, what)


def place() -> str:
    """`redis, agent/db.py:31 in load`: the library that does it, and the line of the program that led there."""
    return ", ".join(part for part in (sites.package(2), sites.site(2)) if part) or "a library"
