"""`lockstep replay FILES… --target T`: today's code against files of a framework's own: a folder of histories."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec.structs import replace

from lockstep.cli import failures, targets, terminal
from lockstep.debugger import files, render, words
from lockstep.debugger.lines import Piece, safe
from lockstep.debugger.replay import Replayed
from lockstep.errors import Code, LockstepError, TargetError
from lockstep.launch.target import load
from lockstep.log.store import open_store


def check(named: Sequence[str], target: str, *, as_json: bool, **options: Any) -> NoReturn:
    """Replays each file, and says in a line each how that went; of a single one all that a replay says. Ends with 1
    where one diverged, else with 2 where one could not be read, and with 125 where the target is none of its."""
    if not target:
        raise TargetError(
            Code.NO_TARGET,
            f"{named[0]} is a file, which has no command: say what to run by --target MODULE:NAME, as in "
            f"lockstep replay {shlex.quote(named[0])} --target app.workflows",
        )
    load(target, modules=True)
    done: list[Replayed] = []
    wrong: list[tuple[str, LockstepError]] = []
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        for file in named:
            try:
                one = _replayed(folder, file, target, as_json=as_json, **options)
            except LockstepError as error:
                if len(named) == 1:
                    raise
                wrong.append((file, error))
                if not as_json:
                    terminal.say([("✗ ", "bad"), (safe(file), "strong"), f"  {error.code} {safe(error.message)}"])
                continue
            done.append(one)
            if not as_json:
                _say(one, alone=len(named) == 1)
    if as_json:
        _emit(done, wrong, alone=len(named) == 1)
    elif len(named) > 1:
        _sum(len(named), done, target)
    raise SystemExit(_status(done, wrong))


def _replayed(folder: str, file: str, target: str, *, as_json: bool, **options: Any) -> Replayed:
    # A store for each: files that belong to one chain are looked at one by one.
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = os.path.join(place, "scratch.db")
        with open_store(path, create=True) as opened:
            (taken,) = files.take(opened, [file])
        return replace(targets.replay(path, taken.run, target, as_json=as_json, **options), run=file)


def _say(one: Replayed, *, alone: bool) -> None:
    if alone:
        for each in render.replaying(one):
            terminal.say(each)
        return
    steps = words.number(one.steps, "step")
    upto = "  up to where it ends" if one.cut else ""
    line: list[Piece] = [("✓ ", "good"), (safe(one.run), "strong"), f"  identical  {steps}{upto}"]
    if not one.identical:
        found = one.difference
        told = "not shown to be identical"
        if found is not None:
            at = f" at step {found.step}" if found.step is not None else ""
            path = f"  {found.path}: {found.expected} → {found.actual}" if found.path else ""
            told = f"diverged{at}  {found.code} {found.reason}{path}"
        elif missing := words.uncovered(one.coverage):
            told = f"{told}: {missing[0]}"
        line = [("✗ ", "bad"), (safe(one.run), "strong"), f"  {safe(told)}"]
    terminal.say(line)


def _sum(count: int, done: Sequence[Replayed], target: str) -> None:
    good = sum(one.identical for one in done)
    terminal.say(f"{good} of {words.number(count, 'file')} identical")
    bad = next((one.run for one in done if not one.identical), "")
    if bad:
        terminal.say(f"  one in full: lockstep replay {safe(shlex.quote(bad))} --target {safe(shlex.quote(target))}")


def _emit(done: Sequence[Replayed], wrong: Sequence[tuple[str, LockstepError]], *, alone: bool) -> None:
    if alone:
        terminal.emit(done[0])
        return
    told = [{"run": file, "error": {"code": str(error.code), "message": error.message}} for file, error in wrong]
    terminal.emit([*done, *told])


def _status(done: Sequence[Replayed], wrong: Sequence[tuple[str, LockstepError]]) -> int:
    if any(not one.identical for one in done):
        return failures.NO
    if any(not isinstance(error, TargetError) for _, error in wrong):
        return failures.UNUSABLE
    return failures.NOT_STARTED if wrong else failures.OK
