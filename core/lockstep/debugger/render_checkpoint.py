"""A checkpoint as a row of `log`: the nodes that led to it, and what they changed."""

from __future__ import annotations

from typing import Any

from lockstep.debugger import checkpointed, inert, render_spoken, spoken
from lockstep.debugger.channels import START
from lockstep.debugger.dialects import framed
from lockstep.debugger.lines import Piece, cut, safe
from lockstep.log import native
from lockstep.log.timeline import Step, Timeline

WIDE = 160  # columns for what a step or turn says


def row(timeline: Timeline, step: Step) -> list[Piece]:
    """The cells of a checkpoint: mark, what it changed, part of the thread, and two that are empty."""
    spoke = spoken.read(timeline, step)
    if spoke is not None:
        return render_spoken.row(timeline, step, spoke)
    hidden = timeline.reader.field(step.stream, step.seq, "hidden")
    told = [] if hidden is True else checkpointed.said(timeline, step)
    source = checkpointed.source(timeline, step)
    mark: Piece = f"● {safe(step.name)}" if source in native.MADE else (f"○ {safe(source)}", "dim")
    summary = cut(" · ".join(_told(*one) for one in told), WIDE)
    return [mark, safe(summary), (safe(checkpointed.namespace(timeline, step)), "dim"), "", ""]


def _told(name: str, grown: bool, value: Any) -> str:
    """What a channel got, in words."""
    items = value if grown and isinstance(value, list) else [value]
    if items and (all(map(framed.is_message, items)) or inert.are_messages(value)):
        last = items[-1] if framed.is_message(items[-1]) else items[-1][-1]
        more = f"(+{len(items)}) " if len(items) > 1 else ""
        return more + inert.message(framed.message(last))
    if grown:
        return f"{name} + {', '.join(inert.line(item) for item in items)}"
    return inert.line(value) if name == START else f"{name} = {inert.line(value)}"
