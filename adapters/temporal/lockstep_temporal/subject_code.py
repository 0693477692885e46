"""What the conformance tests' agent is made of at the moment: the scenario, and how it is run. And what it has heard.

The workflow reads it as its own code, not as an input: an agent with another prompt is changed code. That is why the
sandbox passes this module through.
"""

from __future__ import annotations

import msgspec

from lockstep.conformance.scenario import Scenario


class Code(msgspec.Struct, frozen=True):
    """local  whether tools are local activities"""

    scenario: Scenario
    local: bool = False


_now = Code(Scenario("", ()))
heard: list[str] = []  # the pieces in the stream of the workflow that ran last, as it has them itself


def now() -> Code:
    """The code that a workflow which begins now has."""
    return _now


def change(code: Code) -> None:
    """From here on workflows have this code."""
    global _now
    _now = code
