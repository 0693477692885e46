"""The lines of `log` and `show` for steps of a workflow: what came, attempts, what was asked for then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lockstep.debugger import branches, calls, commanded, inert, listing, render_log, words
from lockstep.debugger.calls import Call
from lockstep.debugger.checkpointed import TurnRow
from lockstep.debugger.commanded import Attempt, Commanded
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.log.model import Status
from lockstep.log.native import ATTEMPT, GIVEN
from lockstep.log.timeline import Effect, Step, Timeline

START = "start"
_WIDE = 160  # columns for what a row says
_ANSWER = 72  # and for an answer in it
_COMMANDS = 4  # that a row names
_MODULE = re.compile(r"(?:[\w<>]+\.)+")
_LISTED = 12  # commands and attempts that `show` lists

# -- log


def rows(timeline: Timeline, step: Step, told: Commanded | None, marks: Iterator[str]) -> list[list[Piece]]:
    """The rows of a step, one for each answer, the first first; `told`: None where it never closed."""
    number = str(step.number)
    if not step.effects:
        return [[number, "", *_asking(step, told), ""]] if told is not None else []
    found: list[list[Piece]] = []
    alone = len(step.effects) == 1
    for effect in step.effects:
        first = number if effect is step.effects[-1] else ""
        within = "" if alone else f".{effect.number}"
        found.append([first, within, *_effect(timeline, effect), next(marks)])
    return found


def _asking(step: Step, told: Commanded) -> list[Piece]:
    """The cells of a step to which no answer led, as of the first."""
    named = safe(step.name) if step.name != step.kind else ""
    if step.kind != START:
        # Something was heard of what is still on, as that a child has started.
        named = safe(", ".join(told.jobs).removeprefix(f"{step.kind} ")) or named
    asked = [safe(one) for one in told.commands[:_COMMANDS]]
    more = f" and {len(told.commands) - _COMMANDS} more" if len(told.commands) > _COMMANDS else ""
    then = f"→ {', '.join(asked)}{more}" if asked else ""
    said = "   ".join(part for part in (named, then) if part)
    return [(f"○ {safe(step.kind)}", "dim"), cut(said, _WIDE), "", "", ""]


def _effect(timeline: Timeline, effect: Effect) -> list[Piece]:
    call = calls.read(timeline, effect)
    answered = listing.answered(timeline, effect)
    cells = render_log.effect_row(call, answered if answered != branches.RECORDED else "")
    tried = sum(child.kind == ATTEMPT for child in effect.children)
    if call.error:
        cells[1] = cut(f"{_asked(call)}   {safe(brief(commanded.failure(timeline, effect)[-1]))}", _WIDE), "bad"
    elif call.status is Status.CANCELLED:
        cells[1] = cut(f"{_asked(call)}   cancelled", _WIDE), "warn"
    elif call.conversation is None:
        cells[1] = cut(_said(call), _WIDE)
    if effect.kind in GIVEN:
        cells[0], cells[4] = (f"○ {safe(effect.kind)}", "dim"), ""
    if tried > 1:
        about = cells[2] if isinstance(cells[2], str) else cells[2][0]
        cells[2] = ", ".join(part for part in (about, words.number(tried, "attempt")) if part), "warn"
    return cells


def _said(call: Call) -> str:
    """A call in words, with what came of it."""
    if call.kind in GIVEN:
        brought = safe(listed(call.outcome or []))
        return f"{safe(call.name)}({brought})" if call.name else brought
    asked = _asked(call)
    return asked if call.outcome is None else f"{asked}   → {safe(inert.line(call.outcome, _ANSWER))}"


def _asked(call: Call) -> str:
    has = isinstance(call.request, dict) and "arguments" in call.request
    known = has and call.request["arguments"] is not None
    arguments = safe(cut(render_log.arguments(call.request), _ANSWER)) if known else "?"
    return f"{safe(call.name)}({arguments})" if has else safe(call.name)


def brief(error: str) -> str:
    """An error without the module of its class."""
    name, colon, text = error.partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{text}"


def listed(values: Any) -> str:
    """Arguments as they stand in a call."""
    return ", ".join(map(inert.line, values)) if isinstance(values, list) else inert.line(values)


def turn(row: TurnRow) -> str:
    """What a turn is, in words: the workflow with what it was given, why it began, and what it returned."""
    cause = f"   {safe(row.cause)}" if row.cause and row.cause != "start" else ""
    called = f"{safe(row.name)}({safe(cut(listed(row.arguments), _ANSWER))}){cause}"
    match row.result:
        case {"continue_as_new": dict(again)}:
            return f"{called}   → continues as new({safe(cut(listed(again.get('arguments') or []), _ANSWER))})"
        case None:
            return called
    return f"{called}   → {safe(inert.line(row.result, _ANSWER))}" if row.status == Status.OK else called


# -- show


def shown(found: listing.Commanded, width: int) -> list[Line]:
    """The lines of `show` for a step."""
    path = found.address.rpartition(":")[0]
    title = f"{found.source} {found.name}" if found.name not in ("", found.source) else found.source
    facts = [f"turn {found.turn}" if found.turn else "", found.clock.replace("T", " ").replace("+00:00", " UTC")]
    if len(found.effects) == 1:
        facts += render_log.facts(found)[2:]
    lines: list[Line] = [[
        (safe(found.address), "address"), "  ", (safe(title), "strong"), "  ",
        "  ".join(fact for fact in facts if fact),
    ]]  # fmt: skip
    if found.parent >= 0:
        lines.append([("after      ", "dim"), (f"{safe(path)}:{found.parent}", "address")])
    if len(found.effects) != 1:
        lines += _several("came", found.jobs, width)
    else:
        lines += render_log.answer(found, width)
        lines += [line for cause in found.causes for line in render_log.block("caused by", cause, width, "bad")]
        lines += tried(found.attempts or (), width)
    lines += _several("then", found.commands, width)
    lines += _several("note", found.notes, width)
    for effect in found.effects:
        sort = render_log.classed(effect.kind, effect.effect_class)
        what = "  ".join(part for part in (f"{effect.kind} {safe(effect.name)}", sort, effect.answered) if part)
        lines.append([("effect     ", "dim"), (safe(effect.address), "address"), f"  {what}"])
    return lines


def tried(attempts: Iterable[Attempt], width: int) -> list[Line]:
    """The attempts of a call, the last ones first cut away."""
    found = list(attempts)
    lines: list[Line] = []
    for attempt in found[:_LISTED]:
        parts = [
            safe(attempt.name), safe(attempt.error) or safe(attempt.status) or "no end",
            words.duration(attempt.duration / 1e9) if attempt.duration is not None else "",
            _types(attempt), _beats(attempt) if attempt.heartbeats else "",
        ]  # fmt: skip
        bad = attempt.status != Status.OK
        lines += render_log.block("attempt", "   ".join(part for part in parts if part), width, "bad" if bad else "")
    if len(found) > _LISTED:
        lines.append([f"{'':11}… and {len(found) - _LISTED} more attempts (--json shows all)"])
    return lines


def _types(attempt: Attempt) -> str:
    """As `(int, list[AIMessage]) → str`, without the modules of classes; "" where they are not known."""
    given = f"({', '.join(map(_short, attempt.given))})" if attempt.given else ""
    return " → ".join(part for part in (given, _short(attempt.returned)) if part)


def _short(name: str) -> str:
    return safe(_MODULE.sub("", name))


def _beats(attempt: Attempt) -> str:
    return f"{words.number(attempt.heartbeats, 'heartbeat')}, the last: {safe(inert.line(attempt.details))}"


def _several(label: str, texts: Sequence[str], width: int) -> list[Line]:
    if not texts:
        return []
    more = [f"… and {len(texts) - _LISTED} more (--json shows all)"] if len(texts) > _LISTED else []
    return render_log.block(label, "\n".join([*map(safe, texts[:_LISTED]), *more]), width)
