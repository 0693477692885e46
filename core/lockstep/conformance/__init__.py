"""The tests that every adapter must pass, and their report.

    lockstep conformance python

An adapter gives them a `Subject`: something that builds an agent of its framework from a `Scenario`, and records,
replays and forks it as its guide says. The rest is here: the world outside of the agent, which counts what really
reached it; the capabilities, a file each in `spec`; and the report. Needs no pytest.
"""

from lockstep.conformance.capabilities import CAPABILITIES
from lockstep.conformance.outside import Opaque, ToolFailed, ause, use
from lockstep.conformance.report import Report
from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.subject import Done, Found, Mode, Subject, Work
from lockstep.conformance.suite import run, run_adapter

__all__ = [
    "CAPABILITIES", "Call", "Done", "Found", "Mode", "Opaque", "Report", "Says", "Scenario", "Subject", "Tool",
    "ToolFailed", "Work", "ause", "run", "run_adapter", "use",
]  # fmt: skip
