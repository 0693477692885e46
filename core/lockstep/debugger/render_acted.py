"""The lines of `log` and `show` for actions on a page: what was done, what came of it, how the page looked then."""

from __future__ import annotations

from typing import Any

from lockstep.debugger import inert, listing, words
from lockstep.debugger.acted import Acted
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.render_log import block
from lockstep.log.timeline import Step

_WIDE = 160  # columns for what a row says
_LINES = 40  # of a snapshot that are shown
_AROUND = 2  # lines around what is new in a longer one


def row(step: Step, told: Acted, where: str) -> list[Piece]:
    """The cells of an action: mark, what came of it, its page, one that is empty, how long it took."""
    style = "bad" if told.error else ""
    name = cut(safe(step.name), _WIDE)
    mark: Piece = (f"● {name}", style) if style else f"● {name}"
    return [mark, _came(told), (safe(where), "dim"), "", words.duration(told.seconds)]


def _came(told: Acted) -> Piece:
    if told.error:
        return cut(safe(told.error), _WIDE), "bad"
    was, is_ = told.url
    if is_ and was != is_ and is_ not in told.arguments.values():
        return cut(f"→ {safe(is_)}", _WIDE)
    result = told.result
    if isinstance(result, dict) and isinstance(result.get("status"), int):
        return f"→ {result['status']}"
    return cut(f"→ {safe(inert.line(result))}", _WIDE) if result is not None and not _is_handle(result) else ""


def _is_handle(result: Any) -> bool:
    return isinstance(result, dict) and result.get("$") in ("handle", "picture")


def shown(found: listing.Acted, width: int) -> list[Line]:
    """The lines of `show` for a step."""
    path = found.address.rpartition(":")[0]
    facts = [
        f"lane {safe(found.lane)}" if found.lane not in ("", "main") else "",
        safe(found.site),
        words.duration(found.duration / 1e9) if found.duration is not None else "",
    ]
    lines: list[Line] = [[
        (safe(found.address), "address"), "  ", (safe(found.name), "strong"), "  ",
        "  ".join(fact for fact in facts if fact),
    ]]  # fmt: skip
    if found.parent >= 0:
        lines.append([("after      ", "dim"), (f"{safe(path)}:{found.parent}", "address")])
    lines += _told("call", found.api, width)
    for name, value in found.request.items() if isinstance(found.request, dict) else ():
        text = value if isinstance(value, str) else inert.line(value)
        lines += _told("", f"{name}  {text}", width)
    lines += _told("frame", found.frame, width) if found.frame else []
    if found.error:
        lines += block("error", found.error, width, "bad")
    elif found.outcome is not None:
        lines += _told("gave", inert.line(found.outcome), width)
    was, is_ = found.url
    if is_ or was:
        moved = f"{was} → {is_}" if was and is_ and was != is_ else is_ or was
        lines += _told("at", moved, width)
    if found.changed:
        lines += _told("changed", " and ".join(found.changed), width)
    if not found.settled:
        lines += block("note", "the document had not been parsed when it was looked at", width, "warn")
    lines += _snapshot(found, width)
    if found.picture:
        lines.append([("picture    ", "dim"), (safe(found.picture), "address")])
    for effect in found.effects:
        what = (
            f"  {effect.kind} {safe(effect.name)}  {effect.effect_class}  lane {safe(effect.lane)}  {effect.answered}"
        )
        lines.append([("effect     ", "dim"), (safe(effect.address), "address"), what.rstrip()])
    return lines


def _told(label: str, text: str, width: int) -> list[Line]:
    return block(label, text, width) if text else []


def _snapshot(found: listing.Acted, width: int) -> list[Line]:
    """The page as it is read out, with what the action added and took away. Of a long one, what is around that."""
    marked = list(found.snapshot)
    if not marked:
        return []
    shown = range(len(marked))
    if len(marked) > _LINES:
        near = {
            at
            for changed, (mark, _) in enumerate(marked)
            if mark
            for at in range(changed - _AROUND, changed + _AROUND + 1)
        } or set(shown)
        shown = sorted(near & set(shown))[:_LINES]  # type: ignore[assignment]
    room = max(20, width - 13) if width else 0
    lines: list[Line] = []
    last = -1
    for at in shown:
        if at != last + 1:
            lines.append([f"{'':13}┆"])
        mark, text = marked[at]
        label = ("page" if not lines else "").ljust(11)
        line = cut(safe(text), room) if room else safe(text)
        body: Piece = (f"{mark or ' '} {line}", "good" if mark == "+" else "bad") if mark else f"  {line}"
        lines.append([(label, "dim"), body])
        last = at
    if last < len(marked) - 1:
        lines.append([f"{'':13}… {words.number(len(marked) - last - 1, 'more line', 'more lines')} (--json has all)"])
    return lines
