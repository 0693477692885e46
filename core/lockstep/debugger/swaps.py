"""The answers in which a bad run and a good one differ, and the good run's as edits of the bad one.

Found by `lockstep.diff`, so what differs between any two live runs (ids, times, a provider's own) is none, and neither
is what a request merely carries on from an answer before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from lockstep.debugger import calls, edits
from lockstep.debugger.cuts import Cut, in_order
from lockstep.debugger.diff import DiffEntry, diff
from lockstep.debugger.search import GOOD
from lockstep.debugger.structure import Change
from lockstep.debugger.verdict import Verdict
from lockstep.errors import EditError
from lockstep.log import address as addresses
from lockstep.log.model import Value
from lockstep.log.store import Store
from lockstep.log.timeline import END, Effect, Step, Timeline, resolve

_EDITS = 3  # values in which two answers differ, for a fork that mends them
_ASKED = 3  # probes that are looked at for what a new answer says
# Where a difference lies in what came back, not in what was asked.
_ANSWERED = ("answer", "parts", "value", "error")


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

    Not among them: what no edit can give, and the answers of other processes.
    """
    place, other = resolve(store, bad), resolve(store, good)
    mine, theirs = _Places(store, place.timeline), _Places(store, other.timeline)
    found: list[tuple[tuple[int, int, int], Swap]] = []
    for entry in diff(bad, good, store=store.path).differences:
        if entry.kind not in ("changed", "moved") or entry.follows or not _answers(entry):
            continue
        kept, given = mine.find(entry.address_a), theirs.find(entry.address_b)
        if kept is None or given is None or kept[0].kind == END or kept[1].stream != place.timeline.stream.id:
            continue
        (step, effect), answered = kept, given[1]
        value = edits.taken(other.timeline, answered)
        if effect.end is None or not can_be_given(place.timeline, effect, value):
            continue
        swap = Swap(
            f"{step.number}.{effect.number}", step.number, effect.number, entry.address_b or "",
            f"{entry.effect} {entry.name}", value, _answers(entry),
        )  # fmt: skip
        found.append(((step.number, effect.end.at, effect.end_seq), swap))
    return tuple(swap for _, swap in sorted(found, key=lambda pair: pair[0]))


def answer_at(store: Store, address: str) -> Value | None:
    """What a call of any run answered, as an edit takes it; None where the address names no one call."""
    place = resolve(store, address)
    if place.step is None:
        return None
    found = _of(place.step, place.effect.number if place.effect is not None else None)
    return edits.taken(place.timeline, found[1]) if found is not None else None


def can_be_given(timeline: Timeline, effect: Effect, value: Value) -> bool:
    """Whether an edit can give this answer."""
    try:
        edits.made(timeline, effect, [("", value)])
    except EditError:
        return False
    return True


class _Places:
    """Where in a run what the addresses of a comparison name is. A step's only effect goes without a number there, and
    of a run of several processes each process's steps are named."""

    def __init__(self, store: Store, timeline: Timeline) -> None:
        self._store = store
        self._timeline = timeline
        self._at: dict[tuple[int, int], tuple[Step, Effect]] = {}
        if len(timeline.streams) > 1:
            self._at = {(one.stream, one.seq): (step, one) for step in timeline.steps for one in step.effects}

    def find(self, address: str | None) -> tuple[Step, Effect] | None:
        if address is None:
            return None
        if not self._at:
            named = addresses.parse(address)
            return _of(self._timeline.step(named.step), named.effect) if named.step is not None else None
        place = resolve(self._store, address)
        if place.step is None:
            return None
        found = _of(place.step, place.effect.number if place.effect is not None else None)
        return self._at.get((found[1].stream, found[1].seq)) if found is not None else None


def _of(step: Step, number: int | None) -> tuple[Step, Effect] | None:
    effects = in_order(step)
    if number is None:
        return (step, effects[0]) if len(effects) == 1 else None
    return next(((step, effect) for effect in effects if effect.number == number), None)


def cuts(timeline: Timeline, swaps: Sequence[Swap], good: str) -> list[Cut]:
    """Cut number i keeps the first i of the bad run's answers and gives the good run's for the others."""
    return [
        Cut(
            last(timeline),
            swaps[kept - 1].step if kept else 0,
            swaps[kept - 1].effect if kept else None,
            {swap.at: swap.value for swap in swaps[kept:]},
            f"good-{kept}",
            beside=good,
        )
        for kept in range(len(swaps) + 1)
    ]


def cut(timeline: Timeline, given: Sequence[Swap], good: str) -> Cut:
    """Gives the good run's answers for these, and keeps all others."""
    edits = {swap.at: swap.value for swap in given}
    return Cut(last(timeline), given[0].step, given[0].effect, edits, f"cure-{len(given)}", beside=good)


def last(timeline: Timeline) -> str:
    """The last step before the end: past the edits, calls are served up to there while keys match."""
    return str(max((step.number for step in timeline.steps if step.kind != END), default=0))


def explained(store: Store, timeline: Timeline, found: Verdict, good: str, swaps: Sequence[Swap]) -> Verdict:
    """The verdict with what the culprit is, and where its answer differs from another one: of the good run, or of the
    nearest probe that asked it anew."""
    if found.step is None:
        return found
    step = timeline.step(found.step)
    effect = next((one for one in step.effects if found.effect == f"{step.number}.{one.number}"), None)
    if effect is not None:
        name = f"{effect.kind} {calls.name(timeline, effect)}"
    else:
        name = f"task {found.task}" if found.task else f"{step.kind} {step.name}".strip()
    swap = next((swap for swap in swaps if swap.at == found.effect), None)
    if swap is not None:
        mended = _with(found, timeline, effect, name=name, changes=_telling_of(swap, swaps, found), other=swap.address)
        if not found.causes:
            return mended
        return msgspec.structs.replace(mended, edits=_together(timeline, found, swaps), fork_at=last(timeline))
    if effect is None:
        return msgspec.structs.replace(found, name=name)
    # The nearest before it first: the least of what led to the call is new there.
    anew = [probe for probe in found.judged(GOOD) if _asks_anew(probe.at, found)]
    nearest = sorted(anew, key=lambda probe: _number(probe.at), reverse=True)[:_ASKED]
    told = [diff(found.run, probe.address, store=store.path).differences for probe in nearest]
    places = _Places(store, timeline)
    differing = [[entry for entry in entries if _answers(entry) and entry.kind != "removed"] for entries in told]
    asked = [entry for entries in differing for entry in entries if places.find(entry.address_a) == (step, effect)]
    if not asked:
        return msgspec.structs.replace(found, name=name)
    like = [entry for entry in differing[0] if entry not in asked and _called(entry) == _called(asked[0])]
    changes = _telling(asked, like)
    return _with(found, timeline, effect, name=name, changes=changes, other=asked[0].address_b or "")


def _with(
    found: Verdict, timeline: Timeline, effect: Effect | None, *, name: str, changes: tuple[Change, ...], other: str
) -> Verdict:
    """The verdict with what is known of the culprit's answer, and the edits that give it the other one."""
    told = _mending(timeline, effect, changes) if effect is not None and len(changes) <= _EDITS else ()
    sets = tuple(f"{found.effect}:{path}={value}" if path else f"{found.effect}={value}" for path, value in told)
    return msgspec.structs.replace(found, name=name, changes=changes, other=other, edits=sets)


def _telling_of(swap: Swap, swaps: Sequence[Swap], found: Verdict) -> tuple[Change, ...]:
    """Where one of the answers differs, but for what differs in others of such calls too, which do no harm."""
    harmless = [one for one in swaps if one.at not in (swap.at, *found.causes) and one.name == swap.name]
    usual = {change.path for one in harmless for change in one.changes}
    return tuple(change for change in swap.changes if change.path not in usual) or swap.changes


def _together(timeline: Timeline, found: Verdict, swaps: Sequence[Swap]) -> tuple[str, ...]:
    """The edits of all causes, none where they cannot be told for each."""
    sets: list[str] = []
    for swap in (swap for at in found.causes for swap in swaps if swap.at == at):
        telling = _telling_of(swap, swaps, found)
        effect = timeline.effect(swap.step, swap.effect)
        told = _mending(timeline, effect, telling) if len(telling) <= _EDITS else ()
        if not told:
            return ()
        sets += [f"{swap.at}:{path}={value}" if path else f"{swap.at}={value}" for path, value in told]
    return tuple(sets)


def _mending(timeline: Timeline, effect: Effect, changes: Sequence[Change]) -> tuple[tuple[str, str], ...]:
    """Place and value of each, as `--set` takes them; none where one of them is not known whole, or can't be given."""
    told = tuple((change.path.removeprefix("answer").removeprefix("."), change.b) for change in changes)
    try:
        edits.made(timeline, effect, [(path, json.loads(value)) for path, value in told])
    except (ValueError, EditError):
        return ()
    return told if not any("…" in value for _, value in told) else ()


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


def _asks_anew(at: str, found: Verdict) -> bool:
    """Whether a probe that left there may have asked for the culprit's answer. Where probes are repeated, others are
    good too: those that were rescued."""
    step, *effect = _number(at)
    if found.step is None or step != found.step:
        return found.step is not None and step < found.step
    return bool(effect) and at != found.effect


def _number(at: str) -> tuple[int, ...]:
    return tuple(int(part) for part in at.partition("-")[0].split(".") if part.isdigit())
