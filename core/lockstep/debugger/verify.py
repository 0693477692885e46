"""Shows that a recording is whole and unchanged, and that it replays to the same run every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lockstep.debugger.replay import Replayed, replay
from lockstep.errors import Difference
from lockstep.log import seal
from lockstep.log.steps import is_native
from lockstep.log.store import open_store
from lockstep.log.timeline import branch_of
from lockstep.log.verify import Branch, Trust
from lockstep.log.verify import verify as chain_verify


class Checked(msgspec.Struct, frozen=True):
    """What the chain and its seals say. `open_end`: the recording has no end, so a missing tail would not show.
    `trust`: what is known of who wrote it; `key`: the id of the key it is sealed with; `sealed`: (process, events)
    of each stream; `ours`: the id of the key here; `recorded_as`: its first name, where it has another now; `branches`:
    what each branch that was checked shows, the one that was asked for first; `native`: whether a framework keeps the
    run, so that no command was recorded that could replay it."""

    run: str
    events: int
    open_end: bool
    trust: Trust
    key: str
    ours: str
    sealed: tuple[tuple[str, int], ...]
    recorded_as: str
    problems: tuple[str, ...]
    branches: tuple[Branch, ...] = ()
    native: bool = False

    @property
    def authentic(self) -> bool:
        """Whether all of it, with its branches and to the end of each, is what the owner of the key recorded."""
        return self.trust is Trust.AUTHENTIC and not self.open_end and not self.unsure

    @property
    def unsure(self) -> tuple[Branch, ...]:
        """Other branches that are not authentic to their end."""
        return tuple(one for one in self.branches[1:] if one.trust is not Trust.AUTHENTIC or one.open_end)


class Verified(msgspec.Struct, frozen=True):
    """`identical`: the record is consistent and all `times` replays were the same run with one digest.
    `authentic`: it is sealed to its end with the key that is here; `trust` and `key`: see `Checked`.
    `replays`: how many were made; the first that differed ended it. `digests`: the different ones seen.
    `redacted`: secrets that a replay had only placeholders for. `branches`: what each branch's record shows."""

    run: str
    identical: bool
    consistent: bool
    open_end: bool
    authentic: bool
    trust: Trust
    key: str
    events: int
    problems: tuple[str, ...]
    times: int
    replays: int
    digests: tuple[str, ...]
    live_calls: int
    difference: Difference | None = msgspec.field(name="divergence")
    seconds: float
    redacted: tuple[str, ...]
    branches: tuple[Branch, ...] = ()


def check(store: str, run: str) -> Checked:
    """Checks the chain and the seals of a run with its branches, or of one branch with what it comes from: that what is
    stored is what was recorded."""
    key = seal.given()
    # A thread of a framework may be gone on with at any time.
    with open_store(store) as opened, opened.steady():
        reader = branch_of(opened, run)
        found = chain_verify(reader, key)
        meta = reader.stored.meta if not found.problems else None
    return Checked(
        run=run,
        events=found.events,
        open_end=found.open_end,
        trust=found.trust,
        key=found.key,
        ours=key.id if key is not None else "",
        sealed=tuple((stream.process, stream.events) for stream in reader.own),
        recorded_as=found.recorded_as if found.recorded_as != reader.info.name else "",
        problems=tuple(str(problem) for problem in found.problems),
        branches=found.branches,
        native=is_native(meta),
    )


def repeat(
    store: str,
    run: str,
    command: Sequence[str],
    times: int,
    output: int,
    *,
    trust: bool = False,
    isolate: bool = False,
    debug: bool = False,
) -> Iterator[Replayed]:
    """Replays up to `times` times, each in a process of its own whose output goes to descriptor `output`."""
    for _ in range(times):
        done = replay(store, run, command, stdout=output, stderr=output, trust=trust, isolate=isolate, debug=debug)
        yield done
        if not done.identical:
            return


def judge(checked: Checked, done: Sequence[Replayed], times: int) -> Verified:
    """The verdict over the check and the replays made."""
    digests = tuple(sorted({one.digest for one in done}))
    same = not checked.problems and len(done) == times and all(one.identical for one in done) and len(digests) <= 1
    return Verified(
        run=checked.run,
        identical=same,
        consistent=not checked.problems,
        open_end=checked.open_end,
        authentic=checked.authentic,
        trust=checked.trust,
        key=checked.key,
        events=checked.events,
        problems=checked.problems,
        times=times,
        replays=len(done),
        digests=digests,
        live_calls=sum(one.live_calls for one in done),
        difference=next((one.difference for one in done if one.difference is not None), None),
        seconds=sum(one.seconds for one in done),
        redacted=tuple(sorted({name for one in done for name in one.redacted})),
        branches=checked.branches,
    )
