"""What stands for a value that may not, or cannot, come back as itself: its data, and what it was."""

from __future__ import annotations

from typing import Any

from lockstep.log.model import Value
from lockstep_langgraph import losses

# Parts of a form that are its content, by the name under which a program finds them in the inert value.
_CONTENT = {"$items": "items", "$pairs": "pairs", "$value": "value", "$name": "name", "$fields": "fields"}


class Inert(dict[str, Any]):
    """The fields of an object as a dict. `type`: its class, as in `shop.models:Order`; `why` it is not restored.

    Putting it into the state again stores what was stored before, with the fields as they are now: nothing is lost
    in a process that does not know the class.
    """

    __slots__ = ("_form", "type", "why")

    def __init__(self, form: dict[str, Value], fields: dict[str, Any], why: str) -> None:
        super().__init__(fields)
        self._form = form
        self.type = losses.shown(form.get("$class", form.get("$")))
        self.why = why

    # Inert values may stand in sets; equal ones have equal fields, which may have no hash.
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.type)

    def __eq__(self, other: object) -> bool:
        return type(other) is Inert and self.type == other.type and dict.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"<inert {self.type} {dict.__repr__(self)}>"

    def __copy__(self) -> Inert:
        return Inert(self._form, dict(self), self.why)

    def __deepcopy__(self, memo: dict[int, Any]) -> Inert:
        from copy import deepcopy

        return Inert(self._form, deepcopy(dict(self), memo), self.why)

    def __reduce__(self) -> Any:
        return Inert, (self._form, dict(self), self.why)


class InertError(Exception):
    """An exception of a class that does not come back as itself: it prints as the recorded one."""

    def __init__(self, form: dict[str, Value], text: str, why: str) -> None:
        super().__init__(text)
        self._form = form
        self.type = _class_of(form)
        self.why = why

    def __reduce__(self) -> Any:
        return InertError, (self._form, self.args[0], self.why)


def content(form: dict[str, Value]) -> dict[str, Value]:
    """What a program finds in the inert value: the fields, and parts that are content."""
    found: dict[str, Value] = {}
    for name, part in form.items():
        if not name.startswith("$"):
            found[name] = part
        elif name in _CONTENT:
            found[_CONTENT[name]] = part
    return found


def header(form: dict[str, Value]) -> dict[str, Value]:
    """The rest of a form."""
    return {name: part for name, part in form.items() if name.startswith("$") and name not in _CONTENT}


def names(form: dict[str, Value]) -> dict[str, str]:
    """The parts of the form that are content, by the names that they have in the inert value."""
    return {shown: name for name, shown in _CONTENT.items() if name in form}


def form_of(value: Inert | InertError) -> dict[str, Value]:
    """What it was made of."""
    return value._form


def _class_of(form: dict[str, Value]) -> str:
    error = form.get("$value")
    return losses.shown(f"{error.get('module')!s}:{error.get('name')!s}") if isinstance(error, dict) else "?"
