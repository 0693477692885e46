"""What a fork's tail would do, told before it runs: which calls go out for real, which would be refused.

Read from the calls that the recorded run made after the fork point. A tail may make others; those are decided by the
same rules when they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import msgspec

from lockstep.debugger import calls
from lockstep.log.model import Value
from lockstep.log.native import UNASKED
from lockstep.log.timeline import STEP, Effect, Timeline
from lockstep.session.policy import CLASSES, Declared, EffectClass, Policy, decide, judge
from lockstep.session.refusal import called
from lockstep.session.unused import UNANSWERABLE


class Expected(msgspec.Struct, frozen=True):
    """Calls of one name.

    name     as `lockstep log` has it
    times    how often the recorded run made it
    first    address of the first of them, without the run: `7.1`
    flag     what `--live` allows it by
    changing names of calls inside it that are not known to be harmless
    """

    kind: str
    name: str
    effect_class: EffectClass
    times: int
    first: str
    flag: str
    changing: tuple[str, ...] = ()


class Preview(msgspec.Struct, frozen=True):
    """The calls of a recorded tail, by what would become of them, each group in the order recorded.

    live     they run for real
    reused   they are answered from the record where they ask the same, and else run for real
    refused  they are answered from the record where they ask the same, and else refused
    stopped  they are refused, since the record cannot answer for them
    """

    live: tuple[Expected, ...] = ()
    reused: tuple[Expected, ...] = ()
    refused: tuple[Expected, ...] = ()
    stopped: tuple[Expected, ...] = ()


# What reaches nobody: of a workflow, what came by itself comes again, and a timer's time passes at once.
_NO_CALLS = UNASKED | {STEP}


class _Group:
    """Calls of one name while they are counted."""

    __slots__ = ("changing", "effect_class", "first", "flag", "kind", "name", "times")

    def __init__(self, kind: str, name: str, effect_class: EffectClass, first: str, flag: str) -> None:
        self.kind = kind
        self.name = name
        self.effect_class = effect_class
        self.first = first
        self.flag = flag
        self.times = 0
        self.changing: dict[str, None] = {}

    def done(self) -> Expected:
        return Expected(
            self.kind, self.name, self.effect_class, self.times, self.first, self.flag, tuple(self.changing)
        )  # fmt: skip


def preview(timeline: Timeline, after: int, policy: Policy) -> Preview:
    """What would become of the calls that completed after step `after`, or never."""
    groups: dict[tuple[str, ...], _Group] = {}
    for step in timeline.steps[after + 1 :]:
        for effect in step.effects:
            if effect.kind in _NO_CALLS:
                continue
            request = timeline.request(effect)
            found = _judged(timeline, effect, request, policy)
            fate = _fate(policy, found.effect, effect, request)
            flag = called(effect.kind, effect.name, request)
            at = (fate, effect.kind, flag, found.effect)
            group = groups.get(at)
            if group is None:
                name = flag if effect.kind == calls.MODEL else effect.name
                first = f"{step.number}.{effect.number}"
                group = groups[at] = _Group(effect.kind, name, found.effect, first, flag)
            group.times += 1
            if fate == "live":
                for child in _below(effect.children):
                    inner = _judged(timeline, child, timeline.request(child), policy)
                    if inner.effect not in ("read", "inference"):
                        group.changing[f"{child.kind} {child.name}"] = None
    by_fate: dict[str, list[Expected]] = {}
    for (fate, *_), group in groups.items():
        by_fate.setdefault(fate, []).append(group.done())
    return Preview(**{fate: tuple(found) for fate, found in by_fate.items()})


def _judged(timeline: Timeline, effect: Effect, request: Value, policy: Policy) -> Declared:
    """The class of a recorded call under the rules of now."""
    stored = timeline.effect_class(effect)
    declared = next((Declared(known, "in the recording") for known in CLASSES if known == stored), None)
    return judge(effect.kind, effect.name, request, declared, policy.rules)


def _fate(policy: Policy, effect_class: str, effect: Effect, request: Value) -> str:
    equal, other = (
        decide(policy, effect_class, effect.kind, effect.name, recorded, request)
        for recorded in (effect.kind not in UNANSWERABLE, False)
    )
    return _FATES[equal, other]


_FATES = {
    ("live", "live"): "live",
    ("reuse", "live"): "reused",
    ("reuse", "refuse"): "refused",
    ("refuse", "refuse"): "stopped",
}


def _below(children: Iterable[Effect]) -> Iterable[Effect]:
    for child in children:
        yield from chain((child,), _below(child.children))
