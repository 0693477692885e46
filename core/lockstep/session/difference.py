"""From a mismatch to something a person can act on: which field differs, and what looks most like it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lockstep.log.model import Value

_SHOWN = 160  # characters of a value in a report; the whole is in `lockstep show` and `--json`


def first(expected: Value, actual: Value, path: str = "") -> tuple[str, str, str] | None:
    """The first place, in document order, where two requests differ: (path, recorded, now)."""
    return next(each(expected, actual, path), None)


def each(expected: Value, actual: Value, path: str = "") -> Iterator[tuple[str, str, str]]:
    """All such places; of a list that is longer than the other, the first item that the other has not."""
    expected, actual = _opened(expected), _opened(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in [*expected, *(key for key in actual if key not in expected)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in actual:
                yield inner, shown(expected[name]), "(absent)"
            elif name not in expected:
                yield inner, "(absent)", shown(actual[name])
            else:
                yield from each(expected[name], actual[name], inner)
        return
    if isinstance(expected, list) and isinstance(actual, list):
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from each(left, right, f"{path}[{index}]")
        if len(expected) != len(actual):
            longer = expected if len(expected) > len(actual) else actual
            rest = shown(longer[min(len(expected), len(actual))])
            where = f"{path}[{min(len(expected), len(actual))}]"
            yield (where, rest, "(absent)") if longer is expected else (where, "(absent)", rest)
        return
    if type(expected) is type(actual) and expected == actual:
        return
    if isinstance(expected, str) and isinstance(actual, str):
        yield path, *_around(expected, actual)
    else:
        yield path, shown(expected), shown(actual)


def shown(value: Value) -> str:
    """A value as JSON, cut in the middle."""
    if isinstance(value, bytes):
        opened = _opened(value)
        value = opened if not isinstance(opened, bytes) else value.decode("utf-8", "backslashreplace")
    return cut(json.dumps(value, ensure_ascii=False, default=repr))


def cut(text: str, width: int = _SHOWN) -> str:
    """Keeps both ends of a long text."""
    if len(text) <= width:
        return text
    half = (width - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def leaves(value: Value, path: str = "") -> Iterator[str]:
    """Every `path=leaf` of a value: two requests are alike by how many of these they share."""
    value = _opened(value)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield f"{path}={value!r}"


def _opened(value: Value) -> Value:
    # A body that is JSON is compared field by field; any other by its bytes.
    if isinstance(value, bytes) and value[:1] in (b"{", b"["):
        try:
            opened: Value = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return opened
    return value


def _around(expected: str, actual: str) -> tuple[str, str]:
    # Long texts (prompts) mostly differ in a word: show the two around the first difference.
    if len(expected) <= _SHOWN and len(actual) <= _SHOWN:
        return shown(expected), shown(actual)
    start = next(
        (i for i, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b), min(len(expected), len(actual))
    )
    begin = max(0, start - _SHOWN // 4)
    lead = "…" if begin else ""

    def window(text: str) -> str:
        end = begin + _SHOWN
        return json.dumps(lead + text[begin:end] + ("…" if len(text) > end else ""), ensure_ascii=False)

    return window(expected), window(actual)
