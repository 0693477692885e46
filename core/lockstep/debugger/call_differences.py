"""What paired calls asked and got, where it differs, and the calls that have no partner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from lockstep.debugger import contents, messages
from lockstep.debugger.entries import DiffEntry, DiffKind
from lockstep.debugger.ledger import Ledger, Order, with_changes
from lockstep.debugger.pairing import Pairs
from lockstep.debugger.sameness import Where
from lockstep.debugger.sides import Call, Side
from lockstep.debugger.structure import ABSENT, Change, Found, around, differing, shown
from lockstep.log import checkpoints
from lockstep.log.model import Status, Value
from lockstep.log.timeline import STEP

_STOPPED = (Status.CLOSED, Status.CANCELLED, None)  # the program itself read no further
_MAKING = ("POST", "PUT", "PATCH")  # methods whose answer may be something new
# Of a model's answer what it says; where that differs, the rest of its body says the same once more.
_SAID = ("answer.content", "answer.tool_calls", "answer.role")
_BODY = "answer.body"
_USAGE = re.compile(r"\.(usage|usageMetadata|\w+_count|x_groq)(\.|$)")


class _Draft:
    """A pair of calls while its differences are gathered."""

    __slots__ = ("a", "asked", "b", "follows", "found", "got", "moved", "order")

    def __init__(self, a: Call, b: Call, *, moved: bool) -> None:
        self.a = a
        self.b = b
        self.moved = moved
        self.found: list[Found] = []
        self.asked = self.got = False  # which of it differs
        self.follows = ""
        self.order: Order = (a.stream, a.pos, 0)


class _Known:
    """What has differed before, by the words that differ: an agent sends what it was told, and all that it said
    before, along with each request, which is no difference of its own making."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], str] = {}

    def add(self, found: Sequence[Found], address: str) -> None:
        for each in found:
            self._at.setdefault(_words(each), address)

    def origin(self, found: Sequence[Found]) -> str:
        """Where what differs here differed first, the earliest such place; "" where anything differs for the first
        time."""
        at = [self._at.get(_words(each), "") for each in found]
        return at[0] if all(at) else ""


def _words(found: Found) -> tuple[str, str]:
    a, b = (value if isinstance(value, str) else shown(value) for value in (found.a, found.b))
    start, end = differing(a, b)
    # To the ends of the words, so that 4000 and 450 are not "00" and "5".
    while start and a[start - 1].isalnum():
        start -= 1
    while end and a[len(a) - end].isalnum():
        end -= 1
    return a[start : len(a) - end], b[start : len(b) - end]


def compare(ledger: Ledger, pairs: Pairs) -> None:
    """Adds all that differs in calls."""
    ledger.place(pairs)
    known = _Known()
    drafts: list[_Draft] = []
    due: list[tuple[int, int, int, _Draft]] = []
    for one, other, moved in [*((*pair, False) for pair in pairs.calls), *((*pair, True) for pair in pairs.moved)]:
        asked = one.key != other.key or ledger.exact
        got = one.digest != other.digest or one.status != other.status or not one.digest or ledger.exact
        got = got and one.kind != STEP
        if not (asked or got or moved):
            continue
        draft = _Draft(one, other, moved=moved)
        drafts.append(draft)
        if asked:
            due.append((one.stream, one.pos, len(due), draft))
        if got:
            due.append((one.stream, one.end_pos, -len(due) - 1, draft))
    # In the order of the first run, so that an id is known from the answer that made it before it is used.
    due.sort(key=lambda item: item[:3])
    for stream, pos, what, draft in due:
        if what >= 0:
            _request(ledger, draft, known)
        else:
            _outcome(ledger, draft, known)
        if draft.found and not (draft.asked and draft.got) and not draft.moved:
            draft.order = (stream, pos, 0)
    for draft in drafts:
        if draft.found or draft.moved:
            ledger.add(draft.order, _entry(ledger, draft))
    for call in pairs.removed:
        _alone(ledger, call, ledger.a, "removed")
    for call in pairs.added:
        _alone(ledger, call, ledger.b, "added")


def _addresses(ledger: Ledger, draft: _Draft) -> tuple[str, str]:
    return ledger.a.at_call(draft.a), ledger.b.at_call(draft.b)


def _request(ledger: Ledger, draft: _Draft, known: _Known) -> None:
    one, other = draft.a, draft.b
    asked_a, asked_b = ledger.a.asked(one)[0], ledger.b.asked(other)[0]
    found: list[Found] = []
    exchanges = contents.is_exchange(one, asked_a) and contents.is_exchange(other, asked_b)
    if (one.kind, one.name) != (other.kind, other.name) and not exchanges:  # those are named after what they ask
        names = f"{one.kind} {one.name}", f"{other.kind} {other.name}"
        found.append(Found(Change("name", *around(*names)), *names))
    left_out = False
    # A framework gives what it keeps (messages, say) ids of its own.
    where = Where((one.lane, other.lane), made=one.kind == STEP and ledger.a.is_native)
    requests = tuple(contents.request(*each, exact=ledger.exact) for each in ((one, asked_a), (other, asked_b)))
    if (one.kind, one.name) == (other.kind, other.name) and _unknown(requests[0]) != _unknown(requests[1]):
        texts = (shown(each.get(_ARGUMENTS) if isinstance(each, dict) else each) for each in requests)
        ledger.leave_out(_addresses(ledger, draft), "not recorded", _ARGUMENTS, *texts)
        return
    for a, b, path in _fields(
        *requests,
        model=exchanges and one.kind == other.kind == "model",
    ):  # fmt: skip
        more, left = ledger.compare(_addresses(ledger, draft), a, b, where, path)
        found += more
        left_out = left_out or left
    if not found and not left_out and one.key != other.key:
        found = _written(asked_a, asked_b)
    draft.asked = bool(found)
    draft.follows = known.origin(found) if found else ""
    known.add(found, _addresses(ledger, draft)[0])
    draft.found += found


_ARGUMENTS = "arguments"


def _unknown(asked: Value) -> bool:
    """Whether the record does not know with what it was called."""
    return isinstance(asked, dict) and _ARGUMENTS in asked and asked[_ARGUMENTS] is None


def _written(a: Value, b: Value) -> list[Found]:
    """Requests that say the same but are written in another way: as JSON with other spaces, say."""
    if isinstance(a, dict) and checkpoints.COMMANDS in a:
        texts = [shown(one.get(checkpoints.COMMANDS)) if isinstance(one, dict) else "" for one in (a, b)]
        return [Found(Change(checkpoints.COMMANDS, *texts), *texts)]
    bodies = [str(one.get("body")) if isinstance(one, dict) and "body" in one else shown(one) for one in (a, b)]
    return [Found(Change("body" if isinstance(a, dict) and "body" in a else "", *around(*bodies)), *bodies)]


def _fields(a: Value, b: Value, *, model: bool) -> Iterator[tuple[Value, Value, str]]:
    """Two requests with their path. What is said to a model is the body of its request, whose fields are known by
    themselves: `messages[0].content`."""
    bodies = [one.get("body") if isinstance(one, dict) else None for one in (a, b)]
    if not model or not all(isinstance(body, dict) for body in bodies):
        yield a, b, ""
        return
    yield bodies[0], bodies[1], ""
    one, other = ({name: v for name, v in each.items() if name != "body"} for each in (a, b) if isinstance(each, dict))
    yield one, other, ""


def _outcome(ledger: Ledger, draft: _Draft, known: _Known) -> None:
    one, other = draft.a, draft.b
    asked_a, asked_b = ledger.a.asked(one)[0], ledger.b.asked(other)[0]
    a, b = contents.outcome(one, ledger.a, asked_a), contents.outcome(other, ledger.b, asked_b)
    where = Where(
        lane=(one.lane, other.lane),
        answer=contents.is_exchange(one, asked_a),
        model=one.kind == other.kind == "model",
        made=_makes(ledger.a, one, asked_a) and _makes(ledger.b, other, asked_b),
        cut=one.status == other.status and one.status in _STOPPED,
        span=ledger.spans(one, other),
    )
    if {one.status, other.status} == {Status.OK, Status.CLOSED} and not ledger.exact:
        # Whether a program that wants no more still meets the end of an answer depends on how that was cut up.
        a.pop("ended", None)
        b.pop("ended", None)
    addresses = _addresses(ledger, draft)
    found, _ = ledger.compare(addresses, a, b, where)
    if not ledger.exact and any(each.change.path.startswith(_SAID) for each in found):
        found = [each for each in found if not each.change.path.startswith(_BODY)]
    if draft.asked and not ledger.exact:
        # Another request has another number of tokens.
        found = [each for each in found if not _USAGE.search(each.change.path)]
    known.add(found, addresses[0])
    draft.got = bool(found)
    # An answer says more than a request that only carries on what differed before.
    draft.found = [*found, *draft.found] if draft.follows else [*draft.found, *found]


def _makes(side: Side, call: Call, asked: Value) -> bool:
    """Whether the call may have made what it was answered with, so that an id in it is a new one."""
    if contents.is_exchange(call, asked):
        return isinstance(asked, dict) and asked.get("method") in _MAKING
    return side.effect_class(call) == "mutating"


def _entry(ledger: Ledger, draft: _Draft) -> DiffEntry:
    asked, site = ledger.a.asked(draft.a)
    kind: DiffKind = "moved" if draft.moved else "changed"
    entry = DiffEntry(
        kind, *_addresses(ledger, draft), draft.a.lane, draft.a.kind, name(draft.a, asked), reason=_reason(draft),
        site=site, follows="" if draft.got else draft.follows,
    )  # fmt: skip
    entry = with_changes(entry, draft.found)
    if draft.moved and not draft.found and draft.a.lane != draft.b.lane:
        return msgspec.structs.replace(entry, path="lane", a=shown(draft.a.lane), b=shown(draft.b.lane))
    return entry


def _reason(draft: _Draft) -> str:
    reasons = []
    if draft.moved:
        reasons.append("comes in another strand" if draft.a.lane != draft.b.lane else "comes at another place")
    if draft.asked:
        reasons.append(f"carries on what differs at {draft.follows}" if draft.follows else _asked(draft))
    if draft.got:
        failed = (draft.a.status == Status.ERROR) != (draft.b.status == Status.ERROR)
        only = "first" if draft.a.status == Status.ERROR else "second"
        reasons.append(f"failed in the {only} run only" if failed else "was answered differently")
    return ", ".join(reasons)


def _asked(draft: _Draft) -> str:
    if draft.a.kind != STEP:
        return "asks something else"
    commands = [each for each in draft.found if each.change.path.partition("[")[0] == checkpoints.COMMANDS]
    if not commands:
        return "has another state"
    # Of a result, say, only the digest of the step knows.
    return "asks for something else then" if any(each.a != each.b for each in commands) else "asks for it otherwise"


def _alone(ledger: Ledger, call: Call, side: Side, kind: DiffKind) -> None:
    asked, site = side.asked(call)
    address, text = side.at_call(call), shown(_summary(call, asked))
    first = kind == "removed"
    entry = DiffEntry(
        kind, address if first else None, None if first else address, call.lane, call.kind, name(call, asked),
        a=text if first else ABSENT, b=ABSENT if first else text, site=site,
        reason=f"only the {'first' if first else 'second'} run does this",
    )  # fmt: skip
    ledger.add((call.stream, call.pos, 0) if first else ledger.before(call.stream, call.pos), entry)


def name(call: Call, asked: Value) -> str:
    """What the call is named: a model by its name, anything else as recorded."""
    if call.kind == "model" and contents.is_exchange(call, asked):
        return messages.read(asked).model or call.name
    return call.name


def _summary(call: Call, asked: Value) -> Value:
    """The part of a request that tells most: arguments, the last message, a body."""
    found = contents.request(call, asked)
    if not isinstance(found, dict):
        return found
    if call.kind == "model" and contents.is_exchange(call, asked):
        said = messages.read(asked).messages
        if said:
            return said[-1].text or said[-1].role
    for field in ("arguments", "state", checkpoints.COMMANDS, "body", "url"):
        if field in found:
            return found[field]
    return found
