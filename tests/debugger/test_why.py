"""`lockstep.why`: the planted origin is named, among values that are nearly equal."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.debugger.planted_values import CASES, Asked, Play

import lockstep
from lockstep.debugger.why import Why
from lockstep.testing import Provider

SEEDS = (1, 7)


def planted(
    case: Callable[[Play], Asked], seed: int, provider: Provider, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Asked, Why]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SHOP_REGION", "")
    monkeypatch.setenv("SHOP_BACKUP", "")
    play = Play(provider, random.Random(f"{case.__name__} {seed}"))
    play.prepare(folder)
    with lockstep.record("planted") as session:
        asked = case(play)
    assert session.report is not None and session.report.faults == ()
    return asked, lockstep.why(f"planted:{asked.address}", asked.path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_planted_origin_is_named_first(
    case: Callable[[Play], Asked], seed: int, model: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = planted(case, seed, model, tmp_path, monkeypatch)
    first = found.origins[0]
    if " " in asked.origin:
        assert f"{first.kind} {Path(first.name).name}" == asked.origin, found
    else:
        assert first.address == f"planted:{asked.origin}", found
    assert first.path.startswith(asked.place), found
    assert asked.span in first.span, found
    named = [(one.address, span) for one in found.origins for span in one.spans]
    for address, span in asked.also:
        assert (f"planted:{address}", span) in named, found
    assert found.chain[0].address == f"planted:{asked.address}"
