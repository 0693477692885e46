"""The lines of `log` and `show` for what somebody of a team said: the words, why that one spoke, why the team stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lockstep.debugger import checkpointed, inert, words
from lockstep.debugger.dialects import framed
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.listing import Said
from lockstep.debugger.spoken import CHANNELS, Spoken
from lockstep.log import native
from lockstep.log.timeline import Step, Timeline

_WIDE = 160
_MOST = 24  # lines for what speakers did on the way


def row(timeline: Timeline, step: Step, said: Spoken) -> list[Piece]:
    """The cells of a step: who spoke, what was said, of which team, and two that are empty."""
    source = checkpointed.source(timeline, step)
    mark: Piece = f"● {safe(step.name)}" if source in native.MADE else (f"○ {safe(source)}", "dim")
    several = len({each.get("source") for each in said.messages}) > 1
    text = " · ".join(_words(each, named=several) for each in said.messages)
    if said.chosen:
        text += f"   ← chosen by {', '.join(said.chosen)}"
    if said.stop:
        text += f"   ■ {said.stop}"
    return [mark, safe(cut(text, _WIDE)), (safe(checkpointed.namespace(timeline, step)), "dim"), "", ""]


def _words(message: Any, *, named: bool) -> str:
    """What was said in a line; `named`: with who said it."""
    read = framed.message(message)
    text = inert.message(read)
    return text if named else text.removeprefix(f"{read.role} ")


def shown(found: Said, width: int) -> list[Line]:
    """The lines of `show`."""
    path = found.address.rpartition(":")[0]
    facts = f"lane {safe(found.lane)}" + (f"  turn {found.turn}" if found.turn else "")
    title = found.name if found.source in native.MADE else f"{found.source} {found.name}"
    lines: list[Line] = [[(safe(found.address), "address"), "  ", (safe(title), "strong"), "  ", facts]]
    if found.parent >= 0:
        lines.append([("after      ", "dim"), (f"{safe(path)}:{found.parent}", "address")])
    if found.selected:
        by = f"   by {', '.join(found.chosen)}" if found.chosen else ""
        lines += _line("chosen", f"{', '.join(found.selected)}{by}", width)
    for message in found.messages:
        inner = [each for each in message.get("inner") or () if isinstance(each, dict)]
        for each in inner[:_MOST]:
            lines += _line("did", _words(each, named=True), width)
        lines += _line("said", _words(message, named=True), width, "good")
    if found.stop:
        lines += _line("stop", found.stop, width, "warn")
    for text in _remembered(found):
        lines += _line("state", text, width)
    for effect in found.effects:
        what = f"  {effect.kind} {safe(effect.name)}  {effect.effect_class}  lane {safe(effect.lane)}"
        lines.append([
            ("effect     ", "dim"), (safe(effect.address), "address"), f"{what}  {effect.answered}".rstrip(),
        ])  # fmt: skip
    return lines


def _remembered(found: Said) -> Iterator[str]:
    """What the team and its agents remember, with what has become another."""
    changed = {row.channel: row for row in found.changes}
    state = found.outcome if isinstance(found.outcome, dict) else {}
    for name, value in state.items():
        if name in CHANNELS:
            continue
        change = changed.get(name)
        if isinstance(value, list) and (not value or inert.are_messages(value)):
            new = len(change.items) if change is not None and change.how == "grown" else 0
            count = f"{words.number(len(value), 'message')}{f'  (+{new})' if new else ''}"
            yield f"{'~' if change is not None else ' '} {name}   {count}"
        else:
            yield f"{'~' if change is not None else ' '} {name}   {inert.line(value)}"


def _line(label: str, text: str, width: int, style: str = "") -> Sequence[Line]:
    room = max(20, width - 11) if width else 0
    text = safe(text)
    body = cut(text, room) if room else text
    return [[(f"{label:<11}", "dim"), (body, style) if style else body]]
