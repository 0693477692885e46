"""The answers in which a bad run and a good one differ, and the good run's as edits of the bad one.

Found by `lockstep.diff`, so what differs between any two live runs (ids, times, a provider's own) is none, and neither
is what a request merely carries on from an answer before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lockstep.debugger import calls
from lockstep.debugger.cuts import Cut, in_order
from lockstep.debugger.diff import DiffEntry, diff
from lockstep.debugger.search import GOOD
from lockstep.debugger.structure import Change
from lockstep.debugger.verdict import Verdict
from lockstep.log import address as addresses
from lockstep.log.address import Address
from lockstep.log.model import Status, Value
from lockstep.log.store import Store
from lockstep.log.timeline import Effect, Step, Timeline, resolve

_ASKED = 3  # probes that are looked at for what a new answer says
_ANSWERED = ("answer", "parts", "value")  # where a difference lies in what came back, and not in what was asked


class Swap(msgspec.Struct, frozen=True):
    """One answer that differs.

    at       where in the bad run: `7.1`; `step`, `effect`: the same as numbers
    address  in the good run
    value    what was answered there, as an edit takes it
    changes  where the two differ: a of the bad run, b of the good one
    """

    at: str
    step: int
    effect: int
    address: str
    name: str
    value: Value
    changes: tuple[Change, ...]


def between(store: Store, bad: str, good: str) -> tuple[Swap, ...]:
    """All of them, in the order in which the bad run got them. The first is where the two runs part.

    Not among them: answers that raised in one of the runs, which no edit can give.
    """
    found: list[tuple[tuple[int, int, int], Swap]] = []
    place, other = resolve(store, bad), resolve(store, good)
    for entry in diff(bad, good, store=store.path).differences:
        if entry.kind not in ("changed", "moved") or entry.follows or not _answers(entry):
            continue
        if addresses.parse(entry.address_a or "").path != place.address.path:
            continue  # of another process, whose answers no edit can reach
        step, effect = _effect(place.timeline, entry.address_a or "")
        _, answered = _effect(other.timeline, entry.address_b or "")
        if effect is None or answered is None or Status.ERROR in (effect.status, answered.status):
            continue
        value = calls.read(other.timeline, answered).outcome
        at = f"{step.number}.{effect.number}"
        swap = Swap(at, step.number, effect.number, entry.address_b or "", f"{entry.effect} {entry.name}", value,
                    _answers(entry))  # fmt: skip
        found.append(((step.number, effect.end.at if effect.end is not None else 0, effect.end_seq), swap))
    return tuple(swap for _, swap in sorted(found, key=lambda pair: pair[0]))


def cuts(timeline: Timeline, swaps: Sequence[Swap]) -> list[Cut]:
    """Cut number i keeps the first i of the bad run's answers and gives the good run's for the others."""
    last = str(max(0, len(timeline.steps) - 2))  # the step before the end: served past the edits while keys match
    return [
        Cut(
            last,
            swaps[kept - 1].step if kept else 0,
            swaps[kept - 1].effect if kept else None,
            {swap.at: swap.value for swap in swaps[kept:]},
            f"good-{kept}",
        )
        for kept in range(len(swaps) + 1)
    ]


def explained(store: Store, timeline: Timeline, found: Verdict, good: str, swaps: Sequence[Swap]) -> Verdict:
    """The verdict with what the culprit is, and where its answer differs from another one: of the good run, or of the
    nearest probe that asked it anew."""
    if found.step is None:
        return found
    step = timeline.step(found.step)
    effect = next((one for one in step.effects if found.effect == f"{step.number}.{one.number}"), None)
    name = f"{effect.kind} {calls.name(timeline, effect)}" if effect is not None else f"{step.kind} {step.name}".strip()
    swap = next((swap for swap in swaps if swap.at == found.effect), None)
    if swap is not None:
        return msgspec.structs.replace(found, name=name, changes=swap.changes, other=swap.address)
    if effect is None:
        return msgspec.structs.replace(found, name=name)
    # The nearest before it first: the least of what led to the call is new there.
    nearest = sorted(found.judged(GOOD), key=lambda probe: _number(probe.at), reverse=True)[:_ASKED]
    told = [diff(found.run, probe.address, store=store.path).differences for probe in nearest]
    at = {f"{found.run}:{step.number}", f"{found.run}:{step.number}.{effect.number}"}
    asked = [entry for entries in told for entry in entries if entry.address_a in at and _answers(entry)]
    if not asked:
        return msgspec.structs.replace(found, name=name)
    like = [entry for entry in told[0] if entry.address_a not in at and _called(entry) == _called(asked[0])]
    return msgspec.structs.replace(found, name=name, changes=_telling(asked, like), other=asked[0].address_b or "")


def _called(entry: DiffEntry) -> tuple[str, str]:
    return entry.effect, entry.name


def _telling(asked: Sequence[DiffEntry], like: Sequence[DiffEntry]) -> tuple[Change, ...]:
    """Of all in which the first new answer differs from the recorded one, what tells something: in which all new
    answers agree, and which is not another one in every call of the kind."""
    changes = _answers(asked[0])
    others = [{change.path: change.b for change in _answers(entry)} for entry in asked[1:]]
    agreed = [change for change in changes if all(other.get(change.path) == change.b for other in others)]
    usual = {change.path for entry in like for change in _answers(entry)}
    telling = [change for change in agreed or changes if change.path not in usual]
    return tuple(telling or agreed or changes)


def _answers(entry: DiffEntry) -> tuple[Change, ...]:
    """What differs in what came back."""
    return tuple(change for change in entry.changes if change.path.partition(".")[0].partition("[")[0] in _ANSWERED)


def _effect(timeline: Timeline, address: str) -> tuple[Step, Effect | None]:
    """The effect that an address in a difference names: a step's only one goes without a number there."""
    place: Address = addresses.parse(address)
    step = timeline.step(place.step or 0)
    effects = in_order(step)
    if place.effect is None:
        return step, effects[-1] if len(effects) == 1 else None
    return step, next((effect for effect in effects if effect.number == place.effect), None)


def _number(at: str) -> tuple[int, ...]:
    return tuple(int(part) for part in at.split(".") if part.isdigit())
