"""What a comparison answers: frozen data, as it is in `--json`."""

from __future__ import annotations

from typing import Literal

import msgspec

from lockstep.debugger.sameness import LeftOut
from lockstep.debugger.structure import Change

type DiffKind = Literal["changed", "added", "removed", "moved", "output", "end"]


class DiffEntry(msgspec.Struct, frozen=True):
    """One thing that differs.

    kind        changed: asked something else, or was answered differently; added and removed: only the second or
                only the first run has it; moved: the same at another place; output: printed; end: how it ended
    address_a   where in the first run, None where it is not there; `address_b` in the second
    lane        of the first run, of what was added that of the second
    effect      kind of what differs: model, tool, http, …, step, strand, input, coverage, reads, stdout
    name        of the model, tool, …
    path        the first place in it that differs: `messages[2].content`, `arguments.order`, `answer.total`
    a, b        what stands there, as JSON, cut to what differs; `(absent)` for nothing
    reason      in words
    site        where in the program it was asked, as `file:line in function`
    changes     all places that differ, the first one included; at most 50
    follows     where all that differs in what is asked differed before: the address in the first run of the first
                such place, of an answer that this request carries on, say
    """

    kind: DiffKind
    address_a: str | None
    address_b: str | None
    lane: str
    effect: str
    name: str
    path: str = ""
    a: str = ""
    b: str = ""
    reason: str = ""
    site: str = ""
    changes: tuple[Change, ...] = ()
    follows: str = ""


class Timing(msgspec.Struct, frozen=True):
    """How long the same call took in both runs, in ns, and in how many pieces it was answered. None: it never ended."""

    address_a: str
    address_b: str
    effect: str
    name: str
    a: int | None
    b: int | None
    pieces_a: int
    pieces_b: int


class Diff(msgspec.Struct, frozen=True):
    """The answer of a comparison.

    same         whether nothing differs
    first        the first difference, in the order of the first run; None where there is none
    differences  all, in that order
    left_out     what differs between any two live runs and does not count, see `lockstep.debugger.sameness`
    times        on request: the calls that both made, by how much their durations differ
    steps        numbered steps of the first run and of the second
    """

    same: bool
    first: DiffEntry | None
    differences: tuple[DiffEntry, ...]
    left_out: tuple[LeftOut, ...] = ()
    times: tuple[Timing, ...] = ()
    steps: tuple[int, int] = (0, 0)
