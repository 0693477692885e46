"""The lines people read at the end of a fork. Pure: structs in, lines out."""

from __future__ import annotations

import shlex

from lockstep.debugger import render, words
from lockstep.debugger.fork import Forked
from lockstep.debugger.lines import Line, Piece, cut, safe

_STATE = {"complete": "good", "failed": "bad", "refused": "bad", "diverged": "bad", "interrupted": "warn"}
_WIDE = 160


def forking(done: Forked, target: str = "") -> list[Line]:
    """What was served, edited and live; how it ended; and what to do next. `target`: what was named to be run."""
    lines: list[Line] = [[f"  {' · '.join(_course(done))}"]]
    lines += [[("  changed", "warn"), f": {cut(safe(one), _WIDE)}"] for one in done.changed]
    name: list[Piece] = [("● ", _STATE[done.state]), (safe(done.address), "strong"), "  "]
    if done.refused:
        call, why, *ways = done.refused[0].splitlines()
        lines.append([*name, (f"stopped at {done.last}  LS301 refused", "bad"), f": {cut(safe(call), _WIDE)}"])
        lines += [[f"  {safe(line)}"] for line in (why, *ways)]
        if done.answer:
            again = f"lockstep fork {_word(done.answer[0])} --set {done.answer[1]}=JSON{render.targeted(target)}"
            lines.append(["  or answer it:  ", (again, "address")])
        return lines
    if done.difference is not None:
        lines.append([*name, ("the part served was not the recorded one", "bad")])
        return [*lines, *render.difference(done.difference)]
    facts = [
        words.number(done.steps, "step"),
        f"{done.live} live",
        f"{done.reused} reused" if done.reused else "",
        words.duration(done.seconds) if done.seconds else "",
        words.ended(done.exit),
    ]
    lines.append([*name, (done.state, _STATE[done.state]), "  ", "  ".join(fact for fact in facts if fact)])
    if done.error is not None:
        told = f"{done.error.get('type')}: {done.error.get('message')}"
        lines.append([f"  {cut(safe(told), _WIDE)}"])
    if done.unreached:
        what = ", ".join(map(safe, done.unreached))
        lines.append([("  not edited", "warn"), f": the call of {what} was not made"])
    lines += render.faults(done.faults)
    lines += render.live(done.coverage)
    if done.live:
        lines.append(["  servers were not told of the part served: what they keep may be another than it was"])
    lines.append([
        "  next: ", (f"lockstep log {_word(done.address)}", "address"), "    ",
        (f"lockstep diff {_word(done.run)} {_word(done.address)}", "address"),
    ])  # fmt: skip
    return lines


def _course(done: Forked) -> list[str]:
    """`served 0–6`, `edited 7.1`, `live from 8.1`."""
    found = [f"served 0–{done.shared}" if done.shared else "served 0"]
    if done.edits:
        found.append(f"edited {', '.join(map(safe, done.edits))}")
    if done.served:
        found.append(f"{done.served} more served past it")
    if done.live_from:
        found.append(f"live from {done.live_from}")
    return found


def _word(text: str) -> str:
    return shlex.quote(text)
