"""An error as `show` prints it and an edit gives it: `{"$": "raise", "type": "ValueError", "message": "no order 7"}`.

`args` is there where the message alone does not say them: `{"$": "raise", "type": "ConnectionRefusedError",
"args": [111, "Connection refused"]}`. The `$` keeps it apart from an answer that merely tells of an error.
Errors of the standard library are made as their own constructor makes them; of any other class, which must be
loaded where it is served, an instance gets these arguments and none of its code runs (`session.exceptions`).
"""

from __future__ import annotations

import builtins
import re
from typing import Any

from lockstep.errors import Code, EditError
from lockstep.log.model import Value
from lockstep.session import exceptions, snapshot

RAISE = "raise"
_NAMES = frozenset({snapshot.TAG, "type", "message", "args", "exception"})
_TYPE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_SCALARS = (bool, int, float, str, type(None))


def is_raise(value: Value) -> bool:
    """Whether a value says that something is raised."""
    return isinstance(value, dict) and value.get(snapshot.TAG) == RAISE


def shown(encoded: Value) -> dict[str, Value]:
    """An encoded exception, to look at and to edit."""
    form: dict[str, Any] = encoded if isinstance(encoded, dict) else {}
    module, name = str(form.get("module") or ""), str(form.get("name") or "Exception")
    found: dict[str, Value] = {
        snapshot.TAG: RAISE, "type": name if module in ("", "builtins") else f"{module}.{name}",
        "message": _message(form),
    }  # fmt: skip
    args = form.get("args")
    if (
        isinstance(args, list)
        and args
        and args != [found["message"]]
        and all(isinstance(one, _SCALARS) for one in args)
    ):
        found["args"] = args
    return found


def of(error: BaseException) -> Value:
    """An exception of this process as an edit gives it, with all that is known of it in `exception`."""
    form = exceptions.encode(error)
    return {**shown(form), "exception": form}


def _message(form: dict[str, Any]) -> str:
    args = form.get("args")
    if not isinstance(args, list):
        return ""
    members = form.get("members")
    if isinstance(members, dict) and isinstance(members.get("strerror"), str):
        return str(members["strerror"])
    return ", ".join(_argument(one) for one in args)


def _argument(value: Any) -> str:
    if isinstance(value, dict):
        inner = value.get("exception")
        if isinstance(inner, dict):
            return _message(inner)
        live = value.get("live")
        if isinstance(live, list) and len(live) == 3:
            return str(live[1] or live[0])
        return str(next(iter(value.values()), ""))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def encoded(form: Value, recorded: Value = None) -> Value:
    """The encoded exception that an edit asks for. `recorded`: the one that was raised, of which what the edit leaves
    as it was is kept: attributes, cause. Raises EditError LS213."""
    if not isinstance(form, dict) or not is_raise(form):
        raise EditError(Code.UNEDITABLE, "not an error to raise")
    before = shown(recorded) if isinstance(recorded, dict) else {}
    if form == before:
        return recorded
    whole = form.get("exception")
    if isinstance(whole, dict) and {**shown(whole), "exception": whole} == form:
        return whole
    unknown = form.keys() - _NAMES
    if unknown:
        raise EditError(
            Code.UNEDITABLE, f"an error to raise has type, message and args, not {', '.join(sorted(unknown))}"
        )
    name, args = form.get("type", before.get("type")), form.get("args")
    message = form.get("message", "")
    if not isinstance(name, str) or not _TYPE.fullmatch(name):
        raise EditError(
            Code.UNEDITABLE, f'an error needs a type, as in {{"$": "raise", "type": "ValueError"}}, not {name!r}'
        )
    if not isinstance(message, str):
        raise EditError(Code.UNEDITABLE, f"the message of an error is a text, not {message!r}")
    if args is not None and not (isinstance(args, list) and all(isinstance(one, _SCALARS) for one in args)):
        raise EditError(Code.UNEDITABLE, "the args of an error are a list of texts and numbers")
    if isinstance(recorded, dict) and name == before.get("type"):
        if args == before.get("args"):
            return _reworded(recorded, str(before["message"]), message)
        if "." in name and args is not None:
            return {**recorded, "args": args}
    if args is None or (args == before.get("args") and message != before.get("message")):
        args = [message] if message else []
    return _made(name, args)


def _reworded(recorded: dict[str, Any], before: str, message: str) -> Value:
    """The same error with another message, wherever it says it."""

    def changed(value: Any) -> Any:
        if value == before and isinstance(value, str):
            return message
        if isinstance(value, list):
            return [changed(each) for each in value]
        return {name: changed(each) for name, each in value.items()} if isinstance(value, dict) else value

    made: dict[str, Any] = dict(recorded)
    for name in ("args", "members", "state"):
        if name in made:
            made[name] = changed(made[name])
    return made if before and made != recorded else {**recorded, "args": [message]}


def _made(name: str, args: list[Any]) -> Value:
    module, _, last = name.rpartition(".")
    if module in ("", "builtins"):
        found = getattr(builtins, last, None)
        if not isinstance(found, type) or not issubclass(found, BaseException):
            raise EditError(
                Code.UNEDITABLE, f"{last} is no error of Python's own: say its module too, as in app.errors.{last}"
            )
        if not issubclass(found, Exception):
            raise EditError(Code.UNEDITABLE, f"{last} ends the program: it is no answer")
        try:
            return exceptions.encode(found(*args))
        except (TypeError, ValueError) as problem:
            raise EditError(Code.UNEDITABLE, f"{last} does not take these arguments: {problem}") from None
    return {"module": module, "name": last, "args": list(args)}
