"""What a fork is to be, worked out before anything runs: where it leaves, and which answers are edited. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from lockstep.debugger import edits as editing
from lockstep.debugger.edits import Edit as Asked
from lockstep.errors import AddressError, Code, TargetError
from lockstep.log.address import Address
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.roll import LAUNCH
from lockstep.log.timeline import END, Effect, Place, Step, Timeline
from lockstep.session.policy import Policy
from lockstep.session.tail import Edit, Plan
from lockstep.session.tape import PROCESS

SPEAKS = "speaks"  # of a process's request: the language that it is spoken to in


def plan(place: Place, branch: str, edits: Sequence[Asked], policy: Policy) -> Plan:
    """The plan of a fork that leaves at `place` for `branch`.

    Raises AddressError LS206 for a place that is no step, and for an edit of one that lies after it or in another
    run; EditError LS212, LS213; TargetError LS402 where another process of the run was at work there, or made the
    call that is to be edited, and where the program was in the middle of a conversation with a process.
    """
    timeline = place.timeline
    until = cut_of(place)
    upto = until
    edited: list[Edit] = []
    for pos, (effect, given) in grouped(place, editing.numbered(timeline, edits), _find).items():
        first = first_piece(timeline, effect)
        in_time(place, given[0], first, until)
        upto = min(upto, first - 1) if first is not None else upto
        pieces = editing.made(timeline, effect, [(asked.path, asked.value) for asked in given], given[0].address)
        edited.append(Edit(pos, {editing.told(asked): asked.value for asked in given}, pieces))
    _alone(timeline, upto)
    _between_conversations(timeline, upto)
    thread = place.address.path.removeprefix(timeline.reader.info.name)
    return Plan(branch, place.address.branch, f"{thread}{origin_of(place)}", upto, until, tuple(edited), policy)


def origin_of(place: Place) -> str:
    """The place that a fork leaves, without the run: ":7", ":7.1"."""
    address = place.address
    return f":{address.step}" + (f".{address.effect}" if place.effect is not None else "")


def grouped(
    place: Place, edits: Iterable[Asked], find: Callable[[Timeline, str], Effect] = editing.find
) -> dict[int, tuple[Effect, list[Asked]]]:
    """The edits of a fork by the effect that they are of: its first position -> itself, and its edits in their order.

    find   gives the effect at an address as edits have it, without the run

    Raises AddressError LS206 for an edit of another run, and what `find` does.
    """
    found: dict[int, tuple[Effect, list[Asked]]] = {}
    for asked in edits:
        of_this_run(place, asked)
        effect = find(place.timeline, asked.address)
        found.setdefault(effect.begin.pos, (effect, []))[1].append(asked)
    return found


def of_this_run(place: Place, asked: Asked) -> None:
    """Raises AddressError LS206 for an edit that names another run than the one that is forked."""
    address, timeline = place.address, place.timeline
    named = str(Address(address.path, address.branch))
    # A run that a framework keeps itself is one, whichever thread of it the address names.
    whole = str(Address(timeline.reader.info.name, address.branch)) if timeline.is_native else named
    if asked.run not in ("", named, whole):
        raise AddressError(Code.NO_ADDRESS, f"{asked.run}:{asked.address} is another run's: this fork edits {named}")


class Edited(msgspec.Struct, frozen=True):
    """What is edited in a fork of a run that a framework keeps itself.

    answers  of calls, as the tail of a fork gives them
    told     as they were given, by address
    first    position of the first event that no branch with them can share (`first_of`), None where nothing is edited
    """

    answers: tuple[Edit, ...] = ()
    told: Mapping[str, Value] = {}
    first: int | None = None


def first_of(timeline: Timeline, effects: Iterable[Effect]) -> int | None:
    """Position of the first that came of any of these calls, None where nothing did. Of one that was asked in the same
    step, where it was asked: else what was asked beside it and answered before would come before it in the branch, and
    have its number."""
    found = (_came(timeline, effect) for effect in effects)
    return min((pos for pos in found if pos is not None), default=None)


def _came(timeline: Timeline, effect: Effect) -> int | None:
    seqs = [*effect.parts, *([effect.end_seq] if effect.end is not None else [])]
    first = min((_position(timeline, seq) for seq in seqs), default=None)
    if first is None:
        return None
    steps = (event.pos for _, event in timeline.reader.heads(timeline.stream.id) if event.kind is Kind.STEP)
    return first if any(effect.begin.pos < pos < first for pos in steps) else effect.begin.pos


def in_time(place: Place, asked: Asked, answered: int | None, until: int) -> None:
    """Raises AddressError LS206 for an edit of what is `answered` at a position past `until`, where the fork leaves."""
    if answered is not None and answered > until:
        raise AddressError(
            Code.NO_ADDRESS,
            f"{asked.address} is answered only after {place.address}: a fork edits what comes before it",
        )


def _find(timeline: Timeline, address: str) -> Effect:
    effect = editing.find(timeline, address)
    if effect.stream != timeline.stream.id:
        raise TargetError(
            Code.BAD_TARGET,
            f"{address} is a call of another process ({effect.lane}): a fork edits those of its first one",
        )
    return effect


def cut_of(place: Place, within: int | None = None) -> int:
    """The position up to which a place's past lies: `within`, where that comes before."""
    found = _cut_of(place)
    return found if within is None else min(found, within)


def step_of(place: Place) -> Step:
    """The step that a fork leaves at. Raises AddressError LS206 for a place that is none."""
    if place.step is None:
        raise AddressError(
            Code.NO_ADDRESS, f"a fork leaves at a step: {place.address}:N. See: lockstep log {place.address}"
        )
    return place.step


def _cut_of(place: Place) -> int:
    timeline, step = place.timeline, step_of(place)
    if place.effect is not None:
        if place.effect.end is None:
            return _last(timeline)
        return place.effect.end.pos
    if step.kind == END:
        return _last(timeline)
    if step.stream != timeline.stream.id:
        raise TargetError(
            Code.BAD_TARGET,
            f"{place.address} was closed by another process of the run: fork at one of its first process's",
        )
    if step.number == 0 and timeline.native is None and not timeline.is_native:
        # What the taps noted of their surroundings may come before it.
        heads = timeline.reader.heads(timeline.stream.id)
        return next((event.pos for _, event in heads if event.kind is Kind.START), 1)
    return _position(timeline, step.seq)


def first_piece(timeline: Timeline, effect: Effect) -> int | None:
    """The position at which the program began to get an effect's outcome; None where it never did. Of one that it
    gave up, that at which it asked: what made it give up lies between."""
    if effect.parts:
        return _position(timeline, effect.parts[0])
    if effect.status in (Status.CANCELLED, Status.CLOSED):
        return effect.begin.pos + 1
    return effect.end.pos if effect.end is not None else None


def _last(timeline: Timeline) -> int:
    return max(
        (event.pos for _, event in timeline.reader.heads(timeline.stream.id) if event.kind is not Kind.FINISH),
        default=0,
    )


def _position(timeline: Timeline, seq: int) -> int:
    _, event = next(iter(timeline.reader.heads(timeline.stream.id, seq, seq + 1)))
    return event.pos


def _alone(timeline: Timeline, upto: int) -> None:
    """Refuses a cut through another process: its own order has no place in that of the first."""
    reader, first = timeline.reader, timeline.stream
    others = [stream for stream in reader.streams if stream.process not in (first.process, LAUNCH)]
    if not others:
        return
    heads = list(reader.heads(first.id))
    when = _began(timeline, first.id, heads) + max((event.at for _, event in heads if event.pos <= upto), default=0)
    begun = {event.name for _, event in heads if event.kind is Kind.LANE and event.pos <= upto}
    for stream in others:
        if stream.process not in begun:
            continue
        its = list(reader.heads(stream.id))
        if its and _began(timeline, stream.id, its) + its[-1][1].at > when:
            raise TargetError(
                Code.BAD_TARGET, f"process {stream.process} was at work there: fork before it began, or after its end"
            )


def conversations(timeline: Timeline) -> list[Effect]:
    """Processes that the program talks with, one message after another (`lockstep.taps.processes.languages`)."""
    return [
        effect
        for step in timeline.steps
        for effect in step.effects
        if effect.kind == PROCESS and SPEAKS in (_request(timeline, effect) or ())
    ]


def _between_conversations(timeline: Timeline, upto: int) -> None:
    """Refuses a cut through a conversation: a new process knows nothing of what was said to the one before."""
    for effect in conversations(timeline):
        if effect.begin.pos <= upto and (effect.end is None or effect.end.pos > upto):
            raise TargetError(
                Code.BAD_TARGET,
                f"the program was talking with {effect.name} there, and a new process knows nothing of what was said: "
                "fork before it began (step 0), after its end, or a run that its adapter keeps of its own",
            )


def _request(timeline: Timeline, effect: Effect) -> dict[str, Value] | None:
    body = timeline.reader.body(effect.stream, effect.seq)
    request = body.get("request") if isinstance(body, dict) else None
    return request if isinstance(request, dict) else None


def _began(timeline: Timeline, stream: int, heads: Sequence[tuple[int, Event]]) -> int:
    """When a process began, on the machine's steady clock in nanoseconds."""
    for seq, event in heads:
        if event.kind is Kind.START:
            body = timeline.reader.body(stream, seq)
            found = body.get("clock") if isinstance(body, dict) else None
            return found if isinstance(found, int) else 0
    return 0
