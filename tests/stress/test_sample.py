"""A seeded sample of the random concurrent programs; `make stress` runs them by the hundred.

Each program is recorded and replayed in separate processes, against a server that is never the same
twice. The trace compared holds every line in order, also those between two `sleep(0)`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from nursery import Job, Result
from programs.run import execute
from programs.tree import build, census

from stress import Verdict, holds, judge, measure, serving

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


def _bare(job: Job) -> Result:
    """Runs the program without any session, and claims that all went well."""
    return Result("ended", execute(job.kind, job.seed, job.url), identical=True)


def test_the_runner_sees_a_replay_that_is_none(tmp_path: Path) -> None:
    """A second bare run differs, and its requests reach the server: what the figures above rule out."""
    with serving() as server:
        verdict = judge("asyncio", 0, server, tmp_path, (_bare, _bare), 30.0)
        assert (verdict.outcome, verdict.live > 0) == ("silent", True)
        assert not holds([verdict])

        def honest(job: Job) -> Result:
            return msgspec.structs.replace(_bare(job), identical=False, difference="LS101")

        verdict = judge("asyncio", 0, server, tmp_path, (_bare, honest), 30.0)
        assert verdict.outcome == "diverged"
        assert verdict.detail.startswith("LS101 | trace")
        assert not holds([verdict])


def test_only_what_is_promised_must_be_exact() -> None:
    assert holds([Verdict("threads", 0, "same"), Verdict("mixed", 0, "diverged"), Verdict("raw", 0, "silent", live=1)])
    assert not holds([Verdict("threads", 0, "alarm")])
    assert not holds([Verdict("mixed", 0, "hung")])
