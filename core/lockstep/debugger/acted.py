"""Steps that are actions, as on a page of a browser: what was done, what came of it, and what the page was then.

Their records have an `action` in the place of channels, see `lockstep.log.checkpoints`. Read from inert data, as all of
a native run is: neither the framework nor its adapter is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import msgspec

from lockstep.debugger import outcomes
from lockstep.log import checkpoints
from lockstep.log.model import Kind, Value
from lockstep.log.native import ATTACHMENT, END
from lockstep.log.store import RunReader
from lockstep.log.timeline import Step, Timeline

SNAPSHOT, DOCUMENT, PICTURE = "aria", "dom", "screenshot"  # attachments that are known by name
_MOST_LINES = 4000  # of texts that are compared


class Acted(msgspec.Struct, frozen=True):
    """What such a step says.

    error    as its caller saw it, "" for none; else `result` is what it gave
    source   the line of the user's code
    url      before and after
    changed  what became another by it: "page", "storage"; those that could not be told are left out
    settled  whether the page was at rest when it was looked at
    """

    api: str
    arguments: dict[str, Any]
    result: Any
    error: str
    source: str
    frame: str
    url: tuple[str, str]
    changed: tuple[str, ...]
    settled: bool
    seconds: float


class Attachment(msgspec.Struct, frozen=True):
    """What was kept to be looked at: its name, and the number of its event."""

    name: str
    seq: int


def read(timeline: Timeline, step: Step) -> Acted | None:
    """What a step says; None where it is of another sort."""
    if not timeline.is_native or step.kind == END or step.seq < 0:
        return None
    action = timeline.reader.field(step.stream, step.seq, checkpoints.ACTION)
    if not isinstance(action, dict):
        return None
    body = timeline.reader.body(step.stream, step.seq)
    record: dict[str, Any] = body if isinstance(body, dict) else {}
    given = outcomes.to_json(action.get("arguments"))
    dom, storage = _pair(record.get("dom")), _pair(record.get("storage"))
    changed = [what for what, (was, is_) in (("page", dom), ("storage", storage)) if was and is_ and was != is_]
    seconds = record.get("seconds")
    return Acted(
        api=str(action.get("api") or ""), arguments=given if isinstance(given, dict) else {},
        result=outcomes.to_json(action.get("result")), error=_error(action.get("error")),
        source=str(action.get("source") or ""), frame=str(action.get("frame") or ""), url=_pair(record.get("url")),
        changed=tuple(changed), settled=record.get("settled") is not False,
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
    )  # fmt: skip


def _pair(value: Any) -> tuple[str, str]:
    match value:
        case [was, is_]:
            return str(was or ""), str(is_ or "")
    return "", ""


def _error(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    name, message = str(value.get("name") or "Error"), str(value.get("message") or "")
    return f"{name}: {message}" if message else name


def attachments(timeline: Timeline, step: Step) -> dict[str, Attachment]:
    """What was kept of a step, by name."""
    found: dict[str, Attachment] = {}
    pos = 0
    for seq, event in timeline.reader.heads(step.stream, step.seq):
        if seq == step.seq:
            pos = event.pos
        elif event.kind is Kind.WRITES and event.what == ATTACHMENT and event.of == pos:
            found[event.name] = Attachment(event.name, seq)
    return found


def content(timeline: Timeline, step: Step, attachment: Attachment) -> str | bytes:
    """What it is: a text, or bytes."""
    return _content(timeline.reader, step.stream, attachment.seq)


def _content(reader: RunReader, stream: int, seq: int) -> str | bytes:
    found = reader.field(stream, seq, checkpoints.CONTENT)
    return found if isinstance(found, str | bytes) else ""


def text(timeline: Timeline, step: Step, name: str) -> str:
    """A text that was kept of a step; "" where there is none, as where the page did not change."""
    found = attachments(timeline, step).get(name)
    told = content(timeline, step, found) if found is not None else ""
    return told if isinstance(told, str) else ""


def before(timeline: Timeline, step: Step, name: str) -> str:
    """The text of that name that was kept last before a step, in its lane."""
    for one in reversed(timeline.steps[: step.number]):
        if one.lane == step.lane and (found := text(timeline, one, name)):
            return found
    return ""


def pages(reader: RunReader, stream: int) -> dict[int, str]:
    """The document behind each action, by the position of its STEP: what was kept of it, or else of the last action in
    its lane that has one with the same digest."""
    kept = {
        event.of: seq
        for seq, event in reader.heads(stream)
        if event.kind is Kind.WRITES and event.what == ATTACHMENT and event.name == DOCUMENT
    }
    found: dict[int, str] = {}
    by_digest: dict[tuple[str, str], int] = {}
    for seq, event in reader.heads(stream):
        if event.kind is not Kind.STEP:
            continue
        digest = _pair(reader.field(stream, seq, "dom"))[1]
        if event.pos in kept:
            by_digest[event.lane, digest] = kept[event.pos]
        at = by_digest.get((event.lane, digest)) if digest else None
        if at is not None:
            told = _content(reader, stream, at)
            found[event.pos] = told if isinstance(told, str) else ""
    return found


def marked(was: str, is_: str) -> Iterator[tuple[str, str]]:
    """The lines of a text against those of an earlier one: "+" new, "-" gone, "" the same; with the line."""
    a, b = was.splitlines()[:_MOST_LINES], is_.splitlines()[:_MOST_LINES]
    if not was:
        yield from (("", line) for line in b)
        return
    for tag, start, end, low, high in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (("", line) for line in b[low:high])
        else:
            yield from (("-", line) for line in a[start:end])
            yield from (("+", line) for line in b[low:high])


def is_action(reader: RunReader, stream: int, seq: int) -> bool:
    """Whether a STEP is an action's."""
    return isinstance(reader.field(stream, seq, checkpoints.ACTION), dict)


def state(reader: RunReader, stream: int, seq: int, document: str | None) -> dict[str, Value]:
    """What an action says for a comparison with another run's. `document`: the page, if that was kept, in the place of
    its digest."""
    action = reader.field(stream, seq, checkpoints.ACTION)
    told = action if isinstance(action, dict) else {}
    found = {name: value for name, value in told.items() if name not in ("source", "beside")}
    digest = _pair(reader.field(stream, seq, "dom"))[1]
    return {
        **found, "url": _pair(reader.field(stream, seq, "url"))[1],
        "page": [*document.splitlines()] if document else digest,
        "storage": _pair(reader.field(stream, seq, "storage"))[1],
    }  # fmt: skip
