"""What `runs`, `log` and `show` answer: as data, for `--json` and for the lines people read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from lockstep.debugger import acted, branches, calls, checkpointed, commanded, ending, live, looked, spoken
from lockstep.debugger.branches import DAMAGED, Fork
from lockstep.debugger.calls import Call
from lockstep.debugger.checkpointed import ChangeRow, Kept, Task, TurnRow
from lockstep.debugger.commanded import Attempt
from lockstep.debugger.looked import ReadRow
from lockstep.errors import StoreError
from lockstep.log import address as addresses
from lockstep.log.address import MAIN
from lockstep.log.model import Kind, RunState, Status
from lockstep.log.store import RunReader, Store
from lockstep.log.timeline import END, INPUT, Effect, Place, Step, Timeline
from lockstep.session.report import Coverage


class Run(msgspec.Struct, frozen=True):
    """One row of `runs`. `size` in bytes, with all branches; `exit`: the command's status, None if there was none or
    it is unknown. `state`: a `RunState`, or DAMAGED with the `problem`. `origin`: the tape it was imported from, "" for
    none.
    `uncovered`: how many sources were live while it was recorded, place by place."""

    run: str
    address: str
    state: str
    steps: int
    branches: tuple[str, ...]
    started: str
    size: int
    exit: int | None
    incomplete: int
    origin: str
    problem: str = ""
    uncovered: int = 0


class EffectRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One effect in a list. `answered`: in a branch, how it got its answer: recorded (before the branch began), live,
    edited, reused (an unused recorded answer), served (from the record, past an edit), or that it was refused."""

    address: str
    kind: str
    name: str
    lane: str
    effect_class: str = msgspec.field(name="class")
    answered: str = ""


class StepRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step in a list. `lane`: of a native run, that of its namespace."""

    address: str
    kind: str
    name: str
    effects: tuple[EffectRow, ...]
    lane: str = ""


class Log(msgspec.Struct, frozen=True):
    """`lockstep log --json`. `coverage`: what was live while it was recorded. `branches`: the names of all of the run,
    main first; `forks`: what became of those that come from this one. `turns`: those of a native run."""

    run: str
    state: RunState
    exit: int | None
    branches: tuple[str, ...]
    coverage: tuple[Coverage, ...]
    steps: tuple[StepRow, ...]
    forks: tuple[Fork, ...] = ()
    turns: tuple[TurnRow, ...] = ()


class Shown(msgspec.Struct, frozen=True):
    """`lockstep show --json`: a step (with its effects, and the request and outcome of the one that closed
    it), or one effect (with its nested calls). A step has its reads of files, variables and host facts. Times in
    ns, `began` since the run's start."""

    address: str
    kind: str
    name: str
    lane: str
    effect_class: str | None = msgspec.field(name="class")
    site: str
    status: Status | None
    began: int
    duration: int | None
    request: Any
    outcome: Any
    error: str
    effects: tuple[EffectRow, ...]
    reads: tuple[ReadRow, ...] = ()
    answered: str = ""
    attempts: tuple[Attempt, ...] | UnsetType = UNSET


class Checkpoint(Shown, frozen=True, kw_only=True):
    """`lockstep show --json` of a native run's step. `outcome`: the state, by channel; `changes`: what became of each
    since the parent's; `request`: what a graph was given, at its first; `tasks`: what was written on the way to it, of
    an end what no checkpoint holds yet. `parent`: number of the step that it came from, -1 for none; `turn`: number of
    the turn that made it, 0 for none. `kept`: what was noted with it, where something was."""

    parent: int
    source: str
    changes: tuple[ChangeRow, ...]
    tasks: tuple[Task, ...]
    turn: int
    kept: tuple[Kept, ...] | UnsetType = UNSET


class Commanded(Checkpoint, frozen=True, kw_only=True):
    """The same of a workflow's step. `jobs`: what came; `commands`: what the code asked for then; `clock`: its own, in
    UTC. Where one answer came, `request`, `outcome` and what is said of a call are that one's, and so are `causes`.
    `notes`: how it failed before it got there, and what it did not take."""

    jobs: tuple[str, ...]
    commands: tuple[str, ...]
    clock: str
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Acted(Checkpoint, frozen=True, kw_only=True):
    """The same of an action on a page. `request`: its arguments; `outcome`: what it gave. `url`: before and after;
    `changed`: page, storage; `attachments`: texts that were kept of it, by name; `snapshot`: the lines of its
    accessibility snapshot, each with "+" where it is new and "-" where it is gone since the one before, of the same
    page. `picture`: the file that its picture was written to, "" for none."""

    api: str
    frame: str
    url: tuple[str, str]
    changed: tuple[str, ...]
    settled: bool
    attachments: dict[str, str]
    snapshot: tuple[tuple[str, str], ...] = ()
    picture: str = ""


class Said(Checkpoint, frozen=True, kw_only=True):
    """The same of a step in which somebody of a team spoke. `messages`: what was said, each with what its speaker did
    on the way, `inner`; `selected`: who was chosen to speak, by the calls `chosen`; `stop`: why the team stopped."""

    messages: tuple[dict[str, Any], ...]
    selected: tuple[str, ...]
    chosen: tuple[str, ...]
    stop: str


def runs(store: Store) -> list[Run]:
    """All runs, newest first, by their metadata."""
    return [_run(store, name) for name in store.names()]


def _run(store: Store, name: str) -> Run:
    """One run; damage in it must not hide the others."""
    unread = Run(name, name, DAMAGED, 0, (MAIN,), "", 0, None, 0, "")
    try:
        reader = store.run(name)
        info = reader.info
        unread = Run(
            name, name, DAMAGED, info.steps, tuple(one.name for one in info.branches), began(info.started),
            sum(one.size for one in info.branches), None, info.incomplete, info.origin,
        )  # fmt: skip
        status, uncovered = ending.read(reader), len(live.recorded(reader))
    except StoreError as error:
        return msgspec.structs.replace(unread, problem=error.message)
    return msgspec.structs.replace(unread, state=ending.state(info, status).value, exit=status, uncovered=uncovered)


def began(nanoseconds: int) -> str:
    """When a run began, in UTC; "" for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return ""


def log(run: str, timeline: Timeline) -> Log:
    """All steps of a run, as data."""
    reader = timeline.reader
    status = ending.read(reader)
    path = addresses.parse(run).path
    return Log(
        run=run,
        state=ending.state(reader.info, status),
        exit=status,
        branches=tuple(one.name for one in reader.branches),
        coverage=live.recorded(reader),
        steps=tuple(step_row(run, timeline, step) for step in timeline.steps),
        forks=tuple(branches.forks(reader, path, reader.branch)),
        turns=checkpointed.turns(timeline),
    )


def step_row(run: str, timeline: Timeline, step: Step) -> StepRow:
    rows = tuple(effect_row(f"{run}:{step.number}", timeline, effect) for effect in step.effects)
    closing = closing_effect(step)
    title = step.name if closing is None else rows[step.effects.index(closing)].name
    return StepRow(f"{run}:{step.number}", step.kind, title, rows, step.lane if timeline.is_native else "")


def effect_row(step: str, timeline: Timeline, effect: Effect) -> EffectRow:
    return EffectRow(
        address=f"{step}.{effect.number}",
        kind=effect.kind,
        name=calls.name(timeline, effect),
        lane=effect.lane,
        effect_class=calls.effect_class(timeline, effect),
        answered=answered(timeline, effect),
    )


def answered(timeline: Timeline, effect: Effect) -> str:
    """How a call of a branch got its answer, see `EffectRow`."""
    return branches.answered(timeline.reader, effect.stream, effect.begin, effect.end_seq, effect.end)


def closing_effect(step: Step) -> Effect | None:
    """The effect whose end closed the step; None for the input, the end and named steps."""
    return next((effect for effect in step.effects if effect.end is not None and effect.end_seq == step.seq), None)


def show(place: Place) -> Shown:
    """What `show` says of a step or effect."""
    address, timeline, step, effect = place.address, place.timeline, place.step, place.effect
    if step is None:
        raise ValueError("a run has no single request and outcome")
    if effect is not None:
        nested = tuple(
            EffectRow(f"{address}/{child.number}", child.kind, calls.name(timeline, child), child.lane,
                      calls.effect_class(timeline, child))
            for child in effect.children
        )  # fmt: skip
        shown = _shown(str(address), calls.read(timeline, effect), nested)
        tried = tuple(commanded.attempts(timeline, effect, str(address)))
        return msgspec.structs.replace(shown, answered=answered(timeline, effect), attempts=tried or UNSET)
    rows = tuple(effect_row(f"{address}", timeline, one) for one in step.effects)
    if checkpointed.is_checkpoint(timeline, step):
        found = _checkpoint(str(address), timeline, step, rows)
        told = commanded.read(timeline, step)
        if told is not None:
            return _commanded(found, timeline, step, told)
        done = acted.read(timeline, step)
        if done is not None:
            return _acted(found, timeline, step, done)
        said = spoken.read(timeline, step)
        if said is not None:
            return _said(found, said)
        return msgspec.structs.replace(found, kept=checkpointed.kept(timeline, step) or UNSET)
    reads = looked.of_step(str(address.path), timeline, step)
    closing = closing_effect(step) or (step.effects[0] if len(step.effects) == 1 else None)
    if closing is not None:
        shown = _shown(str(address), calls.read(timeline, closing), rows)
        return msgspec.structs.replace(shown, reads=reads, answered=answered(timeline, closing))
    return Shown(
        address=str(address), kind=step.kind, name=step.name, lane=step.lane, effect_class=None, site="", status=None,
        began=step.at, duration=None, request=given(timeline.reader) if step.kind == INPUT else None,
        outcome=_state(timeline, step), error="", effects=rows, reads=reads,
    )  # fmt: skip


def _shown(address: str, call: Call, rows: tuple[EffectRow, ...]) -> Shown:
    return Shown(
        address=address, kind=call.kind, name=call.name, lane=call.lane, effect_class=call.effect_class,
        site=call.site, status=call.status, began=call.began, duration=call.duration, request=call.request,
        outcome=call.outcome, error=call.error, effects=rows,
    )  # fmt: skip


def _checkpoint(address: str, timeline: Timeline, step: Step, rows: tuple[EffectRow, ...]) -> Checkpoint:
    state = checkpointed.state(timeline, step)
    return Checkpoint(
        address=address, kind=step.kind, name=step.name, lane=step.lane, effect_class=None, site="", status=None,
        began=step.at, duration=None, request=state.given, outcome=state.channels, error="", effects=rows,
        parent=state.parent, source=state.source, changes=state.changes, tasks=state.tasks, turn=state.turn,
    )  # fmt: skip


def _commanded(found: Checkpoint, timeline: Timeline, step: Step, told: commanded.Commanded) -> Commanded:
    call: Shown = msgspec.structs.replace(found, outcome=None)
    causes: tuple[str, ...] = ()
    if len(step.effects) == 1:
        effect = step.effects[0]
        causes = tuple(commanded.failure(timeline, effect)[1:])
        address = f"{found.address}.{effect.number}"
        call = _shown(address, calls.read(timeline, effect), ())
        tried = tuple(commanded.attempts(timeline, effect, address))
        call = msgspec.structs.replace(call, answered=answered(timeline, effect), attempts=tried or UNSET)
    return Commanded(
        address=found.address, kind=found.kind, name=found.name, lane=found.lane, effect_class=call.effect_class,
        site=call.site, status=call.status, began=call.began, duration=call.duration, request=call.request,
        outcome=call.outcome, error=call.error, effects=found.effects, answered=call.answered, attempts=call.attempts,
        parent=found.parent, source=found.source, changes=found.changes, tasks=found.tasks, turn=found.turn,
        jobs=told.jobs, commands=told.commands, clock=began(told.clock) if told.clock else "",
        causes=causes, notes=told.notes,
    )  # fmt: skip


def _acted(found: Checkpoint, timeline: Timeline, step: Step, told: acted.Acted) -> Acted:
    texts = {
        name: content
        for name, one in acted.attachments(timeline, step).items()
        if isinstance(content := acted.content(timeline, step, one), str)
    }
    snapshot = texts.get(acted.SNAPSHOT, "")
    marked = acted.marked(acted.before(timeline, step, acted.SNAPSHOT), snapshot) if snapshot else ()
    return Acted(
        address=found.address, kind=found.kind, name=found.name, lane=found.lane, effect_class=None, site=told.source,
        status=Status.ERROR if told.error else Status.OK, began=found.began, duration=round(told.seconds * 1e9),
        request=told.arguments, outcome=told.result, error=told.error, effects=found.effects, parent=found.parent,
        source=found.source, changes=(), tasks=(), turn=found.turn, api=told.api, frame=told.frame, url=told.url,
        changed=told.changed, settled=told.settled, attachments=texts, snapshot=tuple(marked),
    )  # fmt: skip


def _said(found: Checkpoint, told: spoken.Spoken) -> Said:
    return Said(
        address=found.address, kind=found.kind, name=found.name, lane=found.lane, effect_class=None, site="",
        status=None, began=found.began, duration=None, request=found.request, outcome=found.outcome, error="",
        effects=found.effects, parent=found.parent, source=found.source, changes=found.changes, tasks=(),
        turn=found.turn, messages=told.messages, selected=told.selected, stop=told.stop,
        chosen=tuple(f"{found.address}{each}" for each in told.chosen),
    )  # fmt: skip


def _state(timeline: Timeline, step: Step) -> Any:
    if step.seq < 0 or step.kind == INPUT:
        return None
    found = timeline.reader.body(step.stream, step.seq)
    if step.kind != END or not isinstance(found, dict):
        return found
    end = found.get("end")
    said = end if isinstance(end, dict) else {}
    shown = {"exit": ending.read(timeline.reader), "error": ending.raised(said), "stdout": printed(timeline)}
    return {**shown, "result": said["result"]} if said.get("result") is not None else shown


def given(reader: RunReader) -> Any:
    """What the run began with: its command."""
    meta = reader.meta if isinstance(reader.meta, dict) else {}
    return {"command": meta.get("command"), "cwd": meta.get("cwd")}


_ENOUGH = 2000  # characters of output that are looked at for its last lines


def printed(timeline: Timeline) -> str:
    """The end of what the program printed."""
    stream = timeline.stream.id
    heads: Sequence[int] = [
        seq for seq, event in timeline.reader.heads(stream) if event.kind is Kind.OUTPUT and event.what == "stdout"
    ]
    text = ""
    for seq in reversed(heads):
        piece = timeline.reader.body(stream, seq)
        text = (piece.decode("utf-8", "replace") if isinstance(piece, bytes) else str(piece)) + text
        if len(text) > _ENOUGH:
            break
    return text[-_ENOUGH:]
