"""The prior of a search: weights of steps, by what the run's outcome says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import lockstep
from lockstep.debugger import belief as beliefs
from lockstep.debugger import cuts, listing, prior, search
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline, resolve

PLACE = 5  # the step whose answer the run prints


@lockstep.tool(effect="read")
def price(of: int) -> dict[str, Any]:
    return {"item": f"lamp-{of}", "cents": 7000 + 37 * of}


def agent(*_: object) -> None:
    found = [price(number) for number in range(1, 9)]
    print("paid", found[PLACE - 1]["cents"])


@pytest.fixture
def weights(record: Callable[..., str]) -> tuple[Sequence[float], Sequence[float]]:
    name = record("prices", agent)
    with open_store(None) as store:
        timeline: Timeline = resolve(store, name).timeline
        return prior.prior(timeline, name), prior.of_cuts(timeline, cuts.of_run(timeline), name)


def test_the_step_that_said_it_weighs_most_and_no_step_less_than_half_of_an_even_share(
    weights: tuple[Sequence[float], Sequence[float]],
) -> None:
    for found, culprit in zip(weights, (PLACE, PLACE - 1), strict=True):
        assert sum(found) == pytest.approx(1.0)
        assert max(range(len(found)), key=found.__getitem__) == culprit
        assert found[culprit] > 0.5
        assert min(found) == pytest.approx(0.5 / len(found))


def test_the_weights_are_what_a_search_that_repeats_probes_takes(
    weights: tuple[Sequence[float], Sequence[float]],
) -> None:
    told = beliefs.begun(len(weights[1]), weights[1])
    even = beliefs.begun(len(weights[1]))
    assert beliefs.posterior(told)[PLACE] > 4 * beliefs.posterior(even)[PLACE]


@pytest.mark.parametrize("culprit", range(1, 9))
def test_a_wrong_guess_is_overcome(weights: tuple[Sequence[float], Sequence[float]], culprit: int) -> None:
    belief = beliefs.begun(8, weights[1])
    made = 0
    while beliefs.settled(belief, 0.95) is None:
        at = beliefs.following(belief)[0]
        belief = beliefs.told(belief, at, search.BAD if at >= culprit else search.GOOD)
        made += 1
        assert made < beliefs.most(8)
    assert beliefs.settled(belief, 0.95) == (culprit, culprit)


def lost(*_: object) -> None:
    raise KeyError({"found": price(1)}["lamp"])


def test_the_end_of_a_run_is_shown_with_what_it_raised(record: Callable[..., str]) -> None:
    name = record("lost", lost)
    with open_store(None) as store:
        timeline: Timeline = resolve(store, name).timeline
        found = listing.show(resolve(store, f"{name}:{timeline.steps[-1].number}"))
    assert isinstance(found.outcome, dict)
    assert found.outcome["error"] == "KeyError: 'lamp'"
