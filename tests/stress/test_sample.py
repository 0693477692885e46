"""A seeded sample of the random concurrent programs; `make bench` runs them by the hundred.

Each program is recorded and replayed in separate processes, against a server that is never the same
twice. The trace compared holds every line in order, also those between two `sleep(0)`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from programs.tree import build, census

from stress import Verdict, measure

PROGRAMS = {"asyncio": 12, "threads": 12, "mixed": 6}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_programs_replay_to_the_same_trace(kind: str, tmp_path: Path) -> None:
    verdicts = measure(kind, range(PROGRAMS[kind]), 2, tmp_path)
    assert verdicts == [Verdict(kind, seed, "same", seconds=verdict.seconds) for seed, verdict in enumerate(verdicts)]


def test_random_programs_replay_through_the_command_line(tmp_path: Path) -> None:
    verdicts = [found for kind in ("asyncio", "threads") for found in measure(kind, range(2), 2, tmp_path, cli=True)]
    assert [(verdict.outcome, verdict.live, verdict.detail) for verdict in verdicts] == [("same", 0, "")] * 4


def test_a_seed_names_one_program_and_the_programs_differ() -> None:
    assert build("mixed", 5) == build("mixed", 5)
    assert build("mixed", 5).root != build("mixed", 6).root


def test_the_sample_holds_most_constructs() -> None:
    """So that a change of the generator cannot quietly empty the test above."""
    for kind, number in PROGRAMS.items():
        assert len(census(kind, range(number))) > 20
