"""What an adapter is, and which are installed.

An adapter ties one framework to Lockstep: it turns native calls into effects and native checkpoints into steps, and
says how a run of the framework is started again. It is one `Adapter` struct of data and plain functions, in a module
that imports nothing of its framework, and is found by its entry point:

    [project.entry-points."lockstep.adapters"]
    langgraph = "lockstep_langgraph:adapter"

`docs/adapters.md` says how to write one; `lockstep.conformance` has the tests that it must pass.
"""

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later, late_names
from lockstep.adapter.native import Continued, ForkOptions, Native, Played, ReplayOptions
from lockstep.adapter.registry import GROUP, get, installed, of, require

__all__ = [
    "GROUP", "Adapter", "Continued", "ForkOptions", "Later", "Native", "Played", "ReplayOptions", "Steps", "Target",
    "Versions", "Way", "get", "installed", "late_names", "of", "require",
]  # fmt: skip
