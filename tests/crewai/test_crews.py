"""The crews, flows and agents of these tests do without us what their tables say."""

import crew_events
import crews
import pytest

from lockstep.testing import Provider


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_each_kind_runs_without_us(kind: crews.Kind, provider: Provider) -> None:
    assert kind.how(kind.make())
    assert provider.requests == kind.requests
    assert sorted(crews.ran) == sorted(kind.tools)


def test_a_streaming_crew_speaks_in_pieces(provider: Provider, heard: crew_events.Heard) -> None:
    kind = crews.named("streaming")
    kind.how(kind.make())
    told, pieces = heard.taken()
    assert told["llm_call_completed"] == kind.requests
    assert ("writer", " customer") in pieces


def test_parallel_tools_end_in_another_order_than_they_began(provider: Provider) -> None:
    kind = crews.named("parallel")
    kind.how(kind.make())
    assert tuple(crews.ran) == kind.tools
