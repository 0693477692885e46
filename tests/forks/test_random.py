"""A seeded sample of random concurrent programs, forked at several steps: see `bench/fork_stress.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_stress import measure


@pytest.mark.parametrize("kind", ["asyncio", "threads"])
def test_random_programs_fork_and_their_branches_replay_to_the_same_trace(kind: str, tmp_path: Path) -> None:
    verdicts = measure(kind, range(2), tmp_path)
    assert len(verdicts) > 5
    assert [(each.seed, each.outcome, each.live, each.detail) for each in verdicts] == [
        (each.seed, "same", 0, "") for each in verdicts
    ]
