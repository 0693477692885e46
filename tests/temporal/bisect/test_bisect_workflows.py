"""Bisect names the answer that made a workflow's run bad, without a server."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from math import ceil, log2
from pathlib import Path
from typing import Any

import measuring
import pytest
from measuring import BAD, DONE, WRONG, Measuring, measure

import lockstep
from lockstep.debugger.verdict import Verdict
from lockstep.log.store import open_store

FORTY = 40
TARGET = [Measuring, measure]


@pytest.fixture(autouse=True)
def _nothing_wrong() -> Iterator[None]:
    WRONG.clear()
    DONE.clear()
    yield
    WRONG.clear()


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    open_store(path, create=True).close()
    return path


def imported(store: str, count: int, answers: Mapping[int, int], name: str = "measuring") -> str:
    """The run of a history in which some measurements were answered otherwise."""
    from lockstep.adapter import registry

    adapter = registry.get("temporal")
    assert adapter.imports is not None
    with open_store(store) as opened:
        return adapter.imports(opened, measuring.history(count, answers, name).encode(), "")


def is_bad(run: Any) -> bool:
    return run.result is not None and run.result < 0


def bisect(store: str, run: str, **options: Any) -> Verdict:
    return lockstep.bisect(run, TARGET, **{"bad": is_bad, "live": ["measure"], "store": store, **options})


@pytest.mark.parametrize("culprit", [1, 17, FORTY])
def test_a_planted_bad_result_of_forty_is_found_in_seven_probes_at_most(store: str, culprit: int) -> None:
    run = imported(store, FORTY, {culprit: BAD})
    found = bisect(store, run)
    assert (found.verdict, found.step, found.effect, found.name) == (
        "culprit", culprit, f"{culprit}.1", "activity measure",
    )  # fmt: skip
    assert found.probes <= 7
    assert found.live_calls == len(DONE) == sum(FORTY - int(probe.at) for probe in found.tried)
    assert [(change.a, change.b) for change in found.changes] == [(str(BAD), str(culprit))]


def test_any_culprit_of_any_number_of_activities_is_found_within_the_bound(store: str) -> None:
    chance = random.Random(6)
    for count in (1, 2, 3, 5, 8, 13):
        culprit = chance.randint(1, count)
        run = imported(store, count, {culprit: BAD}, f"of-{count}")
        found = bisect(store, run)
        assert (found.verdict, found.step) == ("culprit", culprit)
        assert found.probes <= ceil(log2(count)) + 1
