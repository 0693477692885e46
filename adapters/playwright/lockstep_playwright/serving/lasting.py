"""Answers that a browser may use again without asking: whether it asks once more is a race of its own.

A browser keeps what its pages have loaded, in memory and in its cache, and what it is given in place of an answer it
keeps in memory only. So a page that was recorded may have asked once for a picture that its replay asks for twice, or
the other way round. The first is answered with what it was answered before; for the second nobody waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lockstep.log import canonical
from lockstep.log.model import Kind, Value
from lockstep.session.tape import Recorded, Tape
from lockstep_playwright.network.exchange import Fulfil, Head, Headers

_GET = "GET "
_AGE = re.compile(r"\bmax-age\s*=\s*\"?(\d+)")
_ASKS = ("no-store", "no-cache")


def lasts(head: Head) -> bool:
    """Whether an answer may be used again. Without a word about it, browsers take a tenth of its age."""
    if head.status != 200:
        return False
    said = _header(head.headers, "cache-control").lower()
    if any(word in said for word in _ASKS) or _header(head.headers, "vary").strip() == "*":
        return False
    age = _AGE.search(said)
    if age is not None:
        return int(age[1]) > 0
    return bool(_header(head.headers, "expires") or _header(head.headers, "last-modified"))


def repeats(tape: Tape) -> Iterator[Recorded]:
    """The recorded calls that need not be made again: of what lasted from an earlier one."""
    first: dict[bytes, Recorded] = {}
    for effect in sorted((each for lane in tape.lanes.values() for each in lane.effects), key=_position):
        if not effect.begin.name.startswith(_GET):
            continue
        earlier = first.setdefault(effect.begin.key, effect)
        if earlier is not effect and _lasts(tape, earlier):
            yield effect


def _lasts(tape: Tape, effect: Recorded) -> bool:
    seq = next((seq for seq, event, _ in effect.pieces if event.kind is Kind.PART), None)
    return seq is not None and lasts(Head.of(tape.body(seq)))


class Kept:
    """What a browser has been given and may use again."""

    def __init__(self) -> None:
        self._answers: dict[bytes, Fulfil] = {}

    def keep(self, method: str, key: Value, answer: Fulfil) -> None:
        if method == _GET.strip() and lasts(answer.head):
            self._answers[canonical.digest(key)] = answer

    def find(self, key: Value) -> Fulfil | None:
        return self._answers.get(canonical.digest(key)) if self._answers else None


def _position(effect: Recorded) -> int:
    return effect.begin.pos


def _header(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")
