"""A crew, flow and agent of each kind does again what it did, with its provider stopped and none of its tools run: its
result, its steps, what listeners are told, the pieces of streams, the tokens."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import crew_events
import crew_runs
import crews
import pytest

import lockstep
import lockstep_crewai
from lockstep.testing import Provider


def _by_speaker(pieces: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Of each agent by itself: they may speak at once."""
    found = defaultdict(list)
    for role, piece in pieces:
        found[role].append(piece)
    return dict(found)


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_each_kind_replays_without_a_request_or_a_tool(
    kind: crews.Kind, provider: Provider, heard: crew_events.Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(kind.make())
        return made[-1]

    run, result = crew_runs.recorded(crews.Kind(make, kind.how, kind.run, kind.requests))
    told, pieces = heard.taken()
    assert provider.requests == kind.requests
    crew_runs.silence(provider, monkeypatch)

    replay = lockstep.replay(run, make)
    crew_runs.is_again(replay, result)
    told_again, pieces_again = heard.taken()
    assert crews.ran == []
    assert told_again == told
    assert _by_speaker(pieces_again) == _by_speaker(pieces)
    assert crews.used(made[1]) == crews.used(made[0])
    assert provider.requests == kind.requests


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", ["paying-for_each_async"])
def test_identical_calls_with_different_answers_replay_identical_20_of_20_times(
    name: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = crews.named(name)
    provider.jitter = (0.0, 0.02)
    results = []
    for n in range(20):
        target: Any = lockstep_crewai.wrap(kind.make(), run=f"crewai/n{n}")
        results.append(kind.how(target))
    crew_runs.silence(provider, monkeypatch)
    for n, result in enumerate(results):
        assert len({str(one) for one in result}) == len(crews.THREE)
        crew_runs.is_again(lockstep.replay(f"crewai/n{n}", kind.make), result)
    assert crews.ran == []
