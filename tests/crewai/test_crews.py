"""The crews of these tests do without us what they are for; what each kind does is told by `modes`."""

import crew_events
import crews

from lockstep.testing import Provider


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
