"""What is said of a request that was not recorded: the recorded one that is most like it, and the one value that keeps
them apart, if it is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from lockstep.errors import Code, Difference
from lockstep.log.model import Value
from lockstep.session import difference, findings
from lockstep.session.native.serving import Serving
from lockstep.session.tape import Recorded
from lockstep_playwright import volatile
from lockstep_playwright.network import requests
from lockstep_playwright.volatile import Places, Rules

_ANOTHER = "another request than recorded"
_COLLIDES = (
    "a value that may be another one in each run stands for two: what was apart is one now, or what was one is apart"
)
_LOOKED = 200  # recorded calls that are looked through
# What is made anew each time, by its looks: long numbers, fractions, dates, and words with letters and digits.
_MADE = re.compile(
    r"\d{9,}|\d*\.\d{6,}|\d{4}-\d\d-\d\d[T ].*|[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=.*\d)(?=.*[A-Za-z])[\w.~+/=-]{10,}",
    re.IGNORECASE,
)


def told(rules: Rules, servings: Sequence[Serving], found: Difference, kind: str, request: Value) -> Difference:
    """The difference, told better. `request`: of the call, with its secrets hidden."""
    key = requests.key_of(kind, request)
    now = volatile.places(key)
    nearest = min(_left(servings, kind, now), key=lambda each: len(each[2]), default=None)
    method, url = volatile.address(key)
    declared = rules.declared(method, url)
    if nearest is None or not nearest[2]:
        return found
    serving, effect, differing = nearest
    collides = all(volatile.within(path, declared) for path, _, _ in differing)
    if len(differing) != 1 and not collides:
        return found
    path, was, is_ = differing[0]
    # What may be another value, and was not let be one, stands for another value already.
    return replace(
        found, code=Code.REQUEST, path=path, expected=difference.shown(was), actual=difference.shown(is_),
        name=effect.begin.name, step=findings.step_of(serving.tape, effect), reason=_COLLIDES if collides else _ANOTHER,
        hint="" if collides else hint(method, url, path, was, is_),
    )  # fmt: skip


def hint(method: str, url: str, path: str, was: Value, is_: Value) -> str:
    """The rule that would let this differ, where both values look as if they were made anew each time."""
    if not all(_MADE.fullmatch(_text(value)) for value in (was, is_)):
        return ""
    place = path if path.startswith("path[") else volatile.general(path)
    return f'if it is another value in each run: [tool.lockstep.volatile] "{_pattern(method, url, path)}" = ["{place}"]'


def _pattern(method: str, url: str, path: str) -> str:
    """The call, on any host."""
    whole = url.partition("?")[0].partition("#")[0].partition("://")[2]
    pieces = whole.split("/")[1:]
    if path.startswith("path["):
        pieces[int(path[5:-1])] = "*"
    return f"{method} */{'/'.join(pieces)}"


def _left(
    servings: Sequence[Serving], kind: str, now: Places
) -> Iterator[tuple[Serving, Recorded, list[tuple[str, Value, Value]]]]:
    """The recorded calls that nobody made, each with what is another thing in it."""
    for serving in servings:
        left = (
            effect
            for lane in serving.tape.lanes
            for effect in serving.strand(lane).state.left()
            if effect.begin.what == kind
        )
        for effect in islice(left, _LOOKED):
            stored = serving.tape.request(effect).get("request")
            yield serving, effect, volatile.differing(volatile.places(requests.key_of(kind, stored)), now)


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
