"""The tests' own server: real, one for all, and gone when they are."""

from __future__ import annotations

import kitchen_sink as sink
from live_server import Server, run


def test_workflows_run_on_a_real_server(temporal_server: Server) -> None:
    ran = run(temporal_server, sink.Steps.run, 3, workflows=[sink.Steps], activities=[sink.add])

    assert ran.result == [1, 3, 6]
    assert '"EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"' in ran.history
