"""One report of the several processes of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from lockstep.launch.meeting import FIRST
from lockstep.session.report import Coverage, Report


def merge(reports: Sequence[Report]) -> Report | None:
    """The report of a run: identical only if all are, with the difference that was found first. None without one of
    the first process."""
    first = next((report for report in reports if report.process == FIRST), None)
    if first is None or len(reports) < 2:
        return first
    differing = sorted((report for report in reports if report.difference is not None), key=lambda report: report.when)
    found = differing[0] if differing else None
    return msgspec.structs.replace(
        first,
        identical=all(report.identical for report in reports),
        cut=first.cut and not any(report.stopped for report in reports),
        difference=found.difference if found is not None else None,
        process=found.process if found is not None else first.process,
        steps=sum(report.steps for report in reports),
        lanes=sum(report.lanes for report in reports),
        counts=_counts(reports),
        digest=digest(reports),
        live_calls=sum(report.live_calls for report in reports),
        coverage=_coverage(reports),
        faults=tuple(fault for report in reports for fault in report.faults),
        redacted=tuple(sorted({name for report in reports for name in report.redacted})),
        when=found.when if found is not None else 0,
        stopped=any(report.stopped for report in reports),
    )


def digest(reports: Sequence[Report]) -> str:
    """The identity of the run: that of each process, by its lane."""
    total = blake2b(digest_size=32, person=b"lockstep procs")
    for report in sorted(reports, key=lambda report: report.process):
        name = report.process.encode()
        total.update(len(name).to_bytes(4, "little") + name + bytes.fromhex(report.digest))
    return total.hexdigest()


def _counts(reports: Sequence[Report]) -> dict[str, int]:
    found: dict[str, int] = {}
    for report in reports:
        for kind, count in report.counts.items():
            found[kind] = found.get(kind, 0) + count
    return found


def _coverage(reports: Sequence[Report]) -> tuple[Coverage, ...]:
    found: dict[tuple[str, str, str], Coverage] = {}
    for entry in (entry for report in reports for entry in report.coverage):
        key = entry.source, entry.how, entry.detail
        before = found.get(key)
        count = entry.count + (before.count if before is not None else 0)
        found[key] = msgspec.structs.replace(entry, count=count)
    return tuple(found[key] for key in sorted(found))
