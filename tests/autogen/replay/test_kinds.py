"""A team of each kind does again what it did, with its provider stopped and none of its tools run."""

import pytest
import runs
import teams

import lockstep
from lockstep.testing import Provider


@pytest.mark.parametrize("kind", teams.KINDS, ids=teams.labelled)
def test_a_team_of_each_kind_replays_without_a_request_or_a_tool(
    kind: teams.Kind, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, result = runs.recorded(kind)
    runs.silence(provider, monkeypatch)
    replay = lockstep.replay(run, kind.make)
    runs.is_again(replay, result)
    assert teams.ran == []


@pytest.mark.parametrize("name", ["streaming", "reflecting"])
def test_who_reads_a_replayed_stream_gets_the_same_pieces(
    name: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = teams.named(name)
    read: list[list[str]] = []

    def watched() -> teams.Team:
        team = kind.make()
        plain = team.run_stream
        pieces: list[str] = []
        read.append(pieces)

        async def run_stream(**options: object) -> object:
            async for event in plain(**options):
                pieces.extend(teams.pieces([event]))
                yield event

        team.run_stream = run_stream
        return team

    run, _ = runs.recorded(teams.Kind(watched, kind.speakers, kind.stop, kind.requests, kind.tools))
    runs.silence(provider, monkeypatch)
    assert lockstep.replay(run, watched).identical
    assert len(read[0]) > 1
    assert read[0] == read[1]
