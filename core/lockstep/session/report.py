"""What a session says when it ends: the one structure behind the CLI's last lines and `--json`."""

from __future__ import annotations

import msgspec

from lockstep.errors import Difference


class Coverage(msgspec.Struct, frozen=True):
    """How one source of non-determinism was handled.

    how    `recorded` (a replay is answered from the record), `derived` (from the run's seed), `not used` (a
           client that nobody could have recorded, loaded and left alone), `in runs of its own` (what a client of
           a framework brings, its adapter keeps there; a replay of this run stops before it), `differs` (a fact of
           machine or process that is another one in this replay, and may explain a difference), or `not covered`: live
    count  how often
    detail not covered: what was seen, and where; differs: what it was and what it is
    """

    source: str
    how: str
    count: int = 0
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """The end of a recording or a replay of one process.

    identical  replay: every request, outcome, output and the end were the recorded ones and nothing
               was live. Always False while recording
    cut        replay: the run was interrupted, and its end was reached without a difference
    digest     hex BLAKE2b over the lanes (see `session.digest`), recomputed from what this process did
    counts     effects by kind: {"model": 9, "tool": 5}
    faults     errors of our own while recording, in words; the run is then `incomplete`
    redacted   replay: names of the secrets of which nobody knew the value; the program got placeholders
    process    the lane that the process ran as; of several together, the first one's
    when       when the difference was found, on the system's monotonic clock in ns: tells which was first
    stopped    replay: stopped since another process of the run was not the recorded one
    state      fork: complete, failed, refused (a call was) or diverged (the part served was not the recorded one)
    branch     fork: its name
    live       fork: calls past the cut that ran for real; `answers`: by how they were answered, those that did not
    refused    fork: what may not run, in words
    unreached  fork: addresses of edited effects whose calls were not made
    changed    fork: what of the target is another than was recorded, all of it past the cut, in words
    """

    mode: str
    run: str
    identical: bool = False
    cut: bool = False
    difference: Difference | None = None
    steps: int = 0
    lanes: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    digest: str = ""
    live_calls: int = 0
    seconds: float = 0.0
    exit: int | None = None
    coverage: tuple[Coverage, ...] = ()
    faults: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    process: str = "main"
    when: int = 0
    stopped: bool = False
    state: str = ""
    branch: str = ""
    live: int = 0
    answers: dict[str, int] = msgspec.field(default_factory=dict)
    refused: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def uncovered(self) -> tuple[Coverage, ...]:
        """What was live."""
        return tuple(entry for entry in self.coverage if entry.how == "not covered")
