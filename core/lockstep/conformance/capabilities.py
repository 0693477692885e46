"""What every adapter must be able to do, in the order in which it is tried. Each is a file of `spec`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

CAPABILITIES = (
    "records_steps",
    "replays_identical_offline",
    "no_tool_on_replay",
    "concurrent_identical_calls",
    "streams",
    "failures_and_retries",
    "changed_call_diverges",
    "output_diverges",
    "recorded_equals_unrecorded",
    "recorder_fault_is_harmless",
    "unserialisable_values",
    "secrets_absent",
    "interrupted_recording",
    "continued_turns",
    "sync_and_async",
    "fork_every_step",
    "edit_reaches_agent",
    "refused_side_effects",
    "planted_fault_found",
)


def check(capability: str) -> Callable[[Any], None] | None:
    """The test of one mode, given its `Stage`; None where all modes are tried together."""
    return getattr(_module(capability), "check", None)


def across(capability: str) -> Callable[[Sequence[Any]], None] | None:
    """The test of all modes together, given a `Stage` of each."""
    return getattr(_module(capability), "across", None)


def told(capability: str) -> str:
    """What the capability means, in a line."""
    return (_module(capability).__doc__ or "").splitlines()[0]


def _module(capability: str) -> Any:
    return import_module(f"lockstep.conformance.spec.{capability}")
