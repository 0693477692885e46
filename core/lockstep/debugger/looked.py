"""What a step read beside its calls: files, variables and host facts, as `k~n` in the order stored.

Clock readings and random draws are too many to be of use to a reader; they are counted in the effects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from lockstep.debugger import words
from lockstep.log.model import Kind, Value
from lockstep.log.store import RunReader
from lockstep.log.timeline import Step, Timeline

_BY_NAME = ("environ", "host")  # sources whose events hold many names at once

NOT_SET = "(not set)"
_COMMIT = 1000  # events of one commit: variables are stored with that of what came of them, after it


class ReadRow(msgspec.Struct, frozen=True):
    """One read. `found`: what was there, in words."""

    address: str
    source: str
    name: str
    lane: str
    found: str


def of_step(run: str, timeline: Timeline, step: Step) -> tuple[ReadRow, ...]:
    """The reads between the step before and this one."""
    return tuple(row for row, _ in with_values(run, timeline, step))


def with_values(run: str, timeline: Timeline, step: Step) -> Iterator[tuple[ReadRow, Value]]:
    """The same, each with what was found: a variable's value, the state of what was looked at."""
    stream, reader, before = step.stream, timeline.reader, step.before
    if before < 0 and step.number and len(timeline.streams) == 1:
        before = timeline.step(step.number - 1).seq  # the step was read from around it
    since, until = _position(reader, stream, before, 0), _position(reader, stream, step.seq, sys.maxsize)
    number = 0
    for seq, event in reader.heads(stream, before + 1, step.seq + _COMMIT if step.seq >= 0 else None):
        if event.kind is not Kind.READS or not (event.name or event.what in _BY_NAME):
            continue
        if not since < event.pos < until:
            continue
        body = reader.body(stream, seq)
        found = [(event.name, _words(body), body)] if event.name else _named(body)
        for name, told, value in found:
            number += 1
            yield ReadRow(f"{run}:{step.number}~{number}", event.what, name, event.lane, told), value


def _position(reader: RunReader, stream: int, seq: int, unknown: int) -> int:
    if seq < 0:
        return unknown
    return next(iter(reader.heads(stream, seq, seq + 1)))[1].pos


def _named(body: Value) -> Iterator[tuple[str, str, Value]]:
    for name, value in body.items() if isinstance(body, dict) else ():
        if isinstance(value, list):
            yield "(all names)", words.number(len(value), "name"), None
        else:
            yield name, NOT_SET if value is None else str(value), value


def _words(state: Value) -> str:
    """What a look found."""
    told: dict[str, Any] = state if isinstance(state, dict) else {}
    if "error" in told:
        return os.strerror(int(told["error"]))
    if "content" in told:
        return words.size(len(told["content"]))
    if "as" in told:
        return "as read before"
    if "hash" in told:
        return f"{words.size(told['size'])}, by its hash"
    if "names" in told:
        return words.number(len(told["names"]), "name")
    if "stat" in told:
        return words.size(told["stat"][6])
    if "own" in told:
        return "of the run's own"
    return "(absent)" if told.get("size", 0) is None else ""
