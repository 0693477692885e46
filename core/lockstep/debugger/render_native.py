"""The lines of `log` and `show` for native runs: nodes in the place of kinds, turns, states and what they changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from lockstep.debugger import (
    acted,
    branches,
    calls,
    checkpointed,
    commanded,
    inert,
    listing,
    render_acted,
    render_checkpoint,
    render_commanded,
    render_log,
    render_spoken,
    words,
)
from lockstep.debugger.checkpointed import ChangeRow, Task, TurnRow
from lockstep.debugger.dialects import framed
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.listing import Checkpoint
from lockstep.log import checkpoints, native
from lockstep.log.model import Status
from lockstep.log.timeline import CHECKPOINT, END, STEP, Effect, Step, Timeline

_WIDE = render_checkpoint.WIDE
_SHOWN = 12  # messages of a state that are shown, and channels
_ENDED = {Status.ERROR.value: ("failed", "bad"), "": ("not ended", "warn"), checkpointed.LEFT: ("", "")}
_MARKS = {"grown": "+", "added": "+", "removed": "-", "changed": "~"}


def log_rows(timeline: Timeline, steps: Sequence[Step]) -> list[list[Piece]]:
    """The rows of `log` for some steps, newest first, each with its calls below it; before those of a turn, its own."""
    rows: list[list[Piece]] = []
    turns = {row.number: row for row in checkpointed.turns(timeline)}
    marks = iter(render_log.concurrent([effect for step in steps for effect in step.effects]))
    within: native.Turn | None = None
    last = steps[-1] if steps else None
    workflow = timeline.is_native and checkpoints.are_commanded(timeline.reader)
    kept = {} if workflow else checkpointed.kept_names(timeline, steps)
    for step in steps:
        turn = checkpointed.turn_of(timeline, step)
        if within is not None and turn is not within:
            rows.append(_turn_row(timeline, within, turns[within.number]))
        within = turn
        told = commanded.read(timeline, step)
        if told is not None or (step.kind == END and workflow):
            rows += render_commanded.rows(timeline, step, told, marks)
            continue
        parallel = len({effect.lane for effect in step.effects}) > 1
        for effect in step.effects:
            rows.append(_call_row(timeline, effect, next(marks), parallel=parallel))
        if step.kind == END and not timeline.is_native:
            continue
        if step.kind == END:
            rows += [_task_row(task) for task in reversed(list(checkpointed.pending(timeline)))]
        else:
            rows.append(_step_row(timeline, step, kept.get(step.number, ())))
    if within is not None:
        rows.append(_turn_row(timeline, within, turns[within.number]))
    # What a turn did that made no step, and is the last one, stands above all.
    made = [one for one in timeline.turns if one.first < 0 and one is not within] if last is timeline.steps[-1] else []
    rows += [_turn_row(timeline, one, turns[one.number]) for one in made[-1:]]
    return rows[::-1]


def _turn_row(timeline: Timeline, turn: native.Turn, row: TurnRow) -> list[Piece]:
    given = checkpointed.asked(timeline, turn)
    what = f"{safe(row.name)}   {safe(inert.line(given, _WIDE))}" if given is not None else safe(row.name)
    if row.execution is not UNSET:
        what = render_commanded.turn(row)
    ended: Piece = _ENDED.get(row.status, ("" if row.status == Status.OK.value else row.status, "warn"))
    # A refusal says in further lines what to do, which `show` has.
    said = row.error if row.execution is UNSET else render_commanded.brief(row.error)
    failed = safe(said.partition("\n")[0])
    error: Piece = (cut(f"{what}   {failed}", _WIDE), "bad") if failed else what
    duration = words.duration(row.duration / 1e9) if row.duration is not None else ""
    return ["", "", (f"turn {row.number}", "strong"), error, ended, "", duration, ""]


def _step_row(timeline: Timeline, step: Step, kept: Sequence[str]) -> list[Piece]:
    told = acted.read(timeline, step)
    if told is not None:
        return [str(step.number), "", *render_acted.row(step, told, checkpointed.namespace(timeline, step)), ""]
    row = render_checkpoint.row(timeline, step)
    if kept:
        row[3] = (safe(", ".join(f"{name} ×{n}" if n > 1 else name for name, n in Counter(kept).items())), "dim")
    return [str(step.number), "", *row, ""]


def _call_row(timeline: Timeline, effect: Effect, mark: str, *, parallel: bool) -> list[Piece]:
    """`parallel`: calls of several tasks stand together, so each says which one it is of."""
    answered = listing.answered(timeline, effect)
    row = render_log.effect_row(calls.read(timeline, effect), answered if answered != branches.RECORDED else "")
    head = row[0]
    title, style = head if isinstance(head, tuple) else (head, "")
    if parallel:
        told = row[2] if isinstance(row[2], str) else row[2][0]
        task = effect.lane.rpartition("/")[2]
        row[2] = (", ".join(part for part in (safe(task), told) if part), "dim")
    return ["", f".{effect.number}", (title.replace("●", " ", 1), style), *row[1:], mark]


def _task_row(task: Task) -> list[Piece]:
    node = safe(task.node)
    if task.error:
        return ["", "", (f"✗ {node}", "bad"), (safe(task.error), "bad"), "failed", "", "", ""]
    if task.waits:
        return ["", "", (f"… {node}", "warn"), safe(_waiting(task)), "waits", "", "", ""]
    wrote = " · ".join(f"{name} ← {inert.line(value)}" for name, value in task.writes)
    return ["", "", f"✓ {node}", safe(wrote), ("not merged yet", "dim"), "", "", ""]


def _waiting(task: Task) -> str:
    return ", ".join(inert.line(one) for value in task.waits for one in _questions(value))


def _questions(value: Any) -> list[Any]:
    """What was asked, of the value that an interrupt is stored as."""
    items = value.get("$items") if isinstance(value, dict) else value
    found = items if isinstance(items, list) else [value]
    return [one["value"] if isinstance(one, dict) and "value" in one else one for one in found]


# -- show


def shown(found: Checkpoint, width: int) -> list[Line]:
    """The lines of `show` for a step. `width`: columns there are for one line; 0 where nothing is cut."""
    if isinstance(found, listing.Commanded):
        return render_commanded.shown(found, width)
    if isinstance(found, listing.Acted):
        return render_acted.shown(found, width)
    if isinstance(found, listing.Said):
        return render_spoken.shown(found, width)
    path = found.address.rpartition(":")[0]
    facts = [
        f"lane {safe(found.lane)}" if found.lane not in ("", "main") else "",
        f"turn {found.turn}" if found.turn else "",
    ]
    sort = found.kind if found.kind not in (CHECKPOINT, STEP) else found.source
    named = found.name if found.name != sort else ""
    title = (
        found.name if found.kind in (CHECKPOINT, STEP) and found.source in native.MADE else f"{sort} {named}".rstrip()
    )
    lines: list[Line] = [[
        (safe(found.address), "address"), "  ", (safe(title), "strong"), "  ",
        "  ".join(fact for fact in facts if fact),
    ]]  # fmt: skip
    if found.parent >= 0:
        came = "on" if found.kind == END else "after"
        lines.append([(f"{came:<11}", "dim"), (f"{safe(path)}:{found.parent}", "address")])
    if found.request is not None:
        lines += _labelled("given", inert.line(found.request), width)
    told = any(task.node and task.answered for task in found.tasks)
    for task in found.tasks:
        if task.node or not told:  # what a human said stands with the task that was told
            lines += _task_lines(task, width)
    changed = {row.channel: row for row in found.changes}
    state = found.outcome if isinstance(found.outcome, dict) else {}
    for name in sorted(state, key=lambda name: name not in changed)[:_SHOWN]:
        lines += _channel(name, state[name], changed.get(name), width)
    for row in found.changes:
        if row.how == "removed":
            lines += _labelled("state", f"- {row.channel}   was {inert.line(row.before)}", width, "bad")
    if len(state) > _SHOWN:
        lines.append([f"{'':11}… and {len(state) - _SHOWN} more channels (--json shows all)"])
    for one in found.kept or ():
        lines += _labelled("kept", f"{one.name}   {inert.line(one.content)}", width)
    for effect in found.effects:
        what = (
            f"  {effect.kind} {safe(effect.name)}  {effect.effect_class}  lane {safe(effect.lane)}  {effect.answered}"
        )
        lines.append([("effect     ", "dim"), (safe(effect.address), "address"), what.rstrip()])
    return lines


def _task_lines(task: Task, width: int) -> list[Line]:
    lines: list[Line] = []
    if task.error:
        lines += _labelled("failed", f"{task.node}   {task.error}", width, "bad")
    elif task.waits:
        lines += _labelled("asked" if task.answered else "waits", f"{task.node}   {_waiting(task)}", width, "warn")
    for value in task.answered:
        for one in value if task.node and isinstance(value, list) else [value]:
            lines += _labelled("human", f"{task.node}   {inert.line(one)}".lstrip(), width)
    if task.sends:
        counts = Counter(task.sends)
        sent = ", ".join(f"{node} ×{count}" if count > 1 else node for node, count in counts.items())
        lines += _labelled("sent", f"{task.node}   to {sent}", width)
    for name, value in task.writes:
        lines += _labelled("wrote", f"{task.node}   {name} ← {inert.line(value)}", width)
    return lines


def _channel(name: str, value: Any, change: ChangeRow | None, width: int) -> list[Line]:
    mark = _MARKS[change.how] if change is not None else " "
    new = len(change.items) if change is not None and change.how == "grown" else 0
    if inert.are_messages(value):
        grown = f"  (+{new})" if new else ""
        lines = _labelled("state", f"{mark} {name}   {words.number(len(value), 'message')}{grown}", width)
        first = max(0, len(value) - _SHOWN)
        if first:
            lines.append([f"{'':13}… {first} before (--json shows all)"])
        for index, one in enumerate(value[first:], first):
            is_new = index >= len(value) - new
            said = inert.message(framed.message(one))
            lines += _labelled("", f"  {'+' if is_new else ' '} {said}", width, "good" if is_new else "")
        return lines
    text = f"{mark} {name}   {inert.line(value)}"
    if change is not None:
        text += {"added": "   (was absent)", "grown": f"   (+{new})"}.get(
            change.how, f"   (was {inert.line(change.before, 80)})"
        )
    return _labelled("state", text, width, "good" if change is not None else "")


def _labelled(label: str, text: str, width: int, style: str = "") -> list[Line]:
    room = max(20, width - 11) if width else 0
    text = safe(text)
    body = cut(text, room) if room else text
    return [[(f"{label:<11}", "dim"), (body, style) if style else body]]
