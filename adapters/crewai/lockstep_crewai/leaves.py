"""All that asks the outside: its seams, put into CrewAI's classes."""

from __future__ import annotations

from lockstep_crewai import events, files, humans, keeping, models, pacing, parallel, refused, servers, tools, working


def install() -> None:
    """Puts in the seams of models, tools, servers, humans, files, states, memory and knowledge, and of what runs at
    once. They do nothing where nobody asks. Call it before each run: some classes say nothing of subclasses made
    later."""
    for part in (events, models, tools, servers, parallel, working, humans, files, keeping, pacing, refused):
        part.install()
