"""The lines people read at the end of a recording and of a replay. Pure: structs in, lines out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.debugger import words
from lockstep.debugger.lines import Line, Piece, cells, cut, safe
from lockstep.errors import Code, Difference
from lockstep.log.model import RunState

if TYPE_CHECKING:  # each command loads what it does: `record` neither replays nor verifies
    from lockstep.debugger.recorded import Recorded
    from lockstep.debugger.replay import Replayed
    from lockstep.debugger.verify import Checked, Verified
    from lockstep.session.report import Coverage

_STATE = {
    RunState.COMPLETE: "good",
    RunState.FAILED: "bad",
    RunState.INTERRUPTED: "warn",
    RunState.GROWING: "warn",
    RunState.REFUSED: "bad",
}
# Differences at a recorded call, which `show` can show.
_AT_A_CALL = (Code.REQUEST, Code.ORDER, Code.MISSING, Code.PAST_END, Code.UNSERVABLE, Code.ENVIRONMENT)
_SHOWN = 5  # entries of a list that could be long
_PROBLEM = 200  # columns for a problem of a record
_BRANCHES = 20
_COLUMN = 58  # columns for one of two that stand side by side
_WIDE = 100  # columns for a recorded or present value
_WIDEST = 160  # for something that is named with its place
_EXPLAIN: Piece = (f"lockstep explain {Code.NOT_COVERED}", "address")


def recording(done: Recorded, wanted: str = "") -> list[Line]:
    """`record`'s closing lines. `wanted`: the name that was asked for, said where another was given."""
    lines: list[Line] = []
    if not done.run:
        lines.append([("● not recorded", "bad"), f"  {words.ended(done.exit)}"])
        lines += faults(done.faults)
        return lines
    facts = [
        words.number(done.steps, "step"),
        words.kinds(done.counts),
        words.number(done.lanes, "lane") if done.lanes else "",
        words.duration(done.seconds) if done.seconds else "",
        words.ended(done.exit),
    ]
    lines.append([
        ("● ", _STATE[done.state]), (safe(done.run), "strong"), "  ", (done.state.value, _STATE[done.state]), "  ",
        "  ".join(fact for fact in facts if fact),
    ])  # fmt: skip
    if wanted and wanted != done.run:
        lines.append([f"  there is a run {safe(wanted)} already, so this one is called {safe(done.run)}"])
    lines += faults(done.faults)
    for lanes, what in ((done.running, "still running"), (done.killed, "cut off")):
        if lanes:
            named = ", ".join(safe(lane) for lane in lanes[:_SHOWN]) + (", …" if len(lanes) > _SHOWN else "")
            lines.append([f"  {what}: {named}"])
    lines += [[f"  {safe(entry.source)}: {safe(entry.detail)}"] for entry in done.coverage if entry.how == words.APART]
    missing = words.uncovered(done.coverage)
    following: list[Piece] = ["next: ", (f"lockstep log {shlex.quote(done.run)}", "address")]
    if missing:
        lines += _uncovered(missing)
        lines.append(["  so no replay of it is called identical: ", _EXPLAIN, "        ", *following])
    else:
        lines.append(["  not covered: nothing        ", *following])
    return lines


def faults(faults: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    if faults:
        count = words.number(len(faults), "fault")
        lines.append([("  incomplete", "warn"), f": {count} of Lockstep's own; the program ran on. The first:"])
        lines.append([f"    {cut(safe(faults[0].splitlines()[-1]), _WIDE)}"])
    return lines


def _uncovered(missing: Sequence[str]) -> list[Line]:
    lines: list[Line] = [[("  not covered", "warn"), f": {cut(safe(entry), _WIDEST)}"] for entry in missing[:_SHOWN]]
    if len(missing) > _SHOWN:
        lines.append([f"    … and {len(missing) - _SHOWN} more"])
    return lines


def live(coverage: Sequence[Coverage]) -> list[Line]:
    """What was not covered, with what to do; nothing where all was."""
    found = words.uncovered(coverage)
    return [*_uncovered(found), ["  why, and what to do: ", _EXPLAIN]] if found else []


def replaying(done: Replayed, command: Sequence[str] = ()) -> list[Line]:
    """The verdict of one replay. `command`: what replaced the recorded command, for the hint."""
    if done.difference is not None:
        return _diverged(done, done.difference, command)
    missing = words.uncovered(done.coverage)
    facts = "  ".join([
        words.number(done.steps, "step"),
        f"digest {words.digest(done.digest)}",
        words.number(done.live_calls, "live call"),
        words.duration(done.seconds),
    ])  # fmt: skip
    if done.identical:
        upto = (" up to the cut" if done.cut else "") + (" (redacted)" if done.redacted else "")
        lines: list[Line] = [[("✓ ", "good"), (f"identical{upto}", "good"), f"   {facts}"]]
        if done.cut:
            lines.append(
                [f"  the recording was interrupted there ({words.ended(done.recorded_exit)}); so was the replay"]
            )
        return [*lines, *_let_differ(done.coverage), *_redacted(done.redacted), *_isolated(done)]
    lines = [[("✗ ", "bad"), ("not shown to be identical", "bad"), f"   {facts}"]]
    lines += faults(done.faults)
    lines += _uncovered(missing)
    if missing:
        lines.append(["  why, and what to do: ", _EXPLAIN])
    return [*lines, *_isolated(done)]


def _isolated(done: Replayed) -> list[Line]:
    return [[f"  it had no network ({done.isolated})"]] if done.isolated else []


def _let_differ(coverage: Sequence[Coverage]) -> list[Line]:
    """What differed so many times, and may: an adapter has told of it."""
    found = [entry for entry in coverage if entry.how == words.DIFFERS and entry.count]
    lines: list[Line] = [
        [
            ("  ", ""), (safe(entry.source), "warn"),
            f", {words.number(entry.count, 'time')}: {cut(safe(entry.detail), _WIDEST)}",
        ]
        for entry in found[:_SHOWN]
    ]  # fmt: skip
    if len(found) > _SHOWN:
        lines.append([f"    … and {len(found) - _SHOWN} more"])
    return lines


def _redacted(names: Sequence[str]) -> list[Line]:
    if not names:
        return []
    shown = ", ".join(safe(name) for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    count = words.number(len(names), "secret")
    return [[f"  {count} known to neither this environment nor the vault, replaced by placeholders: {shown}"]]


def _diverged(done: Replayed, found: Difference, command: Sequence[str]) -> list[Line]:
    lines = difference(found)
    if found.code is Code.NOT_COVERED:
        return [*lines, *_isolated(done)]
    for entry in done.coverage:
        if entry.how == words.DIFFERS:
            lines.append(["  ", (f"{safe(entry.source)} differs", "warn"), f": {cut(safe(entry.detail), _WIDE)}"])
    return [*lines, *_advice(done, found, command)]


def difference(difference: Difference) -> list[Line]:
    """The first difference: where it is, what was recorded and what is there now."""
    where = f" at step {difference.step}" if difference.step is not None else ""
    stopped = difference.code is Code.NOT_COVERED
    lines: list[Line] = [[
        ("✗ ", "bad"), (f"{'stopped' if stopped else 'diverged'}{where}", "bad"), "  ",
        (str(difference.code), "strong"), f" {safe(difference.reason)}",
    ]]  # fmt: skip
    place = [f"lane {safe(difference.lane)}" if difference.lane else "", safe(difference.source)]
    if any(place):
        lines.append(["  " + "   ".join(part for part in place if part)])
    if stopped:
        lines.append(["  it is in no recording, and would have happened for real: ", _EXPLAIN])
        return lines
    what = [safe(difference.kind), safe(difference.name) if difference.name != difference.kind else ""]
    subject = " ".join(part for part in what if part)
    if subject or difference.path:
        lines.append(["  ", (subject, "strong"), f"   {safe(difference.path)}" if difference.path else ""])
    if difference.expected or difference.actual:
        lines.append([("    recorded   ", "dim"), _value(difference.expected)])
        lines.append([("    now        ", "dim"), _value(difference.actual)])
    lines += _beside(difference)
    # Where one field differs, the recorded call is the nearest, and has been shown.
    for index, near in enumerate(() if difference.path else difference.nearest[:3]):
        lines.append([("    nearest    " if index == 0 else "               ", "dim"), cut(safe(near), _WIDE)])
    if difference.hint:
        lines.append([f"  {safe(difference.hint)}"])
    if difference.same_until is not None:
        same = difference.same_until
        lines.append([f"  steps 0–{same} were identical" if same else "  step 0 was identical"])
    return lines


def _beside(difference: Difference) -> list[Line]:
    """What was recorded and what is there now, side by side: the row that differs, and those after it."""
    if len(difference.beside) < (1 if difference.path else 2):
        return []  # the one row has been shown
    rows = [[cut(safe(text), _COLUMN) for text in row] for row in difference.beside]
    wide = max(len("recorded"), *(cells(left) for left, _ in rows))
    lines: list[Line] = [[("      " + "recorded".ljust(wide) + " │ now", "dim")]]
    for index, (left, right) in enumerate(rows):
        mark: Piece = ("    ≠ ", "bad") if index == 0 else "      "
        lines.append([mark, left + " " * (wide - cells(left)), (" │ ", "dim"), right])
    return lines


def _value(text: str) -> str:
    return cut(safe(text), _WIDE) if text else "(nothing)"


def _advice(done: Replayed, difference: Difference, command: Sequence[str]) -> list[Line]:
    run = shlex.quote(done.run)
    lines: list[Line] = []
    if difference.step and difference.code in _AT_A_CALL:
        lines.append(["  what was recorded:         ", (f"lockstep show {run}:{difference.step}", "address")])
    else:
        lines.append(["  what was recorded:         ", (f"lockstep log {run}", "address")])
    words_ = shlex.join(command or done.command)
    if words_ and difference.code not in (Code.STUCK, Code.UNSERVABLE, Code.ENVIRONMENT):
        again = f"lockstep record --run {run} -- {words_}"
        lines.append(["  if the change is meant:    ", (cut(safe(again), _WIDE), "address")])
    return lines


def checking(checked: Checked) -> list[Line]:
    """What `verify` found in the record itself, and what that means."""
    from lockstep.log.verify import Trust

    if checked.problems:
        head = "not authentic" if checked.trust is Trust.FORGED else "not consistent"
        what = "what is stored is not what was recorded"
        lines: list[Line] = [[("✗ ", "bad"), (head, "bad"), f"   {safe(checked.run)}: {what}"]]
        lines += [[f"  {cut(safe(problem), _PROBLEM)}"] for problem in checked.problems[:_SHOWN]]
        if len(checked.problems) > _SHOWN:
            lines.append([f"    … and {len(checked.problems) - _SHOWN} more"])
        return lines
    word = "authentic" if checked.trust is Trust.AUTHENTIC else "consistent"
    end = ", open end" if checked.open_end else ""
    lines = [[("✓ ", "good"), (word, "good"), f"  {words.number(checked.events, 'event')}{end}"]]
    lines += [[f"  {text}"] for text in _meaning(checked)]
    if checked.recorded_as:
        lines.append([f"  it was recorded as {safe(checked.recorded_as)}"])
    for one in checked.branches[1:][:_BRANCHES]:
        trust = "" if one.trust is checked.trust else f", {one.trust.value}"
        end = ", open end" if one.open_end else ""
        lines.append([f"  and {safe(one.address)}  {words.number(one.events, 'event')}{trust}{end}"])
    if len(checked.branches) > _BRANCHES + 1:
        lines.append([f"    … and {len(checked.branches) - _BRANCHES - 1} more branches"])
    return lines


def _meaning(checked: Checked) -> list[str]:
    from lockstep.log.verify import Trust

    told = []
    if checked.trust is Trust.AUTHENTIC:
        told.append(f"sealed with your key {checked.key}: nobody without it wrote or changed this")
    elif checked.trust is Trust.OTHER_KEY:
        told.append(
            f"sealed with key {safe(checked.key)} and not with yours ({checked.ours}): nothing is known of who wrote it"
        )
    elif checked.trust is Trust.UNCHECKED:
        told.append(f"sealed with key {safe(checked.key)}: set LOCKSTEP_KEY to it to see whether that is true")
    else:
        told.append(
            "not keyed: nothing shows damage or an edit, but who can write the file can make a whole new record"
        )
    if checked.open_end:
        upto = "; ".join(f"{safe(process)} up to event {events - 1}" for process, events in checked.sealed if events)
        told.append(f"open end: a tail that is missing cannot be told from a run that was interrupted ({upto})")
    return told


def refusing(checked: Checked) -> list[Line]:
    """Why a record is not called authentic where that was asked for."""
    from lockstep.log.verify import Trust

    why = {
        Trust.UNKEYED: "it has no seal",
        Trust.UNCHECKED: "there is no key to check its seal with",
        Trust.OTHER_KEY: "it is sealed with another key",
    }.get(checked.trust, "its end is open" if checked.open_end else "")
    if why:
        return [[("✗ ", "bad"), ("not authentic", "bad"), f"   {safe(checked.run)}: {why}"]]
    lines: list[Line] = []
    for one in checked.unsure[:_SHOWN]:
        what = one.trust.value if one.trust is not Trust.AUTHENTIC else "its end is open"
        lines.append([("✗ ", "bad"), ("not authentic", "bad"), f"   {safe(one.address)}: {what}"])
    return lines


def verifying(
    verdict: Verified, done: Sequence[Replayed], command: Sequence[str] = (), target: str = ""
) -> list[Line]:  # fmt: skip
    """What `verify` found in the replays."""
    lines: list[Line] = []
    if not verdict.consistent or (verdict.identical and not verdict.times):
        return lines
    if verdict.identical:
        count = words.number(verdict.replays, "replay")
        lines.append([
            ("✓ ", "good"), ("identical" + (" (redacted)" if any(one.redacted for one in done) else ""), "good"),
            f"   {count}  digest {words.digest(verdict.digests[0])}  "
            f"{words.number(verdict.live_calls, 'live call')}  {words.duration(verdict.seconds)}",
        ])  # fmt: skip
        return lines
    lines.append([f"  replay {verdict.replays} of {verdict.times} was not the same run:"])
    if done[-1].identical:
        lines.append([f"  its digest {words.digest(done[-1].digest)} is not that of the others"])
        return lines
    again = f"lockstep replay {shlex.quote(verdict.run)}{targeted(target)}"
    again += f" -- {shlex.join(command)}" if command else ""
    return [
        *lines,
        *replaying(done[-1], command),
        ["  to see what it prints:     ", (cut(safe(again), _WIDE), "address")],
    ]


def targeted(target: str) -> str:
    """The end of a command that runs what was named: it would not do what it says without."""
    return f" --target {shlex.quote(target)}" if target else ""
