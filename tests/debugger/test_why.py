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


def test_a_text_of_many_values_has_an_origin_for_each_and_only_what_is_between_is_the_program_s(
    model: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many(play: Play) -> Asked:
        codes = [play.code() for _ in range(30)]
        told = [play.tool("code", {"code": code}, of=number) for number, code in enumerate(codes)]
        at = play.tool("print", "ok", text=" and ".join(codes))
        return Asked(at, "text", told[0], "outcome.code", codes[0])

    _, found = planted(many, 1, model, tmp_path, monkeypatch)
    *tools, own = found.origins
    assert len({one.address for one in tools}) == 24
    assert {(one.kind, one.path) for one in tools} == {("tool", "outcome.code")}
    assert (own.kind, {*own.spans}) == ("program", {"and"})


def test_another_origin_that_fits_as_well_makes_it_unsure_and_is_named(
    model: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(play: Play) -> Asked:
        total = play.number()
        one = play.tool("get_order", {"total": total}, of=1)
        play.tool("get_order", {"total": total}, of=2)
        return Asked(play.tool("refund", "ok", total=total), "total", one, "outcome.total", str(total))

    asked, found = planted(twice, 1, model, tmp_path, monkeypatch)
    (origin,) = found.origins
    assert (origin.address, origin.certainty) == (f"planted:{asked.origin}", "unsure")
    assert origin.rivals == ("planted:2.1",)


def test_a_secret_is_followed_and_never_told(model: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-proj-" + "a1b2c3d4e5" * 4

    def hidden(play: Play) -> Asked:
        origin = play.tool("vault", {"key": key}, name="shop")
        return Asked(play.tool("call_shop", "ok", key=key), "key", origin, "outcome.key", "")

    asked, found = planted(hidden, 1, model, tmp_path, monkeypatch)
    assert found.origins[0].address == f"planted:{asked.origin}"
    assert key not in repr(found)
    assert "lockstep-secret" in repr(found)
