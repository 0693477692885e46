"""What a replay says where it is not the recorded run: from a mismatch to the `Difference` shown.

Plain functions over the tape and what the program did. Each of the `*_left` and `end` functions looks
for one kind of difference that only shows at the end, and returns None where there is none.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import itemgetter
from typing import Any

import msgspec

from lockstep.errors import Code, Difference
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.threads import native
from lockstep.session import difference, engine, reads
from lockstep.session.handed import Handed, stepped
from lockstep.session.printed import Printed
from lockstep.session.tape import LaneTape, Recorded, Slot, Tape

_WINDOW = 50  # recorded calls on each side that are looked through for the nearest


def finding(
    tape: Tape, code: Code, reason: str, *, lane: str, at: int | Recorded = sys.maxsize, **more: Any
) -> Difference:
    """A difference at a recorded effect, or at a position (by default the end)."""
    step = step_of(tape, at)
    for name in ("expected", "actual"):
        more[name] = difference.cut(str(more.get(name, "")))
    about = {"kind": "", "name": "", "source": "", **more}
    same = min(same_until(tape), step - 1)
    return Difference(code=code, reason=reason, step=step, lane=lane, same_until=same, **about)


# Steps, as `lockstep log` numbers them.


def step_of(tape: Tape, at: int | Recorded) -> int:
    """The step that a recorded effect closes, or in which a position falls."""
    if tape.numbered is not None:
        return tape.numbered(at)
    pos = _completed(at) if isinstance(at, Recorded) else at
    before = sum(_completed(effect) < pos for lane in tape.lanes.values() for effect in lane.effects)
    return before + 1


def same_until(tape: Tape) -> int:
    """The last step up to which every recorded effect has been asked for."""
    return step_of(tape, _now(tape)) - 1


def _now(tape: Tape) -> int:
    open_ = [_completed(effect) for lane in tape.lanes.values() for effect in lane.effects[lane.cursor :]]
    return min(open_, default=sys.maxsize)


def _completed(effect: Recorded) -> int:
    if effect.begin.kind is Kind.STEP:
        return effect.begin.pos
    return effect.pieces[-1][1].pos if effect.ended else sys.maxsize


# While the program runs.


def unmatched(
    tape: Tape, lane: LaneTape, asked: Mapping[str, Any], request: Value, decision: engine.Diverge
) -> Difference:
    """The program asked something else. `asked`: lane, kind, name and source of the call."""
    expected = decision.expected
    path = recorded = now = ""
    if expected is None:
        now = f"{asked['kind']} {asked['name']} {difference.shown(_told(request))}"
    elif (_kind(expected.begin), expected.begin.name) != (asked["kind"], asked["name"]):
        recorded, now = f"{_kind(expected.begin)} {expected.begin.name}", f"{asked['kind']} {asked['name']}"
    else:
        body = _request(tape, expected)
        found = difference.first(body, request)
        path, recorded, now = found if found is not None else ("", difference.shown(body), difference.shown(request))
    return finding(
        tape, decision.code, decision.reason, at=_now(tape) if expected is None else expected, path=path,
        expected=recorded, actual=now, nearest=tuple(_nearest(tape, lane, request)), **asked,
    )  # fmt: skip


def miscounted(
    tape: Tape, at: Recorded, counts: Mapping[str, int], asked: Callable[[], Mapping[str, Any]]
) -> Difference | None:
    """Before the call `at`, the lane read a source more or less often than recorded. `asked` tells of the call."""
    found = reads.compare(tape.counts(at), counts)
    if found is None:
        return None
    source, recorded, now = found
    return finding(
        tape, Code.READS, f"{source} was read {now} times before this call, {recorded} when recorded", at=at,
        path=source, expected=recorded, actual=now, **asked(),
    )  # fmt: skip


def unprinted(tape: Tape, at: Recorded, lane: str, printed: Printed, channel: str) -> Difference | None:
    """What the lane had printed before the call `at` in the recording, and has not now."""
    recorded = tape.lane(lane).output[channel]
    due = bisect_left(recorded, at.begin.pos, key=itemgetter(0))
    if printed.reached(due):
        return None
    return finding(
        tape, Code.OUTPUT, f"recorded {channel} was not printed before this call", lane=lane, at=at, kind="output",
        name=channel, expected=printed.left(), actual="(nothing)",
    )  # fmt: skip


def missing(tape: Tape, head: Slot | None) -> Difference:
    """Nothing can move the program but what is recorded at `head`, and nobody asked for that."""
    if head is None:
        reason = "the program waits for something that never came in the recording"
        return finding(tape, Code.STUCK, reason, lane="")
    event, owner = head.event, tape.effect(head.event.of)
    if event.kind in (Kind.PART, Kind.END) and owner is not None:
        begin = owner.begin
        code, reason = Code.PAST_END, f"the recorded program read more of this {begin.what} answer"
        if event.what == Status.CANCELLED:
            code, reason = Code.ORDER, "the recorded program cancelled this call, now nobody does"
        source = str(tape.request(owner).get("site", ""))
        return finding(tape, code, reason, lane=event.lane, at=owner, kind=begin.what, name=begin.name, source=source)
    if event.kind in (Kind.CAUSE, Kind.LOCK):
        what = event.what
        if event.kind is Kind.LOCK:
            what = f"turn on {event.name}" if event.name == "stdout" else "lock"
        reason = f"the recorded {what} never came to this point"
        return finding(tape, Code.MISSING, reason, lane=event.lane, at=event.pos, kind=what, name=event.name)
    effect = tape.effect(event.pos)
    return never_made(tape, head.seq, event, at=event.pos if effect is None else effect)


def begun(tape: Tape, lane: str, source: str) -> Difference:
    """The program began a strand of its own that the recorded one did not."""
    reason = "the recorded program never began this task or thread"
    return finding(tape, Code.EXTRA, reason, lane=lane, at=_now(tape), kind="strand", name=lane, source=source)


def process_begun(tape: Tape, lane: str, source: str) -> Difference:
    """The program began a process that the recorded one did not."""
    reason = "the recorded program never began this process"
    return finding(tape, Code.EXTRA, reason, lane=lane, at=_now(tape), kind="process", name=lane, source=source)


def unbegun(tape: Tape, head: Slot, begun: Collection[str]) -> Difference | None:
    """What is due at `head` was to come from a task or thread that the program never began: its first call, if it
    made one, tells more than the wake-up or lock that others wait for."""
    event = head.event
    if event.kind not in (Kind.CAUSE, Kind.LOCK):
        return None
    lane = event.name.rpartition("#")[0] if event.what == "wake" else event.lane
    if lane in begun:
        return None
    while (parent := lane.rpartition("/")[0]) and parent not in begun:
        lane = parent
    calls = calls_left(tape, [each for name, each in tape.lanes.items() if f"{name}/".startswith(f"{lane}/")])
    if calls is not None:
        return calls
    reason = "a recorded task or thread never began"
    return finding(tape, Code.MISSING, reason, lane=lane, at=event.pos, kind="strand", name=lane)


def stuck(tape: Tape, head: Slot | None, seconds: float) -> Difference:
    """The strands wait for each other, and nothing has moved for so long."""
    found = missing(tape, head)
    if head is None:
        return found
    reason = f"nothing has moved for {seconds:g} s: {found.reason}"
    return msgspec.structs.replace(found, code=Code.STUCK, reason=reason)


def never_made(tape: Tape, seq: int, begin: Event, at: int | Recorded) -> Difference:
    """A recorded call that the program did not make."""
    body = tape.body(seq)
    if begin.kind is Kind.STEP:
        request, site = body, begin.what
    else:
        about = body if isinstance(body, dict) else {}
        request, site = about.get("request"), str(about.get("site", ""))
    return finding(
        tape, Code.MISSING, "a recorded call was never made", lane=begin.lane, at=at, kind=_kind(begin),
        name=begin.name, source=site, expected=difference.shown(_told(request)), actual="(no call)",
    )  # fmt: skip


# At the end.


def raised(tape: Tape, recorded: Value, now: Mapping[str, Value], lane: str, site: str) -> Difference | None:
    """An exception that the recorded program did not end with: it explains whatever is left undone."""
    was = recorded.get("error") if isinstance(recorded, dict) else None
    error = now.get("error")
    if error is None or error == was or not isinstance(error, dict):
        return None
    unused = engine.left(tape.lanes.values())
    path, expected, actual = "error", "no exception", f"{error.get('type')!s}: {error.get('message')!s}"
    if isinstance(was, dict):
        found = difference.first(was, error, "error")
        path, expected, actual = found if found is not None else (path, expected, actual)
    return finding(
        tape, Code.END, "the program raised an exception that the recorded one did not", lane=lane,
        at=sys.maxsize if unused is None else unused, kind="end", name="end", path=path, source=site,
        expected=expected, actual=actual,
    )  # fmt: skip


def calls_left(tape: Tape, lanes: Iterable[LaneTape]) -> Difference | None:
    """A recorded call that was never made, in these lanes: the first by position."""
    unused = engine.left(lanes)
    return None if unused is None else never_made(tape, unused.seq, unused.begin, unused)


def reads_left(
    tape: Tape, recorded: Mapping[str, Mapping[str, int]], made: Mapping[str, Mapping[str, int]]
) -> Difference | None:
    """A source that a lane read more or less often in all."""
    for lane in sorted(recorded.keys() | made.keys()):
        found = reads.compare(recorded.get(lane, {}), made.get(lane, {}))
        if found is not None:
            source, was, now = found
            reason = f"{source} was read {now} times, {was} when recorded"
            return finding(
                tape, Code.READS, reason, lane=lane, kind="read", name=source, path=source, expected=was, actual=now
            )  # fmt: skip
    return None


def output_left(
    tape: Tape, printed: Mapping[tuple[str, str], Printed], still_open: Collection[str]
) -> Difference | None:
    """Recorded output that was not printed, but for strands that were still open."""
    for lane, recorded in sorted(tape.lanes.items()):
        if tape.strands.get(lane, lane) in still_open:
            continue
        for channel in recorded.output:
            left = printed.get((lane, channel))
            line = "(all of it)" if left is None else left.left()
            if line is not None:
                return finding(
                    tape, Code.OUTPUT, f"recorded {channel} was not printed", lane=lane, kind="output", name=channel,
                    expected=line, actual="(nothing)",
                )  # fmt: skip
    return None


def printed(tape: Tape, recorded: Mapping[str, Value], now: Mapping[str, Value], lane: str) -> Difference | None:
    """The lanes printed what they should, but not in the recorded order among each other."""
    for channel in recorded.keys() & now.keys():
        if recorded[channel] != now[channel]:
            reason = f"the lanes print the recorded {channel} in another order among each other"
            return finding(tape, Code.OUTPUT, reason, lane=lane, kind="output", name=channel)
    return None


def answers_left(tape: Tape, handed: Mapping[str, list[Handed]]) -> Difference | None:
    """An answer of which the program took less than it had when recorded."""
    for lane, recorded in sorted(tape.lanes.items()):
        for effect, taken in zip(recorded.effects, handed.get(lane, ()), strict=False):
            last = effect.pieces[-1][1] if effect.ended else None
            if last is not None and last.key and last.key != taken.digest():
                return finding(
                    tape, Code.PAST_END, "the recorded program read more of this answer", lane=lane, at=effect,
                    kind=effect.begin.what, name=effect.begin.name,
                )  # fmt: skip
    return None


def end_too_early(tape: Tape, head: Slot | None, lane: str) -> Difference:
    """The program ended by itself before the cut of an interrupted recording."""
    more = f"{head.event.kind.name.lower()} {head.event.name}" if head is not None else "more"
    return finding(
        tape, Code.END, "the program ended; the recording goes on", lane=lane, kind="end", name="end", expected=more,
        actual="end",
    )  # fmt: skip


def end(tape: Tape, recorded: Value, now: Value, lane: str) -> Difference | None:
    """Another exit status, exception or result."""
    found = difference.first(recorded, now)
    if found is None:
        return None
    path, was, is_ = found
    return finding(
        tape, Code.END, "the program ended in another way", lane=lane, kind="end", name="end", path=path, expected=was,
        actual=is_,
    )  # fmt: skip


def digests(tape: Tape, recorded: Value, now: bytes, lane: str) -> Difference | None:
    """Another identity although nothing else differs: never silently the same."""
    if recorded == now:
        return None
    was = recorded.hex() if isinstance(recorded, bytes) else str(recorded)
    reason = "the digest of the replay is not the recorded one"
    return finding(tape, Code.END, reason, lane=lane, kind="end", name="digest", expected=was, actual=now.hex())


def _kind(begin: Event) -> str:
    return "step" if begin.kind is Kind.STEP else begin.what


def _request(tape: Tape, effect: Recorded) -> Value:
    if effect.begin.kind is Kind.STEP:
        return stepped(native(effect.begin), tape.body(effect.seq))
    return tape.request(effect).get("request")


def _told(request: Value) -> Value:
    # Headers say who asks, and with what secret: no report needs them whole.
    if isinstance(request, dict) and "headers" in request:
        return {name: value for name, value in request.items() if name != "headers"}
    return request


def _nearest(tape: Tape, lane: LaneTape, request: Value) -> Iterable[str]:
    # Sets of leaves, not edit distance: 1.8 ms over a window of 100 requests, and as good.
    wanted = set(difference.leaves(request))
    around = lane.effects[max(0, lane.cursor - _WINDOW) : lane.cursor + _WINDOW]
    scored = [(len(wanted ^ set(difference.leaves(_request(tape, effect)))), effect) for effect in around]
    scored.sort(key=lambda item: item[0])
    return [f"step {step_of(tape, effect)}: {_kind(effect.begin)} {effect.begin.name}" for _, effect in scored[:3]]
