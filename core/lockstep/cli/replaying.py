"""`lockstep replay` and `lockstep verify`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Self

from lockstep.cli import failures, terminal
from lockstep.debugger import render
from lockstep.debugger import replay as replays
from lockstep.debugger import verify as checks
from lockstep.debugger.lines import Line
from lockstep.errors import Code, StoreError, TargetError
from lockstep.log.meta import keeper
from lockstep.log.store import locate, open_store
from lockstep.log.timeline import resolve


def replay(
    run: str,
    command: Sequence[str],
    *,
    store: str | None,
    target: str = "",
    depth: str = "call",
    turn: int | None = None,
    until: int | None = None,
    speed: float,
    trust: bool,
    isolate: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Replays once and says whether it was the same run."""
    with failures.reported(as_json=as_json, debug=debug):
        named = files_meant(run, command, store)
        if named:
            from lockstep.cli import checking

            own = {"depth": depth, "turn": turn, "until": until, "speed": speed}
            checking.check(named, target, as_json=as_json, **own)
        path = str(locate(store))
        if target:
            from lockstep.cli import targets

            _in_this_process(isolate)
            done = targets.replay(path, run, target, speed=speed, as_json=as_json, depth=depth, turn=turn, until=until)
        else:
            needs_target(path, run)
            done = replays.replay(
                path, run, command, speed=speed, stdout=2 if as_json else None, trust=trust, isolate=isolate,
                debug=debug,
            )  # fmt: skip
        if as_json:
            terminal.emit(done)
        else:
            for line in render.replaying(done, command):
                terminal.say(line)
        raise SystemExit(failures.OK if done.identical else failures.NO)


def files_meant(run: str, more: Sequence[str], store: str | None) -> list[str]:
    """The files of a framework's own that are to be replayed; [] where a run is meant: that of a store, if there is one
    of the name."""
    if not os.path.exists(run):
        return []
    from lockstep.debugger import files

    try:
        with open_store(locate(store)) as opened:
            if opened.has_run(run):
                return []
    except StoreError:
        pass  # there need be no store for files
    if not os.path.isdir(run) and not run.endswith(files.ENDING) and files.reader_of(run) is None:
        return []  # a run was meant, which there is not
    return files.found([run, *more])


def needs_target(path: str, address: str) -> None:
    """Raises TargetError LS401 for a run that a framework keeps itself: no command was recorded with it, and none could
    replay it."""
    with open_store(path) as opened:
        place = resolve(opened, address)
        name = keeper(place.timeline.reader.meta)
    if name:
        from lockstep.adapter import registry

        known = registry.get(name)
        raise TargetError(
            Code.NO_TARGET,
            f"{address} is a run of {known.title}'s own, which has no command: say what to run by --target MODULE:NAME "
            f"({known.target.what})",
        )


def _in_this_process(isolate: bool) -> None:
    """Raises TargetError LS402 for a target that is to run without a network: this process has one."""
    if isolate:
        raise TargetError(
            Code.BAD_TARGET,
            "--isolate is for commands, and a target runs in this process: start lockstep itself without a network "
            "(unshare -rn lockstep replay …)",
        )


def verify(
    run: str, command: Sequence[str], *, store: str | None, times: int, authentic: bool, target: str = "", trust: bool,
    isolate: bool, as_json: bool, debug: bool,
) -> None:  # fmt: skip
    """Checks the record, then replays it; stops at the first replay that is not the same run. With a target in this
    process, so that each replay after the first one finds what the one before has left."""
    with failures.reported(as_json=as_json, debug=debug):
        path = str(locate(store))
        if target:
            _in_this_process(isolate)
        checked = checks.check(path, run)
        refused = authentic and not checked.authentic
        lines = render.checking(checked)
        if refused and not checked.problems:
            lines += render.refusing(checked)
        _say(lines, quiet=as_json)
        done: list[replays.Replayed] = []
        if checked.native and not command and not target:
            # Nothing was recorded that could run it: the record is all there is to look at.
            times = 0
            again = f"lockstep replay {shlex.quote(run)} --target MODULE:NAME"
            _say([["  a replay needs what made it: ", (again, "address")]], quiet=as_json or bool(checked.problems))
        elif not checked.problems and not refused:
            with open(os.devnull, "wb") as nowhere, _Progress(times, quiet=as_json) as progress:
                repeated = _called(path, run, target, times) if target else checks.repeat(
                    path, run, command, times, nowhere.fileno(), trust=trust, isolate=isolate, debug=debug
                )  # fmt: skip
                for one in repeated:
                    done.append(one)
                    progress.advance()
        verdict = checks.judge(checked, done, times)
        if as_json:
            terminal.emit(verdict)
        elif not refused:
            _say(render.verifying(verdict, done, command, target))
        raise SystemExit(failures.OK if verdict.identical and not refused else failures.NO)


def _called(path: str, run: str, target: str, times: int) -> Iterator[replays.Replayed]:
    """Up to `times` replays of a target in this process; what it prints goes to stderr."""
    from lockstep.cli import targets

    for _ in range(times):
        done = targets.replay(path, run, target, speed=0.0, as_json=True)
        yield done
        if not done.identical:
            return


def _say(lines: Sequence[Line], *, quiet: bool = False) -> None:
    for line in () if quiet else lines:
        terminal.say(line)


class _Progress:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._shown = not quiet and total > 1 and terminal.coloured(sys.stderr)
        self._total = total

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("replaying"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def advance(self) -> None:
        if self._shown:
            self._bar.advance(self._task)

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._bar.stop()
