"""The lines of `why`: the value, each origin with what of the value came from there, and the way between them. Pure:
structs in, lines out."""

from __future__ import annotations

import shlex

from lockstep.debugger import structure
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.why import PROGRAM, Link, Origin, Why

_WIDE = 160  # columns of a value where the terminal does not say how many there are
_LISTED = 6  # origins that are shown whole
_SPANS = 5  # spans of one that are listed
_STYLES = {"sure": "good", "likely": "warn", "unsure": "bad"}


def lines(found: Why, width: int) -> list[Line]:
    """All that `why` prints. `width`: columns, 0 for any."""
    room = width or _WIDE
    head = f"{safe(found.address)}  {safe(found.path)}  "
    shown: list[Line] = [
        [(safe(found.address), "address"), "  ", safe(found.path), "  ", _value(found, room - len(head))]
    ]
    if not found.origins:
        return [*shown, ["  there is nothing in it that could be looked for"]]
    for number, origin in enumerate(found.origins[:_LISTED]):
        shown += _origin(origin, [link for link in found.chain if link.origin == number], found, room)
    if len(found.origins) > _LISTED:
        shown.append([f"  … and {len(found.origins) - _LISTED} more, in --json"])
    first = found.origins[0].address.partition("~")[0]
    shown.append(["  next   ", (safe(f"lockstep show {shlex.quote(first)}"), "address")])
    return shown


def _value(found: Why, room: int) -> str:
    text = found.value if isinstance(found.value, str) else structure.shown(found.value)
    return cut(safe(text), max(room, 20))


def _origin(origin: Origin, links: list[Link], found: Why, room: int) -> list[Line]:
    what = f"{origin.kind} {origin.name}".strip()
    line: list[Piece] = [
        "← ",
        (safe(origin.address), "address"),
        "  ",
        (safe(what), "strong"),
        f"  {safe(origin.path)}",
    ]
    if len(found.origins) > 1:
        line.append(f"  {origin.share:.0%}")
    line += ["  ", (origin.certainty, _STYLES[origin.certainty])]
    lines: list[Line] = [line]
    spans = [cut(safe(span), 60) for span in origin.spans[:_SPANS]]
    more = f" … and {len(origin.spans) - _SPANS} more" if len(origin.spans) > _SPANS else ""
    alike = "" if origin.exact else "   (written in another way there)"
    lines.append([cut(f"    {' · '.join(spans)}{more}{alike}", room)])
    if origin.kind == PROGRAM:
        lines.append(["    no answer had it before: it is in the program's own text, or was computed there"])
    if len(links) > 1:
        way = " ← ".join(f"{safe(link.address)} {safe(link.path)}" for link in links)
        lines.append([cut(f"    by {way}", max(room, 200))])
    if origin.rivals:
        lines.append([("    could be", "warn"), f" {', '.join(safe(each) for each in origin.rivals)} as well"])
    return lines
