"""What the caller of an effect got, as `show --json` prints it and as an edit takes it: the same shape both ways.

    a tool, a person's input       its value
    a generator                    {"$": "generator", "items": […], "value": what it returned}
    an error                       {"$": "raise", "type": …, "message": …}, see `raised`
    an HTTP answer                 {"status", "headers", "body"}, see `answers`
    a model's answer               its message, see `rewording`; or the HTTP answer that it came in

Everything is JSON. Of a value that JSON has no word for it is said what it is: `{"$": "bytes", "base64": …}`,
`{"$": "number", "text": "nan"}`, `{"$": "text", "base64": …}` for a text with lone surrogates. Objects stand as they
are stored, see `session.snapshot`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from typing import Any

from lockstep.debugger import raised
from lockstep.errors import Code, EditError
from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.session.call import Piece
from lockstep.session.snapshot import TAG

GENERATOR = "generator"
BYTES, NUMBER, TEXT = "bytes", "number", "text"


def shown(parts: Sequence[Value], end: Value, status: Status | None) -> Any:
    """The outcome of an effect that hands out objects; None where it has none yet."""
    error = raised.shown(end) if status is Status.ERROR else None
    if not parts:
        return error if error is not None else to_json(end) if status is Status.OK else None
    found: dict[str, Any] = {TAG: GENERATOR, "items": [to_json(_item(part)) for part in parts]}
    if error is not None:
        found["error"] = error
    elif end is not None:
        found["value"] = to_json(end)
    return found


def pieces(value: Value, parts: Sequence[Value], end: Value, status: Status | None) -> tuple[Piece, ...]:
    """What an effect with this recorded outcome hands out for an edited one. Raises EditError LS213."""
    recorded = end if status is Status.ERROR else None
    if isinstance(value, dict) and value.get(TAG) == GENERATOR:
        if not parts and status is Status.OK and end is not None:
            raise EditError(Code.UNEDITABLE, "this returned a value, so it is no generator, and hands out no items")
        return _generated(value, recorded)
    if raised.is_raise(value):
        return (Piece(raised.encoded(value, recorded), Status.ERROR),)
    if parts:
        raise EditError(
            Code.UNEDITABLE,
            'a generator handed out items here: an edit of all of it is {"$": "generator", "items": […]}',
        )
    return (Piece(from_json(value), Status.OK),)


def _generated(form: dict[str, Value], recorded: Value) -> tuple[Piece, ...]:
    items, error = form.get("items"), form.get("error")
    unknown = form.keys() - {TAG, "items", "value", "error"}
    if not isinstance(items, list) or unknown:
        raise EditError(Code.UNEDITABLE, "a generator has items (a list), and value or error, and nothing else")
    given = tuple(Piece({"item": from_json(item)}) for item in items)
    if error is not None:
        return (*given, Piece(raised.encoded(error, recorded), Status.ERROR))
    return (*given, Piece(from_json(form.get("value")), Status.OK))


def _item(part: Value) -> Value:
    return part["item"] if isinstance(part, dict) and part.keys() == {"item"} else part


def to_json(value: Value) -> Any:
    """A stored value in words that JSON has."""
    if isinstance(value, bytes):
        return {TAG: BYTES, "base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {TAG: NUMBER, "text": repr(value)}
    if isinstance(value, str):
        return value if _sound(value) else _odd_text(value)
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        if all(map(_sound, value)):
            return {name: to_json(item) for name, item in value.items()}
        return {TAG: "dict", "$pairs": [[to_json(name), to_json(item)] for name, item in value.items()]}
    return value


def from_json(value: Value) -> Value:
    """The reverse of `to_json`. Raises EditError LS213 where the form is not whole."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = _FORMS.get(str(value.get(TAG)))
    if made is not None and value.keys() == {TAG, made[0]}:
        try:
            return made[1](str(value[made[0]]))
        except (binascii.Error, ValueError) as problem:
            raise EditError(Code.UNEDITABLE, f"not a {value[TAG]!s}: {value[made[0]]!r} ({problem})") from None
    return {name: from_json(item) for name, item in value.items()}


def from_python(obj: Any) -> Value:
    """An object as an edit takes it: what is in one of the forms above stays, an exception is one that is raised."""
    if isinstance(obj, BaseException):
        return raised.of(obj)
    if type(obj) is list:
        return [from_python(item) for item in obj]
    if type(obj) is dict and all(type(name) is str for name in obj):
        return {name: from_python(item) for name, item in obj.items()}
    return snapshot.to_value(obj)


def _unbased(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_FORMS: dict[str, tuple[str, Callable[[str], Value]]] = {
    BYTES: ("base64", _unbased),
    NUMBER: ("text", float),
    TEXT: ("base64", lambda text: _unbased(text).decode("utf-8", "surrogatepass")),
}


def _sound(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _odd_text(text: str) -> Value:
    return {TAG: TEXT, "base64": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")}
