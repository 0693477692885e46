"""The lines of `runs`, `log` and `show`. Pure but for reading what is shown."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from lockstep.debugger import (
    branches,
    calls,
    checkpointed,
    ending,
    listing,
    looked,
    outcomes,
    raised,
    render_checkpoint,
    render_forks,
    words,
)  # fmt: skip
from lockstep.debugger.calls import Call
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.messages import Conversation, Message, ToolCall
from lockstep.debugger.render_forks import STATES
from lockstep.log import address as addresses
from lockstep.log.address import MAIN
from lockstep.log.model import RunState, Status
from lockstep.log.native import ATTEMPT, UNASKED
from lockstep.log.timeline import END, INPUT, Effect, Step, Timeline
from lockstep.session import snapshot
from lockstep.session.report import Coverage

RUN_COLUMNS = (
    ("RUN", "left"),
    ("STEPS", "right"),
    ("BRANCHES", "left"),
    ("STATE", "left"),
    ("WHEN", "left"),
    ("SIZE", "right"),
)


def run_rows(found: Sequence[listing.Run]) -> list[list[Piece]]:
    """The rows of `runs`."""
    now = time.time()
    rows: list[list[Piece]] = []
    for run in found:
        began = datetime.fromisoformat(run.started).timestamp() if run.started else now
        more = len(run.branches) - 1
        state = run.state + (f", {words.ended(run.exit)}" if run.exit else "")
        notes = (", incomplete" if run.incomplete else "") + (", imported" if run.origin else "")
        notes += ", not all covered" if run.uncovered else ""
        rows.append([
            (safe(run.address), "strong"),
            str(run.steps),
            "main" + (f" +{more}" if more else ""),
            (state + notes, STATES.get(run.state, "bad")),
            "now" if run.state == RunState.GROWING else words.age(max(0.0, now - began)) if run.started else "?",
            words.size(run.size),
        ])  # fmt: skip
    return rows


_NAMED = 20  # sources that were not covered

# -- log

LOG_COLUMNS = tuple(("", side) for side in ("right", "left", "left", "left", "left", "right", "right", "left"))
LOG_FLEXIBLE = 3


def log_head(run: str, timeline: Timeline) -> list[Line]:
    reader = timeline.reader
    status = ending.read(reader)
    state = ending.state(reader.info, status)
    more = f", {words.ended(status)}" if status is not None else ""
    if reader.branch == MAIN:
        return [[(f"{safe(run)}@main", "strong"), "   ", (state.value, STATES[state]), more]]
    path = addresses.parse(run).path
    info = next(one for one in reader.branches if one.name == reader.branch)
    told = branches.fork(reader, path, info)
    lines: list[Line] = [[(safe(run), "strong"), "   ", (told.state, STATES.get(told.state, "bad")), more]]
    came = "   ".join(part for part in (render_forks.given(told), render_forks.came(told)) if part)
    lines.append(["  from ", (safe(told.parent), "address"), f", {came}" if came else ""])
    lines += [[("  refused", "bad"), f": {cut(safe(what), _WIDE)}"] for what in told.refused if what]
    return lines


_WIDE = 160  # columns for a call that was refused


def log_uncovered(found: Sequence[Coverage]) -> list[Line]:
    """What was live while it was recorded, so that no replay will be called identical."""
    named = words.uncovered(found)
    lines: list[Line] = [[("  not covered", "warn"), f": {safe(entry)}"] for entry in named[:_NAMED]]
    if len(named) > _NAMED:
        lines.append([f"    … and {len(named) - _NAMED} more"])
    return lines


def log_rows(timeline: Timeline, steps: Sequence[Step]) -> list[list[Piece]]:
    """The rows of `log` for some steps of a run, newest first."""
    flat = [(step, effect) for step in steps for effect in (step.effects or (None,))]
    spans = concurrent([effect for _, effect in flat])
    rows = []
    for (step, effect), mark in zip(flat, spans, strict=True):
        only = len(step.effects) <= 1
        number = str(step.number) if only or (effect is not None and effect is step.effects[-1]) else ""
        if effect is None:
            rows.append([number, *_step_row(timeline, step), mark])
            continue
        within = "" if only else f".{effect.number}"
        answered = listing.answered(timeline, effect)
        rows.append([number, within, *effect_row(calls.read(timeline, effect), answered), mark])
    return rows[::-1]


def _step_row(timeline: Timeline, step: Step) -> list[Piece]:
    if step.kind == INPUT:
        meta = timeline.reader.meta
        command = meta.get("command") if isinstance(meta, dict) else None
        return [
            "",
            ("○ input", "dim"),
            safe(shlex.join(map(str, command))) if isinstance(command, list) else "",
            "",
            "",
            "",
        ]
    if step.kind == END:
        last = [line for line in listing.printed(timeline).splitlines() if line.strip()]
        return ["", ("○ end", "dim"), f'"{safe(last[-1])}"' if last else "", "", "", ""]
    if checkpointed.is_checkpoint(timeline, step):
        return ["", *render_checkpoint.row(timeline, step)]
    return ["", "● step", safe(step.name), "", "", ""]


def effect_row(call: Call, answered: str) -> list[Piece]:
    """A call's cells: mark, summary, class, tokens and duration."""
    style = "bad" if call.error else "warn" if call.status in (None, Status.CANCELLED) else ""
    mark: Piece = (f"● {call.kind}", style) if style else f"● {call.kind}"
    conversation = call.conversation
    tokens = _tokens(conversation)
    duration = words.duration(call.duration / 1e9) if call.duration is not None else "in flight"
    if answered == branches.REFUSED:
        mark, duration = (f"● {call.kind}", "bad"), branches.REFUSED
    how = answered if answered in ("edited", "lent", "reused", "served") else ""
    shown_class = ", ".join(part for part in (classed(call.kind, call.effect_class), how) if part)
    return [mark, _summary(call), (shown_class, "dim"), tokens, duration]


_TOLD = UNASKED | {"human"}


def classed(kind: str, effect_class: str) -> str:
    """The class of a call, where its kind does not say it."""
    return "" if (kind, effect_class) == ("model", "inference") or kind in _TOLD else effect_class


def _summary(call: Call) -> Piece:
    name = safe(call.name)
    if call.error:
        return f"{name}   {safe(call.error)}", "bad"
    if call.status is Status.CANCELLED:
        return f"{name}   cancelled", "warn"
    closed = "   (closed early)" if call.status is Status.CLOSED else ""
    conversation = call.conversation
    if conversation is not None:
        return f"{name}   → {safe(_said(conversation))}{closed}"
    if call.kind == "http":
        status = call.outcome.get("status") if isinstance(call.outcome, dict) else None
        return f"{name}   → {status}{closed}" if status else f"{name}{closed}"
    if call.kind == calls.BROWSER:
        return f"{name}   → {safe(cut(_compact(call.outcome), _WIDE))}{closed}"
    if call.kind == "human":
        return f"{name}   {safe(_compact(call.outcome))}"
    if call.kind == calls.PROCESS:
        return f"{safe(_command(call.request))}   → {safe(_delivered(call.outcome))}"
    return f"{name}({safe(arguments(call.request))}){closed}"


def _said(conversation: Conversation) -> str:
    said = conversation.answer
    if said is None:
        return conversation.note or "(no answer)"
    called = ", ".join(call.name for call in said.message.tool_calls)
    return called or f'"{said.message.text}"'


def _tokens(conversation: Conversation | None) -> str:
    usage = conversation.answer.usage if conversation is not None and conversation.answer is not None else None
    if usage is None or (usage.input is None and usage.output is None):
        return ""
    return f"{usage.input if usage.input is not None else '?'}+{usage.output if usage.output is not None else '?'} tok"


_CALLED = {"arguments", "call_id"}


def arguments(request: Any) -> str:
    """A tool's arguments as they stand in a call."""
    given = _bare(request)
    if isinstance(given, dict) and (isinstance(given.get("arguments"), list) or given.keys() == _CALLED):
        given = given["arguments"]  # what else was asked, as a deadline, says less
    if isinstance(given, list):
        return ", ".join(map(_compact, given))
    if isinstance(given, dict):
        return ", ".join(f"{key}={_compact(value)}" for key, value in given.items())
    return "" if given is None else _compact(given)


def _command(request: Any) -> str:
    """The command of a process, as a shell would have it; the language that it speaks, where that is known."""
    if not isinstance(request, dict):
        return ""
    if "speaks" in request:
        return str(request["speaks"])
    asked = request.get("shell", request.get("argv"))
    return shlex.join(map(str, asked)) if isinstance(asked, list) else str(asked)


def _delivered(outcome: Any) -> str:
    """How a process ended, and the first line of what it printed."""
    if not isinstance(outcome, dict):
        return "(not waited for)"
    status = outcome.get("exit")
    said = next((text for name in ("stdout", "stderr") if (text := outcome.get(name))), "")
    lines = str(said).splitlines() if isinstance(said, str) else [_compact(said)]
    ended = "(not waited for)" if status is None else words.ended(status)
    return f'{ended}   "{lines[0]}"' if lines else ended


def _bare(request: Any) -> Any:
    """A tool's arguments without the frame in which they are stored, see `lockstep.tools`."""
    framed = isinstance(request, dict) and set(request) == {"arguments"}
    return request["arguments"] if framed else request


def concurrent(effects: Sequence[Effect | None]) -> list[str]:
    """A mark for each row of a listing that is printed from the last to the first: what overlapped in time."""
    spans: list[tuple[int, int]] = []
    latest = 0.0  # end of all before: most follow one another, and need not be compared with each
    for index, effect in enumerate(effects):
        if effect is None:
            continue
        over, latest = latest <= effect.begin.at, max(latest, _end(effect))
        for first in range(0 if over else index):
            before = effects[first]
            if before is not None and _end(before) > effect.begin.at and before.begin.at < _end(effect):
                spans.append((first, index))
                break
    marks = [""] * len(effects)
    for first, last in _merged(spans):
        for row in range(first, last + 1):
            marks[row] = " │"
        marks[last], marks[first] = "─┐ concurrent", "─┘"
    return marks


def _end(effect: Effect) -> float:
    return float("inf") if effect.end is None else effect.end.at


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


# -- show


_LEGIBLE = 64  # characters of bytes as base64; more of it tell nobody anything
_READS = 8  # of a step that are shown


_ANSWERED = {
    branches.LIVE: "live: it ran for real in this branch",
    branches.RECORDED: "as recorded, before this branch began",
    "edited": "edited: by the fork, in place of the recorded answer",
    "lent": "lent: it was not run, a call of the good run that asked the same has this answer",
    "reused": "reused: it was not run, a recorded call that asked the same has this answer",
    "served": "served: from the record, after an edit further back",
    branches.REFUSED: "refused: nobody allowed it to run",
}


def shown(found: listing.Shown, conversation: Conversation | None, width: int) -> list[Line]:
    """The lines of `show`. `width`: columns there are for one line; 0 where nothing is cut."""
    lines: list[Line] = [[
        (safe(found.address), "address"), "  ", (f"{found.kind} {safe(found.name)}".rstrip(), "strong"), "  ",
        "  ".join(fact for fact in facts(found) if fact),
    ]]  # fmt: skip
    if conversation is not None:
        for message in conversation.messages:
            lines += _message(message, width)
        if conversation.answer is not None:
            said = conversation.answer
            lines += block("answer", _words(said.message), width, "good")
            extra = "  ".join(part for part in (_tokens(conversation), said.finish) if part)
            if extra:
                lines.append([f"{'':11}", (safe(extra), "dim")])
        if conversation.note:
            lines.append([("note       ", "dim"), safe(conversation.note)])
        lines += _how(found, width)
    else:
        lines += answer(found, width)
    # One effect that is the step itself has been shown.
    rows = [row for row in found.effects if row.kind != ATTEMPT]
    for row in rows if len(rows) > 1 or found.kind in (INPUT, END) or "/" in found.address else ():
        lines.append([
            ("effect     ", "dim"), (safe(row.address), "address"),
            f"  {row.kind} {safe(row.name)}  {row.effect_class}  lane {safe(row.lane)}  {row.answered}".rstrip(),
        ])  # fmt: skip
    # Files tell more than variables, and those that are set more than those that are not.
    reads = sorted(found.reads, key=lambda read: (read.source == "environ", read.found == looked.NOT_SET))
    for read in reads[:_READS]:
        what = f"  {read.source} {safe(read.name)}  {safe(read.found)}"
        lines.append([("read       ", "dim"), (safe(read.address), "address"), what])
    if len(found.reads) > _READS:
        lines.append([f"{'':11}… and {len(found.reads) - _READS} more (--json shows all)"])
    return lines


def facts(found: listing.Shown) -> list[str]:
    """What stands beside a call's name: lane, place, class, duration, and how it ended where that is not well."""
    return [
        f"lane {safe(found.lane)}" if found.lane else "",
        safe(found.site),
        classed(found.kind, found.effect_class or ""),
        words.duration(found.duration / 1e9) if found.duration is not None else "",
        str(found.status.value) if found.status not in (None, Status.OK) else "",
    ]


def answer(found: listing.Shown, width: int) -> list[Line]:
    """What was asked and answered, as values."""
    lines = _value("request", _bare(found.request), width) + _value("answer", _without_error(found.outcome), width)
    return lines + _how(found, width)


def _how(found: listing.Shown, width: int) -> list[Line]:
    """How it got its answer, and the error that this was."""
    lines: list[Line] = []
    if found.answered:
        lines.append([("answered   ", "dim"), _ANSWERED.get(found.answered, safe(found.answered))])
    if found.error:
        lines += block("error", found.error, width, "bad")
    return lines


def _message(message: Message, width: int) -> list[Line]:
    return block(message.role or "message", _words(message), width)


def _words(message: Message) -> str:
    called = [f"→ {call.name}({_arguments(call)})" for call in message.tool_calls]
    return "\n".join([*([message.text] if message.text else []), *called])


def _arguments(call: ToolCall) -> str:
    return call.arguments


def block(label: str, text: str, width: int, style: str = "") -> list[Line]:
    """A text of several lines beside its label."""
    room = max(20, width - 11) if width else 0
    lines: list[Line] = []
    for index, line in enumerate(text.splitlines() or [""]):
        head = f"{safe(label)[:10]:<11}" if index == 0 else " " * 11
        line = safe(line)
        body: Piece = cut(line, room) if room else line
        lines.append([(head, "dim"), (str(body), style) if style else body])
    return lines


def _part(key: str, part: Any) -> str:
    """One field as a text: of headers, each in a line."""
    if isinstance(part, str):
        return part
    pairs = part if key == "headers" and isinstance(part, list) else []
    if pairs and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return "\n".join(f"{name}: {value}" for name, value in pairs)
    return _compact(part)


def _value(label: str, value: Any, width: int) -> list[Line]:
    if value is None:
        return []
    if value == {} and label == "request":
        return []
    if isinstance(value, dict) and value:
        flat = [(safe(str(key)), _part(str(key), part)) for key, part in value.items()]
        longest = min(16, max(len(key) for key, _ in flat))
        rows: list[str] = []
        for key, part in flat:
            first, *others = part.rstrip("\n").split("\n")
            rows += [f"{key:<{longest}}  {first}", *(" " * (longest + 2) + other for other in others)]
        return block(label, "\n".join(rows), width)
    return block(label, value if isinstance(value, str) else _compact(value), width)


def _without_error(outcome: Any) -> Any:
    """An outcome without what says of what kind it is, and without its error, which has a line of its own."""
    if raised.is_raise(outcome):
        return None
    if not isinstance(outcome, dict):
        return outcome
    generated = outcome.get(snapshot.TAG) == outcomes.GENERATOR
    return {
        name: value
        for name, value in outcome.items()
        if not raised.is_raise(value) and not (generated and name == snapshot.TAG)
    }


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return repr(value)[1:]
    if isinstance(value, dict) and value.keys() == {"base64"} and len(str(value["base64"])) > _LEGIBLE:
        return f"({words.size(len(str(value['base64'])) * 3 // 4)} of bytes)"
    return msgspec.json.encode(value, enc_hook=repr).decode()
