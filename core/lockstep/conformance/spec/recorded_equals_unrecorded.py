"""A recorded agent gets, says, raises and asks what it does without Lockstep."""

from __future__ import annotations

from lockstep.conformance.spec.failures_and_retries import AGAIN, ENDS
from lockstep.conformance.spec.no_tool_on_replay import PAYS
from lockstep.conformance.spec.streams import BROKEN, STREAMS
from lockstep.conformance.stage import Stage


def check(stage: Stage) -> None:
    for scenario in (PAYS, STREAMS, BROKEN, AGAIN, ENDS):
        plain = stage.plain(scenario, same=True)
        recorded = stage.record(scenario, same=True)
        for field in ("outputs", "error", "pieces"):
            without, within = getattr(plain.done, field), getattr(recorded.done, field)
            stage.expect(without == within, f"{scenario.name}: {field} are {without}, and recorded {within}")
        stage.expect(
            plain.seen == recorded.seen,
            f"{scenario.name}: the world was asked {plain.seen}, and of the recorded agent {recorded.seen}",
        )
