"""The lines of `diff`: the first difference whole, then the others in a line each. Pure: structs in, lines out."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from lockstep.debugger import words
from lockstep.debugger.entries import Diff, DiffEntry, Timing
from lockstep.debugger.lines import Line, Piece, cells, cut, safe
from lockstep.debugger.structure import differing
from lockstep.log.timeline import STEP

_PLACES = 5  # places shown of the first difference
_WIDE = 160  # columns of a value where the terminal does not say how many there are
_SHORT = 60  # columns of a value in the list
_KINDS = ("changed", "added", "removed", "moved", "output", "end")
_STYLES = {"added": "good", "removed": "bad", "moved": "warn"}
_AROUND = 12  # characters of it around what differs
_TIMES = 20  # calls whose times are listed


def compared(found: Diff, a: str, b: str, *, limit: int | None, width: int) -> list[Line]:
    """All that `diff` prints. `limit`: how many differences at most, None for all; `width`: columns, 0 for any."""
    if found.same:
        lines: list[Line] = [[("✓ ", "good"), ("same", "good"), f"   {_steps(found)}"]]
    else:
        assert found.first is not None
        lines = _first(found.first, a, b, width)
        rest = found.differences[1:] if limit is None else found.differences[1 : max(1, limit)]
        if rest:
            lines += ["", *_list(rest, width)]
        hidden = len(found.differences) - 1 - len(rest)
        if hidden:
            again = f"lockstep diff {shlex.quote(a)} {shlex.quote(b)} --all"
            lines.append([f"  … and {hidden} more:   ", (safe(again), "address")])
        lines += ["", _counts(found)]
    if found.left_out:
        lines += _left_out(found, a, b)
    if found.times:
        lines += ["", *_times(found.times)]
    return lines


def _steps(found: Diff) -> str:
    one, other = found.steps
    return words.number(one, "step") if one == other else f"{words.number(one, 'step')} and {other}"


def _first(entry: DiffEntry, a: str, b: str, width: int) -> list[Line]:
    where = " and ".join(safe(address) for address in (entry.address_a, entry.address_b) if address)
    lines: list[Line] = [[("✗ ", "bad"), ("differ", "bad"), "   first at ", (where, "address")]]
    facts = [f"lane {safe(entry.lane)}" if entry.lane else "", safe(entry.site)]
    lines.append([
        "  ", (entry.kind, _STYLES.get(entry.kind, "warn")), "  ", (_subject(entry), "strong"), "  ",
        "  ".join(fact for fact in facts if fact),
    ])  # fmt: skip
    lines.append([f"  {safe(entry.reason)}"])
    changes = entry.changes or ((entry,) if entry.a or entry.b else ())
    names = _names(a, b)
    for change in changes[:_PLACES]:
        if change.path:
            lines.append(["  ", (safe(change.path), "strong")])
        room = max(20, width - 4 - max(map(cells, names)) - 3) if width else _WIDE + 40
        for name, value in zip(names, (change.a, change.b), strict=True):
            padding = " " * (max(map(cells, names)) - cells(name) + 3)
            lines.append([f"    {name}{padding}", cut(safe(value), room)])
    if len(changes) > _PLACES:
        lines.append([f"    … and {words.number(len(changes) - _PLACES, 'more place', 'more places')}"])
    shows: list[Piece] = []
    for address in (entry.address_a, entry.address_b):
        if address:
            shows += ["      " if shows else "  ", (f"lockstep show {safe(shlex.quote(address))}", "address")]
    if shows:
        lines.append(shows)
    return lines


def _names(a: str, b: str) -> tuple[str, str]:
    """What the two sides are called beside their values."""
    return ("first", "second") if a == b or max(len(a), len(b)) > 24 else (safe(a), safe(b))


def _subject(entry: DiffEntry) -> str:
    name = entry.name if entry.name != entry.effect else ""
    if entry.effect == STEP:
        return f"step {safe(name)}"
    return f"{safe(entry.effect)} {safe(name)}".strip()


def _list(entries: Sequence[DiffEntry], width: int) -> list[Line]:
    rows = [
        (
            entry.kind,
            safe(entry.address_a or "–"),
            safe(entry.address_b or "–"),
            _subject(entry),
            _what(entry),
        )
        for entry in entries
    ]
    widths = [max(cells(row[column]) for row in rows) for column in range(4)]
    lines: list[Line] = []
    for row in rows:
        pieces: list[Piece] = ["  "]
        for column, text in enumerate(row[:4]):
            padding = " " * (widths[column] - cells(text) + 2)
            style = _STYLES.get(text, "") if column == 0 else "address" if column < 3 and text != "–" else ""
            pieces += [(text, style) if style else text, padding]
        room = max(20, width - 2 - sum(widths) - 8) if width else 0
        pieces.append(cut(row[4], room) if room else row[4])
        lines.append(pieces)
    return lines


def _what(entry: DiffEntry) -> str:
    if entry.follows:
        return f"carries on what differs at {safe(entry.follows)}"
    if entry.kind == "added":
        return cut(safe(entry.b), _SHORT)
    if entry.kind == "removed":
        return cut(safe(entry.a), _SHORT)
    if not entry.path or (entry.a == entry.b and entry.a):
        return safe(entry.reason)
    more = f"  +{len(entry.changes) - 1}" if len(entry.changes) > 1 else ""
    a, b = _closer(entry.a, entry.b)
    return f"{cut(safe(entry.path), _SHORT)}  {safe(a)} → {safe(b)}{more}"


def _closer(a: str, b: str) -> tuple[str, str]:
    """Two values on one line: of long ones little more than what differs."""
    if len(a) <= _SHORT and len(b) <= _SHORT:
        return a, b
    start, end = differing(a, b)
    start, end = max(0, start - _AROUND), max(0, end - _AROUND)
    short = [
        cut(f"{'…' if start else ''}{text[start : len(text) - end]}{'…' if end else ''}", _SHORT) for text in (a, b)
    ]
    return short[0], short[1]


def _counts(found: Diff) -> Line:
    counted: Counter[str] = Counter(entry.kind for entry in found.differences)
    kinds = " · ".join(f"{counted[kind]} {kind}" for kind in _KINDS if counted[kind])
    following = sum(bool(entry.follows) for entry in found.differences)
    more = f"   {following} only carry on what differed before" if following > 1 else ""
    more = "   1 only carries on what differed before" if following == 1 else more
    return [(words.number(len(found.differences), "difference"), "strong"), f"   {kinds}{more}"]


def _left_out(found: Diff, a: str, b: str) -> list[Line]:
    counted: Counter[str] = Counter()
    for left in found.left_out:
        counted[left.what] += left.count
    kinds = " · ".join(f"{count} {what}" for what, count in counted.items())
    again = f"lockstep diff {shlex.quote(a)} {shlex.quote(b)} --exact"
    return [[("  not counted", "dim"), f": {kinds}   ", (safe(again), "address")]]


def _times(times: Sequence[Timing]) -> list[Line]:
    lines: list[Line] = []
    for timing in times[:_TIMES]:
        took = " → ".join(
            words.duration(value / 1e9) if value is not None else "in flight" for value in (timing.a, timing.b)
        )
        pieces = f"   {timing.pieces_a} → {timing.pieces_b} pieces" if timing.pieces_a != timing.pieces_b else ""
        lines.append([
            "  ", (safe(timing.address_a), "address"), "  ", (safe(timing.address_b), "address"),
            f"  {safe(timing.effect)} {safe(timing.name)}  {took}{pieces}",
        ])  # fmt: skip
    if len(times) > _TIMES:
        lines.append([f"  … and {len(times) - _TIMES} more: --json"])
    return lines
