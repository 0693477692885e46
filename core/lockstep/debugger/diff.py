"""What two runs did differently: `lockstep.diff` and `lockstep diff`.

    found = lockstep.diff("refund", "refund-2")
    found.same, found.first, found.differences

Reads the log only: nothing runs, nothing stored is executed. Payloads are read where digests differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lockstep.debugger import call_differences, run_differences, sides
from lockstep.debugger.entries import Diff, DiffEntry, Timing
from lockstep.debugger.ledger import Ledger
from lockstep.debugger.pairing import Pairs, pair, pair_steps
from lockstep.debugger.sides import Call, Side
from lockstep.errors import AddressError, Code
from lockstep.log.store import open_store
from lockstep.log.timeline import END, INPUT, Place

__all__ = ["Diff", "DiffEntry", "Timing", "diff"]


def diff(
    a: str, b: str, *, store: str | os.PathLike[str] | None = None, exact: bool = False, times: bool = False,
    reads: bool = False,
) -> Diff:  # fmt: skip
    """Compares two runs, or two steps or effects of runs, by their addresses.

    store  path of the store; by default as on the command line
    exact  counts everything, also ids, moments and headers that no two live runs share
    times  also compares durations and the pieces of streams, which never count
    reads  also compares how often clocks, random sources and the environment were read, and what they gave

    Raises AddressError (LS205, LS206) for what names nothing, or for a run against a step, and StoreError (LS201,
    LS202, LS204).
    """
    with open_store(store) as opened:
        place_a, place_b = sides.read(opened, a), sides.read(opened, b)
        if (place_a.step is None) != (place_b.step is None):
            whole, part = (a, b) if place_a.step is None else (b, a)
            raise AddressError(
                Code.NO_ADDRESS, f"{whole} is a run and {part} a step of one: compare two runs, or two steps"
            )
        one, other = Side(place_a, opened), Side(place_b, opened)
        ledger = Ledger(one, other, exact=exact)
        pairs = _steps(ledger, place_a, place_b) if place_a.step is not None else _runs(ledger, reads=reads)
        found = ledger.entries()
        return Diff(
            same=not found,
            first=found[0] if found else None,
            differences=found,
            left_out=ledger.left_out(),
            times=_times(one, other, pairs) if times else (),
            steps=(one.numbered, other.numbered),
        )


def _runs(ledger: Ledger, *, reads: bool) -> Pairs:
    pairs = pair(ledger.a, ledger.b)
    run_differences.inputs(ledger)
    call_differences.compare(ledger, pairs)
    run_differences.strands(ledger, pairs)
    run_differences.outputs(ledger, pairs)
    run_differences.ends(ledger)
    run_differences.coverage(ledger)
    if reads:
        run_differences.reads(ledger, pairs)
    return pairs


def _steps(ledger: Ledger, a: Place, b: Place) -> Pairs:
    pairs = pair_steps(ledger.a, ledger.b, _calls(ledger.a, a), _calls(ledger.b, b))
    kinds = {place.step.kind for place in (a, b) if place.step is not None and place.effect is None}
    if kinds == {INPUT}:
        run_differences.inputs(ledger)
    call_differences.compare(ledger, pairs)
    if kinds == {END}:
        run_differences.ends(ledger)
    return pairs


def _calls(side: Side, place: Place) -> list[Call]:
    """The calls of a step, or the one that the address names."""
    step = place.step.number if place.step is not None else -1
    number = place.effect.number if place.effect is not None else 0
    found = [call for lane in side.lanes.values() for call in lane.calls if call.step == step]
    if number:
        found = [call for call in found if call.number in (number, 0)]
    return sorted(found, key=lambda call: (call.lane, call.pos))


def _times(one: Side, other: Side, pairs: Pairs) -> tuple[Timing, ...]:
    found = []
    for first, second in [*pairs.calls, *pairs.moved]:
        took = _took(first), _took(second)
        if first.kind != "step" and (took[0] != took[1] or len(first.parts) != len(second.parts)):
            found.append(
                Timing(one.at_call(first), other.at_call(second), first.kind, first.name, *took, len(first.parts),
                       len(second.parts))
            )  # fmt: skip
    by: Callable[[Timing], Any] = lambda timing: -abs((timing.a or 0) - (timing.b or 0))  # noqa: E731
    return tuple(sorted(found, key=by))


def _took(call: Call) -> int | None:
    return call.end_at - call.at if call.status is not None else None
