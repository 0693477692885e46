"""HTTP answers as `show` prints them and edits change them: `{"status", "headers", "body"}`.

`error` is there too where it broke off. A body is JSON where it is JSON, else text, else `{"base64": …}`, without its
content-encoding and framing, which are made again. Headers are pairs in their order, or a map; those that carry
credentials are shown as "(not shown)", and stay what they were where an edit says so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lockstep.debugger import bodies, paths, raised
from lockstep.debugger.paths import Place
from lockstep.errors import Code, EditError
from lockstep.log.model import Value
from lockstep.taps.http.answer import Answer

HIDDEN = "(not shown)"
FIELDS = ("status", "headers", "body", "error")
_HIDDEN = frozenset({
    "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie",
    "x-amz-security-token",
})  # fmt: skip
_EVENTS = ("text/event-stream", "application/vnd.amazon.eventstream", "ndjson", "jsonl")

type Pairs = tuple[tuple[str, str], ...]


class State(msgspec.Struct, frozen=True):
    """An answer while it is edited.

    status   None where none came
    body     without content-encoding
    problem  why the recorded body could not be decoded, "" where it could
    error    the encoded exception that broke it off, or that came in its place
    """

    status: int | None
    headers: Pairs
    body: bytes
    problem: str = ""
    error: Value = None

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def media(self) -> str:
        """Its content-type without parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()


def state(got: Answer, error: Value = None) -> State:
    """A recorded answer. `error`: the encoded exception with which it ended."""
    body, problem = bodies.plain(got.body, got.header("content-encoding"))
    return State(got.status, got.headers, body, problem, error)


def shown(state: State) -> Any:
    """The answer as it is shown; None where nothing came."""
    error = raised.shown(state.error) if state.error is not None else None
    if state.status is None:
        return error
    found: dict[str, Any] = {
        "status": state.status,
        "headers": headers(state.headers),
        "body": body(state.body, state.header("content-type")),
    }
    return found if error is None else {**found, "error": error}


def headers(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Headers as they may be shown."""
    return [[key, HIDDEN if key.lower() in _HIDDEN else value] for key, value in pairs]


def body(raw: bytes, content_type: str = "") -> Any:
    """A body as JSON where it is JSON, else as text, else as base64; None where there is none."""
    if not raw:
        return None
    found = bodies.json(raw)
    if found is not None:
        return found
    try:
        return raw.decode(_charset(content_type))
    except (UnicodeDecodeError, LookupError):
        return {"base64": base64.b64encode(raw).decode("ascii")}


def _charset(content_type: str) -> str:
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or "utf-8"
    return "utf-8"


def edited(now: State, place: Place, value: Value) -> State:
    """The answer with a place of it edited, or all of it. Raises EditError LS212, LS213."""
    if not place:
        return _whole(now, value)
    form = shown(now)
    if not isinstance(form, dict) or now.status is None:
        raise EditError(
            Code.UNEDITABLE, f"nothing was answered here, so there is no {paths.shown(place)}: edit all of it"
        )
    if place[0] == "headers" and len(place) == 2 and isinstance(place[1], str):
        return _whole(now, {**form, "headers": _with_header(form["headers"], place[1], value)})
    return _whole(now, paths.put(form, place, value, added=FIELDS))


def _with_header(pairs: Any, name: str, value: Value) -> Value:
    """Headers with one of them set, or taken out by null."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    at = next((n for n, pair in enumerate(pairs) if pair[0].lower() == name.lower()), len(pairs))
    rest = [pair for pair in pairs if pair[0].lower() != name.lower()]
    written = pairs[at][0] if at < len(pairs) else name
    return [*rest[:at], *([written, one] for one in values), *rest[at:]]


def _whole(now: State, value: Value) -> State:
    if raised.is_raise(value):
        return State(None, (), b"", error=raised.encoded(value, now.error))
    if not isinstance(value, dict) or not value.keys() <= set(FIELDS) or not value:
        raise EditError(
            Code.UNEDITABLE,
            'an HTTP answer is {"status": 200, "headers": [[name, value], …], "body": …}, or an error: '
            '{"$": "raise", "type": …}',
        )
    status = value.get("status", now.status or 200)
    if type(status) is not int or not 200 <= status <= 599:
        raise EditError(Code.UNEDITABLE, f"the status of an answer is a number from 200 to 599, not {status!r}")
    pairs = tuple(_pairs(value["headers"], now.headers)) if "headers" in value else now.headers
    error = raised.encoded(value["error"], now.error) if value.get("error") is not None else None
    was = body(now.body, now.header("content-type"))
    if "body" not in value or (value["body"] == was and type(value["body"]) is type(was)):
        return State(status, pairs, now.body, now.problem, error)
    content_type = next((text for name, text in pairs if name.lower() == "content-type"), "")
    data = _bytes(value["body"], bodies.json(now.body), content_type)
    if pairs == now.headers and data:
        pairs = _fitting(pairs, value["body"], content_type)
    return State(status, pairs, data, "", error)


def _fitting(pairs: Pairs, value: Value, content_type: str) -> Pairs:
    """Headers that nobody edited, for JSON in the place of something else."""
    media = content_type.partition(";")[0].strip().lower()
    json = "json" in media and not any(kind in media for kind in _EVENTS)
    if not isinstance(value, dict | list) or json or (isinstance(value, dict) and value.keys() == {"base64"}):
        return pairs
    rest = tuple(pair for pair in pairs if pair[0].lower() != "content-type")
    return (*rest, ("content-type", "application/json"))


def _pairs(given: Value, before: Pairs) -> Iterator[tuple[str, str]]:
    """Headers as an edit gives them, with what it was not shown put back."""
    kept: dict[str, list[str]] = {}
    for name, value in before:
        kept.setdefault(name.lower(), []).append(value)
    for name, value in _each(given):
        if not name or any(mark in f"{name}{value}" for mark in "\r\n\0"):
            raise EditError(Code.UNEDITABLE, f"not a header: {name!r}: {value!r}")
        if value == HIDDEN:
            values = kept.get(name.lower())
            if not values:
                raise EditError(Code.UNEDITABLE, f"the header {name} has no recorded value to keep: give one")
            yield name, values.pop(0)
        else:
            yield name, value


def _each(given: Value) -> Iterator[tuple[str, str]]:
    if isinstance(given, dict):
        for name, value in given.items():
            for one in value if isinstance(value, list) else [value]:
                yield name, _text(name, one)
        return
    if not isinstance(given, list):
        raise EditError(Code.UNEDITABLE, f'headers are [[name, value], …] or {{"name": value}}, not {given!r}')
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise EditError(Code.UNEDITABLE, f"a header is [name, value], not {pair!r}")
        yield pair[0], _text(pair[0], pair[1])


def _text(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    if type(value) in (int, float):
        return str(value)
    raise EditError(Code.UNEDITABLE, f"the value of the header {name} is a text, not {value!r}")


def _bytes(value: Value, before: Any, content_type: str) -> bytes:
    """A body as it is sent; `before`: the JSON that stood there."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict) and value.keys() == {"base64"} and not _is_base64(before):
        try:
            return base64.b64decode(str(value["base64"]), validate=True)
        except (binascii.Error, ValueError) as problem:
            raise EditError(Code.UNEDITABLE, f"the body is not base64: {problem}") from None
    # A text that would read as JSON is one inside of JSON, or it would be shown as something else.
    if isinstance(value, str) and not isinstance(before, str) and bodies.json(value) is None:
        charset = _charset(content_type)
        try:
            return value.encode(charset)
        except (UnicodeEncodeError, LookupError) as problem:
            raise EditError(Code.UNEDITABLE, f"the body cannot be written in {charset}: {problem}") from None
    try:
        return msgspec.json.encode(value)
    except (TypeError, UnicodeEncodeError) as problem:
        raise EditError(Code.UNEDITABLE, f"the body cannot be written as JSON: {problem}") from None


def _is_base64(before: Any) -> bool:
    return isinstance(before, dict) and before.keys() == {"base64"}
