"""The branches of a run as people read them: a tree under its steps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from lockstep.debugger import branches, words
from lockstep.debugger.lines import Line, safe
from lockstep.log import address as addresses
from lockstep.log.address import MAIN
from lockstep.log.model import RunState

STATES: dict[str, str] = {
    RunState.COMPLETE: "good",
    RunState.FAILED: "bad",
    RunState.INTERRUPTED: "warn",
    RunState.GROWING: "warn",
    RunState.REFUSED: "bad",
}

_FORKS = 20  # branches that are listed without --all


def lines(found: Sequence[branches.Fork], path: str, branch: str, *, everything: bool) -> list[Line]:
    """The branches that come from a branch, as a tree below its steps. `path`: the run as it stands in an address."""
    above = str(addresses.Address(path, branch))
    shown = found if everything else found[:_FORKS]
    listed = {one.address: one for one in shown}
    told: list[Line] = []
    for one in shown:
        parent = addresses.parse(one.parent)
        # What comes from a branch in this list stands below it.
        depth = _depth(one, listed, above)
        where = one.parent.removeprefix(path) if depth == 0 and parent.branch == branch else one.parent
        where = where.removeprefix(f"@{addresses.quote(branch)}") if branch != MAIN else where
        left = ", ".join(part for part in (safe(where or one.parent), given(one)) if part)
        told.append([
            f"{'   ' * depth}└─ ", (safe(one.address), "strong"), f"  from {left}   ",
            (came(one), STATES.get(one.state, "bad")),
        ])  # fmt: skip
        if one.latest:
            told[-1] = [*told[-1], "   ", ("latest", "good")]
        if one.problem:
            told.append([f"{'   ' * depth}   {safe(one.problem)}"])
    if len(found) > len(shown):
        name = shlex.quote(above)
        told.append([f"└─ {len(found) - len(shown)} more branches: lockstep log {safe(name)} --all"])
    return told


def _depth(one: branches.Fork, listed: Mapping[str, branches.Fork], above: str) -> int:
    depth = 0
    while depth < len(listed):
        parent = addresses.parse(one.parent)
        address = str(addresses.Address(parent.path, parent.branch))
        if address == above or address not in listed:
            break
        one = listed[address]
        depth += 1
    return depth


def given(fork: branches.Fork) -> str:
    """What a branch was given."""
    return words.number(len(fork.edits), "edit") if fork.edits else ""


def came(fork: branches.Fork) -> str:
    """What came of a branch: how its calls were answered, and how it ended where that is not well."""
    counts = (("live", fork.live), ("reused", fork.reused), ("refused", len(fork.refused)))
    told = [f"{name} {count}" for name, count in counts if count]
    if not told and fork.own:
        told.append(words.number(fork.own, "step"))
    if fork.state not in (RunState.COMPLETE, RunState.REFUSED):
        told.append(fork.state)
    return ", ".join(told)
