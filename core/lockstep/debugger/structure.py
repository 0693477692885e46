"""All places in which two values differ, each with a short path and the parts that differ.

Lists are aligned by content, so that an added message is one difference and not one in each after it. JSON inside
of texts and bytes is opened: a body, the arguments of a tool call, a structured answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.debugger import bodies
from lockstep.debugger.alignment import common, gaps
from lockstep.debugger.sameness import Sameness, Where, loosened
from lockstep.log import canonical
from lockstep.log.model import Value

ABSENT = "(absent)"
_ANYWHERE = Where()
_SHOWN = 160  # characters of a value in a report
_CONTEXT = 40  # of them before the place where two texts begin to differ
# Below these, a model says what it wants a tool to get: no field there is its provider's.
_SAID = frozenset({"arguments", "input", "args"})


class Change(msgspec.Struct, frozen=True):
    """One place that differs: `a` and `b` as JSON, cut to what differs; `(absent)` where there is nothing."""

    path: str
    a: str
    b: str


class Found(msgspec.Struct, frozen=True):
    """A change with the values that differ, None for what is absent."""

    change: Change
    a: Value
    b: Value


# Told of what differs and says nothing: what, path, a, b.
type LeftOutTo = Callable[[str, str, str, str], None]


class Comparison:
    """Walks two values together. `found` gathers the differences in document order."""

    def __init__(self, same: Sameness, left_out: LeftOutTo) -> None:
        self.found: list[Found] = []
        self._same = same
        self._left_out = left_out

    def compare(self, a: Value, b: Value, path: str = "", name: str = "", where: Where = _ANYWHERE) -> None:
        if not isinstance(a, dict | list) and type(a) is type(b) and (a == b or repr(a) == repr(b) == "nan"):
            return
        if isinstance(a, dict) and isinstance(b, dict):
            self._dicts(a, b, path, where)
            return
        if isinstance(a, list) and isinstance(b, list):
            self._lists(a, b, path, name, where)
            return
        before, opened_a, opened_b = len(self.found), opened(a), opened(b)
        if opened_a is not a and opened_b is not b:
            self.compare(opened_a, opened_b, path, "", msgspec.structs.replace(where, model=False, headers=False))
            if len(self.found) == before and opened_a == opened_b:
                self._add(path, a, b)  # the same JSON, written in another way
            return
        reason = self._same.reason(a, b, name, where)
        if reason:
            self._left_out(reason, path, shown(a), shown(b))
            return
        self._add(path, a, b)

    def _add(self, path: str, a: Value, b: Value) -> None:
        if isinstance(a, str) and isinstance(b, str):
            self.found.append(Found(Change(path, *around(a, b)), a, b))
        elif isinstance(a, bytes) and isinstance(b, bytes):
            texts = (one.decode("utf-8", "backslashreplace") for one in (a, b))
            self.found.append(Found(Change(path, *around(*texts)), a, b))
        else:
            self.found.append(Found(Change(path, shown(a), shown(b)), a, b))

    def _one(self, value: Value, path: str, name: str, where: Where, *, only_in_a: bool) -> None:
        reason = self._same.absent(name, where)
        text = shown(value)
        a, b = (text, ABSENT) if only_in_a else (ABSENT, text)
        if reason:
            self._left_out(reason, path, a, b)
        else:
            self.found.append(Found(Change(path, a, b), *((value, None) if only_in_a else (None, value))))

    def _dicts(self, a: dict[str, Any], b: dict[str, Any], path: str, where: Where) -> None:
        for name in [*a, *(name for name in b if name not in a)]:
            inner = joined(path, name)
            here = where
            if name in _SAID:
                here = msgspec.structs.replace(where, model=False)
            elif name == "headers" and where.answer:
                here = msgspec.structs.replace(where, model=False, headers=True)
            if name not in b:
                self._one(a[name], inner, name, here, only_in_a=True)
            elif name not in a:
                self._one(b[name], inner, name, here, only_in_a=False)
            else:
                self.compare(a[name], b[name], inner, name, here)

    def _lists(self, a: list[Any], b: list[Any], path: str, name: str, where: Where) -> None:
        if len(a) == len(b) == 1:
            self.compare(a[0], b[0], f"{path}[0]", name, where)
            return
        pairs = common([_identity(item) for item in a], [_identity(item) for item in b])
        moves = dict(pairs)
        for olds, news in gaps(pairs, len(a), len(b)):
            moves.update(zip(olds, news, strict=False))
        partners = {new: old for old, new in moves.items()}
        new = 0
        for old in range(len(a)):
            partner = moves.get(old)
            if partner is None:
                self._one(a[old], f"{path}[{old}]", name, where, only_in_a=True)
                continue
            for added in range(new, partner):
                if added not in partners:
                    self._one(b[added], f"{path}[{added}]", name, where, only_in_a=False)
            new = partner + 1
            self.compare(a[old], b[partner], f"{path}[{partner}]", name, where)
        for added in range(new, len(b)):
            if added not in partners:
                self._one(b[added], f"{path}[{added}]", name, where, only_in_a=False)


def joined(path: str, name: str) -> str:
    plain = name.replace("_", "").replace("-", "").isalnum()
    part = name if plain else json.dumps(name, ensure_ascii=False)
    return f"{path}.{part}" if path else part


def opened(value: Value) -> Value:
    """A text or bytes that are JSON with an inside, opened; anything else itself."""
    if isinstance(value, str | bytes) and value[:1] in ("{", "[", b"{", b"["):
        found = bodies.json(value)
        if isinstance(found, dict | list):
            return found
    return value


def _identity(value: Value) -> bytes:
    return canonical.canonical(loosened(value))


def shown(value: Value) -> str:
    """A value as JSON on one line, cut in the middle."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = json.dumps(value, ensure_ascii=False, default=_text)
    if len(text) <= _SHOWN:
        return text
    half = (_SHOWN - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else repr(value)


def around(a: str, b: str) -> tuple[str, str]:
    """Two texts as JSON; of long ones the part that differs, with what stands around it."""
    if len(a) <= _SHOWN and len(b) <= _SHOWN:
        return shown(a), shown(b)
    start, end = differing(a, b)
    return _window(a, start, end), _window(b, start, end)


def differing(a: str, b: str) -> tuple[int, int]:
    """How many characters two texts have in common at their beginning and, behind that, at their end."""
    start = _shared(a, b)
    return start, _shared(a[start:][::-1], b[start:][::-1])


def _shared(a: str, b: str) -> int:
    # By halves: comparing slices is faster than comparing characters.
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _window(text: str, start: int, end: int) -> str:
    low = max(0, start - _CONTEXT)
    high = min(len(text), len(text) - end + _CONTEXT)
    part = text[low:high]
    if len(part) > _SHOWN:
        half = (_SHOWN - 1) // 2
        part = f"{part[:half]}…{part[-half:]}"
    return json.dumps(f"{'…' if low else ''}{part}{'…' if high < len(text) else ''}", ensure_ascii=False)
