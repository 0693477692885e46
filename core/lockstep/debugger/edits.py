"""Edits of a fork: other answers in the place of recorded ones.

    --set '7.1:status="lost"'             a place in what effect 7.1 answered
    --set '7.1={"id": 7, "total": 450}'   all of it
    --set '7=@answer.json'                the answer that closed step 7, from a file
    --set 'get_order#2:status="lost"'     a place in what the second call of that name answered

An outcome is edited in the shape in which `show --json` prints it (`outcomes`, `answers`, `rewording`), and reaches the
program as the pieces that its client's tap serves (`wires`). Several edits of one effect add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lockstep.debugger import answers, calls, listing, outcomes, paths, raised, rewording, wires
from lockstep.debugger.dialects import framed
from lockstep.debugger.paths import Place
from lockstep.errors import AddressError, Code, EditError
from lockstep.log.address import named
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Timeline
from lockstep.session import snapshot
from lockstep.session.asides import is_aside
from lockstep.session.call import Piece
from lockstep.taps.http.answer import answer

type Given = Piece
type Change = tuple[str, Value]

_STEP = r"(?:(?P<step>\d{1,9})(?:\.(?P<effect>\d{1,9}))?(?P<child>(?:/\d{1,9})*)|(?P<call>[^:=@]+#\d{1,9}))"
_SHORT = re.compile(rf":?{_STEP}(?=[:=]|$)", re.ASCII)
_LONG = re.compile(rf"(?P<run>[^:]+):{_STEP}(?=[:=]|$)", re.ASCII)
_WHOLE = (Status.OK, Status.ERROR)  # else the program did not take all of it


class Edit(msgspec.Struct, frozen=True):
    """One edit: of effect `address` (`7.1`, `get_order#2`, or `7` for what closed the step) the place `path`, "" for
    all of it. `run`: the run and branch that it named, "" for those of the fork."""

    address: str
    path: str
    value: Value
    run: str = ""


def told(edit: Edit) -> str:
    """What an edit is of, as it is told: `7.1:status`."""
    return f"{edit.address}:{edit.path}" if edit.path else edit.address


def parse(text: str, run: str = "") -> Edit:
    """Reads `ADDR[:PATH]=JSON` or `ADDR[:PATH]=@FILE`. `run`: that of the fork, which ADDR may name.

    Raises AddressError LS206, EditError LS211 (a path, the JSON, the file).
    """
    found, path, end = _target(text, run)
    if text[end : end + 1] != "=":
        raise EditError(
            Code.BAD_EDIT,
            f"not an edit: {text!r}: a value has to follow"
            + (f", from {text[end:]!r} on" if text[end:] else "")
            + ". One looks like 7.1:status='\"lost\"'",
        )
    return Edit(found.address, path, _value(text[end + 1 :], text[: end + 1]), found.run)


def given(text: str, value: Any, run: str = "") -> Edit:
    """An edit in code: `ADDR[:PATH]`, and the value as an object: what `show --json` prints, anything that a tool may
    return, or an exception that is raised. Raises as `parse`, and StoreError LS207."""
    found = as_given(text, value, run)
    return msgspec.structs.replace(found, value=outcomes.from_python(value))


def as_given(text: str, value: Any, run: str = "") -> Edit:
    """The same with the value left as it is: for an adapter, which knows more objects. Raises as `parse`."""
    found, path, end = _target(text, run)
    if end != len(text):
        raise EditError(Code.BAD_EDIT, f"not an address and path: {text!r}, from {text[end:]!r} on")
    return Edit(found.address, path, value, found.run)


def numbered(timeline: Timeline, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits whose addresses are numbers: calls that they name are found in the run that is forked. Raises AddressError
    LS206."""
    return tuple(_numbered(timeline, edit) if "#" in edit.address else edit for edit in edits)


def _numbered(timeline: Timeline, edit: Edit) -> Edit:
    step, effect = timeline.call(*named(edit.address))
    return msgspec.structs.replace(edit, address=f"{step}.{effect}")


class _Target(msgspec.Struct, frozen=True):
    run: str
    address: str


def _target(text: str, run: str) -> tuple[_Target, str, int]:
    head = f"{run}:" if run and text.startswith(f"{run}:") and _SHORT.match(text, len(run) + 1) else ""
    match = _SHORT.match(text, len(head)) or _LONG.match(text)
    if match is None:
        raise AddressError(
            Code.NO_ADDRESS,
            f"an edit begins with the address of an effect, as in 7.1:status='\"lost\"' or get_order#2, not {text!r}",
        )
    if match["child"]:
        raise EditError(
            Code.UNEDITABLE, f"{match[0]} is inside another effect, which is answered as a whole: edit that one"
        )
    run_named = head[:-1] or (match["run"] if match.re is _LONG else "")
    number = match["call"] or match["step"] if match["effect"] is None else f"{match['step']}.{match['effect']}"
    end = match.end()
    if text[end : end + 1] != ":":
        return _Target(run_named, number), "", end
    place, end = paths.read_from(text, end + 1)
    return _Target(run_named, number), paths.shown(place), end


def _value(text: str, head: str) -> Value:
    if text.startswith("@"):
        return _file(text[1:])
    try:
        return _decoded(text.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        quoted = msgspec.json.encode(text).decode() if text.isprintable() else '"…"'
        raise EditError(
            Code.BAD_EDIT,
            f"not JSON: {text!r} ({problem}). A text stands in double quotes, and all of it in single ones for the"
            f" shell: --set '{head}{quoted}'. Or put it into a file: {head}@FILE",
        ) from None


def _file(name: str) -> Value:
    try:
        data = Path(name).read_bytes()
    except OSError as problem:
        raise EditError(Code.BAD_EDIT, f"{name!r} cannot be read: {problem.strerror}") from None
    try:
        return _decoded(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _decoded(data: bytes) -> Value:
    value: Value = msgspec.json.decode(data)
    return value


def find(timeline: Timeline, address: str) -> Effect:
    """The effect at `7.1`, or the one that closed step `7`. Raises AddressError LS206."""
    step, _, number = address.partition(".")
    if number:
        return timeline.effect(int(step), int(number))
    found = timeline.step(int(step))
    closing = listing.closing_effect(found) or (found.effects[0] if len(found.effects) == 1 else None)
    if closing is None:
        last = len(found.effects)
        more = f"Its effects are {address}.1 to {address}.{last}" if last else "It has no effects"
        raise AddressError(Code.NO_ADDRESS, f"step {address} ({found.kind}) is not the answer of a call. {more}")
    return closing


def pieces(timeline: Timeline, effect: Effect, path: str, value: Value) -> tuple[Given, ...]:
    """What the program gets of an effect one place of which is edited ("" for all of it): parts, then the end.

    Raises EditError LS211 (no path), LS212 (no such place), LS213 (this cannot be its answer).
    """
    return made(timeline, effect, ((path, value),))


def made(timeline: Timeline, effect: Effect, changes: Iterable[Change], address: str = "") -> tuple[Given, ...]:
    """The same for several edits of one effect, in their order. Raises as `pieces`, naming the `address`."""
    try:
        return _made(timeline, effect, changes)
    except EditError as error:
        raise EditError(error.code, f"{address}: {error.message}" if address else error.message) from None


def _made(timeline: Timeline, effect: Effect, changes: Iterable[Change]) -> tuple[Given, ...]:
    read = [(paths.parse(path), value) for path, value in changes]
    parts = list(timeline.parts(effect))
    end = timeline.outcome(effect)
    if effect.kind == calls.PROCESS:
        raise EditError(Code.UNEDITABLE, "what a process delivers cannot be edited yet, only its recording be served")
    request = timeline.request(effect)
    said = effect.kind == calls.MODEL and framed.is_one_message(request)
    if calls.is_exchange(effect.kind, request):
        return _exchange(timeline, effect, parts, end, read)
    asides = [part for part in parts if is_aside(part)]
    pieces = [] if said else [part for part in parts if not is_aside(part)]
    before = outcomes.shown(pieces, end, effect.status)
    after = before
    for place, value in read:
        after = _changed(after, place, value)
    if effect.status in _WHOLE and _alike(after, before):
        return _recorded(parts, end, effect.status)
    if said:
        # One message, whether it was streamed or not: whoever serves it gives it in one piece.
        _is_message(request, after)
        return outcomes.pieces(after, (), end, effect.status)
    return (*map(Piece, asides), *outcomes.pieces(after, pieces, end, effect.status))


def _is_message(request: Value, value: Any) -> None:
    if not (raised.is_raise(value) or framed.is_answer(request, value)):
        raise EditError(Code.UNEDITABLE, f"a model's message is {framed.form(request)}, as show prints it")


def taken(timeline: Timeline, effect: Effect) -> Value:
    """What an effect answered, as an edit of another run's takes it: also what `show` does not print."""
    outcome: Value = calls.read(timeline, effect).outcome
    if (
        not isinstance(outcome, dict)
        or "headers" not in outcome
        or not calls.is_exchange(effect.kind, timeline.request(effect))
    ):
        return outcome
    headers: list[Value] = [[name, value] for name, value in answer(timeline.parts(effect)).headers]
    return {**outcome, "headers": headers}


def _alike(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # True and 1 are equal, and not the same


def _changed(outcome: Any, place: Place, value: Value) -> Any:
    try:
        return paths.put(outcome, place, outcomes.to_json(value))
    except paths.Missing:
        other = _as_diff_says(place)
        if other == place:
            raise
        return paths.put(outcome, other, outcomes.to_json(value))


def _as_diff_says(place: Place) -> Place:
    """A place that `diff` prints, which says where in a call it is too, as one in the outcome."""
    match place:
        case ("error", "args", 0):
            return ("message",)
        case ("answer" | "error", *rest):
            return tuple(rest)
        case ("parts", int() as number, "item", *rest):
            return ("items", number, *rest)
    return place


def _recorded(parts: Sequence[Value], end: Value, status: Status) -> tuple[Given, ...]:
    return (*(Piece(part) for part in parts), Piece(end, status))


def _exchange(
    timeline: Timeline, effect: Effect, parts: Sequence[Value], end: Value, changes: Sequence[tuple[Place, Value]]
) -> tuple[Given, ...]:
    request, status = timeline.request(effect), effect.status
    before = answers.state(answer(parts), end if status is Status.ERROR else None)
    after = before
    for place, value in changes:
        if place[:1] == ("answer",):
            place = place[1:]
        value = _lists(value)
        if effect.kind == calls.MODEL and not _of_answer(place, value):
            after = rewording.edited(request, after, place, value)
        else:
            after = answers.edited(after, place, value)
    if after == before and status in _WHOLE:
        return _recorded(parts, end, status)
    client = wires.client(request, parts, before.error, status, _exchanges(timeline))
    return wires.pieces(client, request, parts, before, after)


def _exchanges(timeline: Timeline) -> Iterator[tuple[Value, Value]]:
    """The HTTP exchanges of a run: request, and first piece of the answer."""
    for step in timeline.walk():
        for effect in step.effects:
            if effect.parts and calls.is_exchange(effect.kind, request := timeline.request(effect)):
                yield request, timeline.reader.body(effect.stream, effect.parts[0])


def _lists(value: Any) -> Any:
    """What JSON has no word for but lists, as these: an edit in code may hold tuples."""
    if isinstance(value, list):
        return [_lists(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(snapshot.TAG) == "tuple" and isinstance(value.get("$items"), list):
        return _lists(value["$items"])
    return {name: _lists(item) for name, item in value.items()}


def _of_answer(place: Place, value: Value) -> bool:
    """Whether a model's answer is edited as the HTTP answer that it came in, and not as a message."""
    if place:
        return place[0] in answers.FIELDS
    return raised.is_raise(value) or (isinstance(value, dict) and bool(value) and value.keys() <= set(answers.FIELDS))
