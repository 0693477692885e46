"""What people read of a bisect: how it goes on, and its verdict. Pure: structs in, lines out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from lockstep.debugger import chart_bisect, render, structure, words
from lockstep.debugger.lines import Line, Piece, cut, safe
from lockstep.debugger.probes import PREFIX
from lockstep.debugger.search import BAD, GOOD, SKIP
from lockstep.debugger.structure import Change
from lockstep.debugger.verdict import (
    AMBIGUOUS,
    CULPRIT,
    IN_THE_CODE,
    NOT_RECORDED,
    NOT_REPRODUCIBLE,
    Likelihood,
    Probe,
    Verdict,
    Wanted,
)  # fmt: skip

_MARK: dict[str, Piece] = {BAD: ("●", "bad"), GOOD: ("○", "good"), SKIP: ("?", "warn")}
_WIDE = 100
_SHOWN = 5
_MARKS = 20  # of probes, on the line that moves
_ALLOW = "let it run:"  # in a refusal, see `lockstep.session.refusal`


def probing(wanted: Wanted, tried: Sequence[Probe]) -> Line:
    """The line that moves: each probe so far, how many there can be, and where the culprit must be."""
    known = "   ".join(f"{word} :{at}" for word, at in (("good", wanted.good), ("bad", wanted.bad)) if at)
    marks = [_MARK[probe.judged] for probe in tried]
    sure = "" if wanted.sure is None else f"   P = {wanted.sure:.2f}"
    return [
        "  probing  ", *(["…"] if len(marks) > _MARKS else []), *marks[-_MARKS:], "·",
        f"  {len(tried) + 1} of ≤ {len(tried) + wanted.left}", sure, f"   {known}" if known else "",
    ]  # fmt: skip


def verdict(found: Verdict, target: str = "") -> list[Line]:
    """The answer, what it stands on, and what to do next. `target`: what was named to be run."""
    head, lines = _culprit(found, target) if found.verdict == CULPRIT else _SAID[found.verdict](found)
    if found.rescue is not None:
        lines = [*lines[:1], *_chances(found), *lines[1:]]
    cost = [words.number(found.probes, "probe")]
    before = sum(probe.found for probe in found.tried)
    if before:
        cost.append(f"{before} of them run before")
    if found.ended:
        cost.append(f"{found.ended} more ended as needless")
    cost += [words.number(found.live_calls, "live call"), words.duration(found.seconds)]
    return [head, *lines, [f"  {', '.join(cost)}"]] if found.probes else [head, *lines]


def _chances(found: Verdict) -> list[Line]:
    """Of repeated probes: how likely each place is bad, drawn, and the places that matter."""
    places = found.posterior
    lines: list[Line] = [
        [("  P(bad)      ", "dim"), chart_bisect.bars(places), (f"   :{places[0].at} to :{places[-1].at}", "dim")]
    ]
    lines += [_place(place) for place in chart_bisect.telling(found)]
    said = [
        f"{name} in {chance.mean:.2f} ({chance.low:.2f}–{chance.high:.2f})"
        for name, chance in (("rescued", found.rescue), ("spoiled", found.spoil)) if chance is not None
    ]  # fmt: skip
    return [*lines, [("  new answers ", "dim"), " · ".join(said), (" of the probes", "dim")]]


def _place(place: Likelihood) -> Line:
    bad, good, lost = place.tried
    marks = [_MARK[BAD]] * bad + [_MARK[GOOD]] * good + [_MARK[SKIP]] * lost
    return [
        f"    {'P(culprit)':>10} {place.culprit:.2f}   P(bad) {place.bad:.2f} ({place.low:.2f}–{place.high:.2f})   ",
        (f":{place.at}", "strong"), "  ", *marks[:_MARKS], *(["…"] if len(marks) > _MARKS else []),
    ]  # fmt: skip


def _tally(found: Verdict) -> str:
    """How often it was bad with the culprit's answer kept, and good without it, where probes were repeated."""
    at = max(range(len(found.posterior)), key=lambda number: found.posterior[number].culprit)
    kept = [place.tried for place in found.posterior[at:]]
    left = [place.tried for place in found.posterior[:at]]
    bad, good = sum(one[0] for one in kept), sum(one[1] for one in left)
    return (
        f"  P = {found.confidence:.2f}   kept, the run is bad ({bad} of {sum(sum(one[:2]) for one in kept)} probes); "
        f"left out, it is good ({good} of {sum(sum(one[:2]) for one in left)})"
    )


type _Said = tuple[Line, list[Line]]


def _culprit(found: Verdict, target: str) -> _Said:
    address = f"{found.run}:{found.effect or found.step}"
    bad, good = len(found.judged(BAD)), len(found.judged(GOOD))
    kept = f"kept, the run is bad ({bad} of {bad} probes)" if bad else "kept, the run is bad (as recorded)"
    lost = f"; {len(found.judged(SKIP))} could not be judged" if found.judged(SKIP) else ""
    told = f"  {kept}; left out, it is good ({good} of {good}){lost}"
    if len(found.causes) > 1:
        told = f"  {safe(found.why)}"
    lines: list[Line] = [[told if found.rescue is None else f"{_tally(found)}{lost}"]]
    if len(found.causes) > 1 or (found.causes and not found.minimal):
        lines.append([("  causes      ", "dim"), *_causes(found)])
    who = "a live call" if f"@{PREFIX}" in found.other else "the good run"
    for change in found.changes[:_SHOWN]:
        path = _field(change)
        shown = f"{safe(path)} " if path else ""
        lines.append([("  its answer  ", "dim"), f"{shown}{cut(safe(change.a), _WIDE)}",
                      (f"   where {who} says  ", "dim"), cut(safe(change.b), _WIDE)])  # fmt: skip
    if found.other:
        lines.append([("  that one    ", "dim"), (f"lockstep show {shlex.quote(found.other)}", "address")])
    lines.append([("  next        ", "dim"), (f"lockstep show {shlex.quote(address)}", "address")])
    if found.edits:
        lines.append([("              ", "dim"), (_fork(found, found.edits, target), "address")])
    if found.shrunk is not None:
        lines += _shrunk(found, target)
    return [("✗ ", "bad"), ("culprit", "bad"), "  ", (safe(address), "strong"), f"  {safe(found.name)}"], lines


def _causes(found: Verdict) -> Line:
    """The answers that cure it together."""
    needed = "each of them has to be another one" if found.minimal else "perhaps not all of them are needed"
    return [(safe(" + ".join(f"{found.run}:{at}" for at in found.causes)), "strong"), (f"   {needed}", "dim")]


def _shrunk(found: Verdict, target: str) -> list[Line]:
    """What of the culprit's answer is enough, and the fork that shows it."""
    parts = [f"{safe(path)} {structure.shown(value)}" if path else structure.shown(value)
             for path, value in (found.shrunk or {}).items()]  # fmt: skip
    lines: list[Line] = [[("  enough      ", "dim"), cut(safe(one), _WIDE)] for one in parts[:_SHOWN]]
    if len(parts) > _SHOWN:
        lines.append([f"              … and {len(parts) - _SHOWN} more"])
    if found.reproduce:
        lines.append([("  still bad   ", "dim"), (_fork(found, found.reproduce, target, found.effect), "address")])
    return lines


def _fork(found: Verdict, edits: Sequence[str], target: str, at: str | None = None) -> str:
    sets = " ".join(f"--set {shlex.quote(edit)}" for edit in edits)
    address = f"{found.run}:{found.fork_at or at or found.step}"
    return f"lockstep fork {shlex.quote(address)} {sets}{render.targeted(target)}"


def _field(change: Change) -> str:
    """The place in an answer, as an edit names it."""
    return change.path.removeprefix("answer").removeprefix(".")


def _ambiguous(found: Verdict) -> _Said:
    good, bad = found.between or ("", "")
    where = f"between {safe(good)} and {safe(bad)}" if good else f"at or before {safe(bad)}"
    lines: list[Line] = [[f"  {safe(found.why)}"]]
    lost = found.judged(SKIP)
    for probe in lost[:_SHOWN]:
        lines.append([f"  :{probe.at}  ", cut(safe(probe.why), _WIDE), "   ",
                      (f"lockstep log {shlex.quote(probe.address)}", "address")])  # fmt: skip
    if len(lost) > _SHOWN:
        lines.append([f"  … and {len(lost) - _SHOWN} more"])
    flags = _flags(found)
    if flags:
        lines.append([("  to let it run  ", "dim"), (cut(safe(flags), _WIDE), "address")])
    return [("? ", "warn"), (AMBIGUOUS, "warn"), f"  the culprit is {where}"], lines


def _flags(found: Verdict) -> str:
    """What would let the refused calls run, as the refusals say it: `--live issue_refund`."""
    texts = [line for probe in found.tried for text in probe.refused for line in text.splitlines()]
    said = [line.removeprefix(_ALLOW).strip() for line in texts if line.startswith(_ALLOW)]
    return " ".join(dict.fromkeys(said))


def _in_the_code(found: Verdict) -> _Said:
    lines: list[Line] = [[f"  {safe(found.why)}: the cause is in the code, not in an answer"]]
    return [("✗ ", "bad"), ("in the code", "bad"), f"  {safe(found.run)}"], [*lines, *_log(found)]


def _not_recorded(found: Verdict) -> _Said:
    return [("✗ ", "bad"), ("not recorded", "bad"), f"  {safe(found.run)}: {safe(found.why)}"], _log(found)


def _not_reproducible(found: Verdict) -> _Said:
    run = shlex.quote(found.run)
    if found.probes:
        lines: list[Line] = [
            ["  so what made it bad is in no recorded answer. What was not recorded, if anything:  ",
             (f"lockstep verify {run}", "address")]
        ]  # fmt: skip
    else:
        lines = [["  say what is bad about it:  ", (f"lockstep bisect {run} --bad CMD", "address")]]
    return [("✗ ", "bad"), ("not reproducible", "bad"), f"  {safe(found.run)}: {safe(found.why)}"], lines


def _log(found: Verdict) -> list[Line]:
    return [[("  next        ", "dim"), (f"lockstep log {shlex.quote(found.run)}", "address")]]


_SAID: dict[str, Callable[[Verdict], _Said]] = {
    AMBIGUOUS: _ambiguous, IN_THE_CODE: _in_the_code, NOT_RECORDED: _not_recorded,
    NOT_REPRODUCIBLE: _not_reproducible,
}  # fmt: skip


def parting(at: str, name: str, changes: Sequence[Change]) -> list[Line]:
    """With a good run: the first answer in which the two differ, which needs no probe."""
    lines: list[Line] = [["  first another answer at ", (safe(at), "address"), f"  {safe(name)}"]]
    for change in changes[:1]:
        lines.append([f"    {safe(_field(change))}  {cut(safe(change.a), _WIDE)}", ("   the good run  ", "dim"),
                      cut(safe(change.b), _WIDE)])  # fmt: skip
    return lines


def kept(probes: Sequence[Probe]) -> list[Sequence[Piece]]:
    """Rows of `bisect log`: what was said, address, where it left the run, why."""
    return [
        (_MARK[probe.judged], (safe(probe.address), "address"), probe.at, f"{probe.judged}: {safe(probe.why)}")
        for probe in probes
    ]
