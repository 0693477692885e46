"""`lockstep export`, `import`, `rm` and `gc`: what is in the store, taken out, in and away."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from lockstep.cli import failures, terminal
from lockstep.debugger import files, removal, words
from lockstep.debugger.lines import safe
from lockstep.errors import Code, StoreError
from lockstep.log import exchange
from lockstep.log.sqlite import clean
from lockstep.log.store import locate, open_store
from lockstep.log.verify import Trust


def export(run: str, *, store: str | None, output: str, format_: str, force: bool, as_json: bool, debug: bool) -> None:
    """Writes a run to a file."""
    with failures.reported(as_json=as_json, debug=debug):
        if format_ and format_ not in exchange.FORMATS:
            _given(files.give(locate(store), run, output, format_, force=force), as_json=as_json)
            return
        done = exchange.export(locate(store), run, output, format_, force=force)
        if as_json:
            if output == exchange.STDOUT:
                return
            terminal.emit(done)
            return
        what = words.number(done.events, "event") + _more(done.branches)
        if done.open_end:
            what += ", open end"
        if output != exchange.STDOUT:
            what += f"  {words.size(done.size)}"
        terminal.say([("● exported ", "good"), (safe(run), "strong"), f"  {done.format}  {what}  {safe(output)}"])


def _given(done: files.Given, *, as_json: bool) -> None:
    if done.file == exchange.STDOUT:
        return
    if as_json:
        terminal.emit(done)
        return
    terminal.say([("● exported ", "good"), (safe(done.run), "strong"), f"  {done.format}  {words.size(done.size)}  "
                  f"{safe(done.file)}"])  # fmt: skip


def import_(
    given: Sequence[str], *, store: str | None, as_json: bool, debug: bool, run: str = ""
) -> None:  # fmt: skip
    """Takes the runs of tapes into the store, and makes runs of the files of frameworks."""
    with failures.reported(as_json=as_json, debug=debug):
        named = files.found(given)
        foreign = [file for file in named if files.reader_of(file) is not None]
        tapes = [file for file in named if file not in foreign]
        if run and (tapes or not foreign):
            raise StoreError(Code.NOT_A_STORE, f"a tape says its run's name itself: --run is for no {tapes[0]}")
        path = str(locate(store, create=True))
        done = [one for file in tapes for one in exchange.import_tape(path, file)]
        with open_store(path, create=True) as opened:
            made = files.take(opened, foreign, run)
        if as_json:
            terminal.emit([*done, *made])
            return
        for one in done:
            _imported(one)
        for taken in made:
            _made(taken)


def _made(one: files.Taken) -> None:
    terminal.say([("● imported ", "good"), (safe(one.run), "strong"), f"  {words.number(one.events, 'event')}  ",
                  f"{safe(one.file)}"])  # fmt: skip
    terminal.say(f"  next: lockstep log {safe(shlex.quote(one.run))}")


def _more(branches: tuple[str, ...]) -> str:
    """What a file holds beside a run's main branch."""
    return f"  {words.number(len(branches), 'branch', 'branches')}" if len(branches) > 1 else ""


def _imported(one: exchange.Imported) -> None:
    end = ", open end" if one.open_end else ""
    state = "authentic" if one.trust is Trust.AUTHENTIC else "consistent"
    seal = {Trust.UNCHECKED: f", sealed with key {one.key}", Trust.OTHER_KEY: f", sealed with key {one.key}, not yours"}
    what = f"  {words.number(one.events, 'event')}{_more(one.branches)}  {state}{safe(seal.get(one.trust, ''))}{end}"
    terminal.say([("● imported ", "good"), (safe(one.run), "strong"), what])
    if one.run != one.recorded_as:
        terminal.say(f"  {safe(one.recorded_as)} was taken: it is {safe(one.run)} here")
    name = shlex.quote(one.run)
    if one.command:
        terminal.say(f"  its command was recorded elsewhere: {safe(shlex.join(one.command))}")
        terminal.say(f"  to replay it: lockstep replay {safe(name)} -- CMD, or --trust to run that one")
    terminal.say(f"  next: lockstep log {safe(name)}")


def rm(runs: list[str], *, store: str | None, yes: bool, force: bool, as_json: bool, debug: bool) -> None:
    """Deletes runs and branches: all of those named, or none."""
    with failures.reported(as_json=as_json, debug=debug), open_store(store) as opened:
        found = removal.find(opened, runs, force=force)
        if not yes and sys.stdin.isatty() and not as_json:
            import typer

            if not typer.confirm(f"delete {', '.join(safe(one.address) for one in found)}?", err=True):
                raise SystemExit(failures.NO)
        for one in found:
            removal.remove(opened, one)
            if not as_json:
                terminal.say([("● deleted ", "good"), (safe(one.address), "strong"), f"  {words.size(one.size)}"])
        if as_json:
            terminal.emit([{"run": one.address, "size": one.size} for one in found])
        else:
            terminal.say("  the room is used again by later runs; to give it back: lockstep gc")


def gc(*, store: str | None, as_json: bool, debug: bool) -> None:
    """Gives back room that is not used."""
    with failures.reported(as_json=as_json, debug=debug):
        done = clean.clean(locate(store))
        if as_json:
            terminal.emit(done)
            return
        terminal.say([("● freed ", "good"), (words.size(max(0, done.freed)), "strong"), f"  {safe(done.store)}"])
        terminal.say(
            f"  file {words.size(done.before)} → {words.size(done.after)}, "
            f"write-ahead log {words.size(done.wal_before)} → {words.size(done.wal_after)}, "
            f"{words.number(done.orphans, 'row')} of no run, {words.number(done.locks, 'lock file')} of dead writers"
        )
        if done.busy:
            terminal.say("  others were using the store: the write-ahead log could not be emptied, try again later")
