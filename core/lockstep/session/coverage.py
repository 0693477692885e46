"""What a session has seen of each source of non-determinism, for its report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.session.report import Coverage

RECORDED, DERIVED, UNUSED, DIFFERS, NOT_COVERED = "recorded", "derived", "not used", "differs", "not covered"
APART = "in runs of its own"

# Sources that a lane draws from the run's seed; what it reads of any other is in the record.
_DRAWN = ("random", "numpy", "tempfile", "os.urandom", "os.getrandom", "SystemRandom", "ssl.")


def of(session: Any) -> tuple[Coverage, ...]:
    """Effects and what was printed, then what was read and drawn, then what nobody recorded."""
    differs = (Coverage(source, DIFFERS, 0, detail) for source, detail in sorted(session.differs.items()))
    return (*_seen(session), *differs, *uncovered(session))


def uncovered(session: Any) -> tuple[Coverage, ...]:
    """What is live, by source and place."""
    return tuple(
        Coverage(source, NOT_COVERED, count, detail) for (source, detail), count in sorted(session.notes.items())
    )


def _seen(session: Any) -> Iterator[Coverage]:
    for kind, count in sorted(session.counts.items()):
        yield Coverage(kind, RECORDED, count)
    reads: dict[str, int] = {}
    for lane in tuple(session.lanes.values()):
        for source, count in lane.reads.items():
            reads[source] = reads.get(source, 0) + count
    for source, count in sorted(reads.items()):
        yield Coverage(source, DERIVED if source.startswith(_DRAWN) else RECORDED, count)
    for source, count in sorted(session.told.items()):
        yield Coverage(source, RECORDED, count)
    for channel, count in sorted(session.writes().items()):
        yield Coverage(channel, RECORDED, count)
    for source, detail in sorted(session.watched.items()):
        yield Coverage(source, UNUSED, 0, detail)
    for source, detail in sorted(session.elsewhere.items()):
        yield Coverage(source, APART, 0, detail)
