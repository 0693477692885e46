"""What differs between two runs beside their calls: inputs, strands, output, reads, the end, what was not covered."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from lockstep.debugger import ending
from lockstep.debugger.alignment import common, gaps
from lockstep.debugger.entries import DiffEntry, DiffKind
from lockstep.debugger.ledger import Ledger
from lockstep.debugger.pairing import Pairs, function
from lockstep.debugger.sameness import Where, loose
from lockstep.debugger.sides import Lane, Side
from lockstep.debugger.structure import ABSENT, around, shown
from lockstep.log.model import Kind, Value

ENVIRON = "environ"
_LAST = sys.maxsize  # after all calls

# A place in a run: process and position.
type At = tuple[int, int]


def inputs(ledger: Ledger) -> None:
    """What the runs were started with."""
    entry = DiffEntry(
        "changed", ledger.a.at_start(), ledger.b.at_start(), ledger.a.streams[0].info.process, "input", "",
        reason="was started with something else",
    )  # fmt: skip
    ledger.compare_whole(entry, _input(ledger.a), _input(ledger.b), (0, 0, 0))


def _input(side: Side) -> Value:
    command = side.meta.get("command")
    if isinstance(command, list) and command:
        return {"command": command}
    argv = side.start(0).get("argv")
    if turns := side.turns():
        return {"turns": turns}
    # In process the arguments are those of whatever program the block ran in.
    return {"command": argv} if isinstance(argv, list) and "command" in side.meta else {}


def ends(ledger: Ledger) -> None:
    """How each process ended: exit status, exception, result."""
    for index, partner, process in _processes(ledger):
        entry = DiffEntry(
            "end", ledger.a.at_end(index), ledger.b.at_end(partner), process, "end", "", reason="ended differently"
        )
        ledger.compare_whole(entry, _end(ledger.a, index), _end(ledger.b, partner), (index, _LAST, 1))


def _processes(ledger: Ledger) -> Iterator[tuple[int, int, str]]:
    """The processes that both have."""
    names = {stream.info.process: index for index, stream in enumerate(ledger.b.streams)}
    for index, stream in enumerate(ledger.a.streams):
        process = stream.info.process
        alone = len(ledger.a.streams) == len(ledger.b.streams) == 1
        partner = 0 if alone else names.get(process)
        if partner is not None:
            yield index, partner, process


def _end(side: Side, index: int) -> Value:
    said = side.finish(index).get("end")
    found: dict[str, Value] = dict(said) if isinstance(said, dict) else {}
    if side.streams[index].finish < 0:
        found["state"] = side.reader.info.state.value
    if index == 0 and side.whole:
        found["exit"] = ending.read(side.reader)  # its supervisor knows it
    return found


def coverage(ledger: Ledger) -> None:
    """What was seen and not recorded: nobody knows whether that was the same."""
    for index, partner, process in _processes(ledger):
        a, b = _notes(ledger.a.finish(index)), _notes(ledger.b.finish(partner))
        for note in sorted(a ^ b):
            first = note in a
            kind: DiffKind = "removed" if first else "added"
            entry = DiffEntry(
                kind, ledger.a.at_end(index), ledger.b.at_end(partner), process, "coverage", note,
                reason=f"not covered, in the {'first' if first else 'second'} run only",
            )  # fmt: skip
            ledger.add((index, _LAST, 2), entry)


def _notes(finish: dict[str, Any]) -> set[str]:
    found = finish.get("notes")
    notes = found if isinstance(found, list) else []
    return {" ".join(str(part) for part in note[:2] if part) for note in notes if isinstance(note, list)}


# Strands.


def strands(ledger: Ledger, pairs: Pairs) -> None:
    """Strands that run elsewhere; those that only one run has are told by their calls and output."""
    for lane, partner in pairs.strayed:
        _strayed(ledger, lane, partner)
    for one, other in pairs.lanes:
        if one is not None and other is None and one.idle:
            _idle(ledger, one, ledger.a, "removed")
        elif other is not None and one is None and other.idle:
            _idle(ledger, other, ledger.b, "added")


def _strayed(ledger: Ledger, one: Lane, other: Lane) -> None:
    entry = DiffEntry(
        "moved", ledger.a.at_pos(one.stream, one.pos), ledger.b.at_pos(other.stream, other.pos), one.name, "strand",
        function(one), path="lane", a=shown(one.name), b=shown(other.name),
        reason="runs as another function" if function(one) != function(other) else "began at another place",
    )  # fmt: skip
    ledger.add((one.stream, one.pos, 0), entry)


def _idle(ledger: Ledger, lane: Lane, side: Side, kind: DiffKind) -> None:
    """A strand that asked and printed nothing: nothing came of it that anybody could compare."""
    address, first = side.at_pos(lane.stream, lane.pos), kind == "removed"
    addresses = (address if first else None, None if first else address)
    texts = (shown(lane.name), ABSENT) if first else (ABSENT, shown(lane.name))
    if not ledger.exact:
        ledger.leave_out(addresses, "strand that asked nothing", "", *texts)
        return
    entry = DiffEntry(
        kind, *addresses, lane.name, "strand", function(lane), "", *texts, reason="a strand that asked nothing"
    )
    ledger.add((lane.stream, lane.pos, 0) if first else ledger.before(lane.stream, lane.pos), entry)


# Output.


def outputs(ledger: Ledger, pairs: Pairs) -> None:
    """What was printed, line by line: strand by strand, since the order of concurrent ones says nothing."""
    for one, other in pairs.lanes:
        channels = [*(one.output if one is not None else ()), *(other.output if other is not None else ())]
        for channel in dict.fromkeys(channels):
            _channel(ledger, one, other, channel)


def _channel(ledger: Ledger, one: Lane | None, other: Lane | None, channel: str) -> None:
    lines_a, places_a = _lines(ledger.a, one, channel)
    lines_b, places_b = _lines(ledger.b, other, channel)
    if lines_a == lines_b:
        return
    lane = one.name if one is not None else other.name if other is not None else ""
    where = Where((lane, other.name if other is not None else lane))
    pairs = common(lines_a, lines_b)
    for old, new in list(gaps(pairs, len(lines_a), len(lines_b))):
        near = common([loose(lines_a[i]) for i in old], [loose(lines_b[j]) for j in new])
        pairs += [(old[i], new[j]) for i, j in near]
    pairs.sort()
    hunks = list(gaps(pairs, len(lines_a), len(lines_b)))
    hunks += [(range(i, i + 1), range(j, j + 1)) for i, j in pairs if lines_a[i] != lines_b[j]]
    for old, new in hunks:
        a, b = "".join(lines_a[old.start : old.stop]), "".join(lines_b[new.start : new.stop])
        at_a, at_b = _at(places_a, old), _at(places_b, new)
        addresses = ledger.a.at_pos(*at_a), ledger.b.at_pos(*at_b)
        path = f"{channel}:{old.start + 1 if len(old) or other is None else new.start + 1}"
        found, _ = ledger.compare(addresses, a, b, where, path)
        if not found:
            continue
        texts = around(a.rstrip("\n"), b.rstrip("\n"))
        if a.rstrip("\n") == b.rstrip("\n"):
            texts = shown(a), shown(b)
        entry = DiffEntry(
            "output", *addresses, lane, channel, "", path, texts[0] if len(old) else ABSENT,
            texts[1] if len(new) else ABSENT, "printed something else",
        )  # fmt: skip
        ledger.add((*at_a, 1) if one is not None else ledger.before(*at_b), entry)


def _lines(side: Side, lane: Lane | None, channel: str) -> tuple[list[str], list[At]]:
    """The lines that a strand printed, with their ends, and where each began."""
    lines: list[str] = []
    places: list[At] = []
    text, began = "", (0, 0)
    for seq, pos in lane.output.get(channel, ()) if lane is not None else ():
        stream = lane.stream if lane is not None else 0
        piece = side.body(stream, seq)
        piece = piece.decode("utf-8", "backslashreplace") if isinstance(piece, bytes) else str(piece)
        if not text:
            began = stream, pos
        *whole, rest = (text + piece).split("\n")
        for line in whole:
            lines.append(f"{line}\n")
            places.append(began)
            began = stream, pos
        text = rest
    if text:
        lines.append(text)
        places.append(began)
    return lines, places


def _at(places: Sequence[At], lines: range) -> At:
    if lines.start < len(places):
        return places[lines.start]
    return places[-1] if places else (0, _LAST)


# Reads.


def reads(ledger: Ledger, pairs: Pairs) -> None:
    """How often each strand read each clock, random source and the like, and what the environment was."""
    counts_a, counts_b = _counts(ledger.a), _counts(ledger.b)
    for one, other in pairs.lanes:
        if one is None or other is None:
            continue
        entry = DiffEntry(
            "changed", ledger.a.at_end(one.stream), ledger.b.at_end(other.stream), one.name, "reads", "",
            reason="read something else, or more or less often",
        )  # fmt: skip
        a, b = counts_a.get(one.name, {}), counts_b.get(other.name, {})
        ledger.compare_whole(entry, a, b, (one.stream, _LAST, 3))


def _counts(side: Side) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for index in range(len(side.streams)):
        said = side.finish(index).get("reads")
        for lane, counts in said.items() if isinstance(said, dict) else ():
            found.setdefault(lane, {}).update(counts)
    for stream, seq, event in side.heads(Kind.READS):
        if event.name or event.what == ENVIRON:  # a look at a place, or variables with their values
            body = side.body(stream, seq)
            seen = found.setdefault(event.lane, {}).setdefault(f"{event.what} seen", {})
            if isinstance(seen, dict):
                seen.update({event.name: body} if event.name else body if isinstance(body, dict) else {})
    return found
