"""The culprit's answer, made as small as it can be and still make the run bad.

It starts from the recorded answer. Where another one is known (of the good run, or of a probe that asked anew), each
place in which the two differ is left as recorded or gets what the other one has there. Then texts, lists and objects
that are left are made smaller by leaving out. Both are delta debugging (`minimal`), and each try is a probe like
others: a program that breaks in another way, since a field is not there, is not the failure that is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lockstep.debugger import edits as editing
from lockstep.debugger import paths, reduced, swaps, trying
from lockstep.debugger.cuts import Cut
from lockstep.debugger.minimal import Chosen
from lockstep.debugger.paths import Place
from lockstep.debugger.search import BAD, Judged
from lockstep.debugger.swaps import Swap
from lockstep.debugger.trying import Purse, Trial
from lockstep.debugger.verdict import Asking, Verdict
from lockstep.log.model import Value
from lockstep.log.store import Store
from lockstep.log.timeline import Timeline

# Free probes that ended at a call which no record answers: with another part of the answer they end there too.
_MISSES = 3

# Makes the probe of an answer, None where it cannot be one.
type Make = Callable[[Value], Cut | None]


def over(
    store: Store, timeline: Timeline, found: Verdict, differing: Sequence[Swap], good: str,
    most: int | None, passes: Sequence[bool], jobs: int = 1,
) -> Asking[Verdict]:  # fmt: skip
    """The verdict with what of its culprit's answer is enough. `most`: how many probes there may be; `passes`: whether
    they are free, for each time that all is tried."""
    if found.effect is None or found.step is None:
        return found
    number = int(found.effect.partition(".")[2])
    effect = timeline.effect(found.step, number)
    others = {swap.at: swap.value for swap in differing if swap.at in found.causes and swap.at != found.effect}
    at = swaps.last(timeline) if found.causes else found.effect
    recorded = editing.taken(timeline, effect)
    other = next((swap.value for swap in differing if swap.at == found.effect), None)
    if other is None and found.other:
        other = swaps.answer_at(store, found.other)

    def make(answer: Value) -> Cut | None:
        if not swaps.can_be_given(timeline, effect, answer):
            return None
        given = {**others, found.effect or "": answer}
        return Cut(at, found.step or 0, number, given, f"shrink-{found.effect}", beside=good)

    purse = Purse(most)
    kept: dict[Place, Any] = {(): recorded}
    if other is not None:
        kept = yield from _differing(recorded, other, make, purse, passes, jobs)
    for place in list(kept):

        def within(value: Any, place: Place = place) -> Cut | None:
            return make(reduced.mixed(recorded, other, {**kept, place: value}))

        kept[place] = yield from _smaller(kept[place], within, purse, passes, jobs)
    answer = reduced.mixed(recorded, other, kept)
    told = {paths.shown(place): value for place, value in reduced.told(recorded, other, kept).items()}
    return msgspec.structs.replace(found, shrunk=told, reproduce=_sets({**others, found.effect: answer}))


def _holds(judged: Judged) -> bool | None:
    return judged == BAD


def _differing(
    recorded: Value, other: Value, make: Make, purse: Purse, passes: Sequence[bool], jobs: int
) -> Asking[dict[Place, Any]]:
    """Of the places in which the two answers differ, those that have to be as recorded, with what is recorded there."""
    places = reduced.differing(recorded, other)
    values = [reduced.at(recorded, place) for place in places]

    def keeping(chosen: Chosen) -> dict[Place, Any]:
        return {places[number]: values[number] for number in sorted(chosen)}

    every = frozenset(range(len(places)))
    # With all of the other answer, and with all of the recorded one, it is known what becomes of the run.
    trial = Trial(
        every,
        {frozenset(): False, every: True},
        lambda chosen: make(reduced.mixed(recorded, other, keeping(chosen))),
        _holds,
        misses=_MISSES,
    )
    return keeping(frozenset((yield from trying.both(trial, purse, passes, jobs)).items))


def _smaller(value: Any, make: Make, purse: Purse, passes: Sequence[bool], jobs: int) -> Asking[Any]:
    """The value with as little in it as is enough, all the way down."""
    every = reduced.pieces(value)
    if not every:
        return value
    whole = frozenset(range(len(every)))

    def cut(chosen: Chosen) -> Cut | None:
        return make(reduced.with_only(value, every, chosen))

    trial = Trial(whole, {whole: True}, cut, _holds, misses=_MISSES)
    chosen = (yield from trying.both(trial, purse, passes, jobs)).items
    value = reduced.with_only(value, every, chosen)
    names: Sequence[Any] = list(value) if isinstance(value, dict) else range(len(value))
    for name in names if isinstance(value, dict | list) else ():

        def within(inner: Any, whole: Any = value, name: Any = name) -> Cut | None:
            return make(_put(whole, name, inner))

        value = _put(value, name, (yield from _smaller(value[name], within, purse, passes, jobs)))
    return value


def _put(value: Any, name: Any, inner: Any) -> Any:
    if isinstance(value, dict):
        return {**value, name: inner}
    return [*value[:name], inner, *value[name + 1 :]]


def _sets(given: Mapping[str, Value]) -> tuple[str, ...]:
    """The edits as `--set` takes them; none where one is no JSON."""
    sets: list[str] = []
    for at, value in given.items():
        try:
            sets.append(f"{at}={msgspec.json.encode(value).decode()}")
        except (TypeError, UnicodeError):
            return ()
    return tuple(sets)
