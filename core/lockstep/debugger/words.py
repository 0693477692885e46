"""How things are called and counted in what people read: durations, sizes, ages, ends, coverage."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping

from lockstep.session.report import Coverage

NOT_COVERED = "not covered"
APART = "in runs of its own"
DIFFERS = "differs"
# Kinds in the order in which they are counted out.
_KINDS = ("model", "tool", "http", "process", "activity", "browser", "human", "step")


def duration(seconds: float) -> str:
    """`38 ms`, `2.8 s`, `3 min 5 s`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "<1 ms"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def age(seconds: float) -> str:
    """How long ago: `now`, `2 min`, `3 h`, `5 d`."""
    for limit, unit, name in ((60, 0, ""), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return "now" if not unit else f"{int(seconds // unit)} {name}"
    return f"{int(seconds // 86400)} d"


def size(count: int) -> str:
    """Bytes as `900 B`, `38 kB`, `1.2 MB`."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.5 or unit == "GB":
            return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"
    raise AssertionError("the last unit takes everything")


def number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def kinds(counts: Mapping[str, int]) -> str:
    """`9 model · 5 tool`."""
    known = [kind for kind in _KINDS if counts.get(kind)]
    known += sorted(kind for kind in counts if kind not in _KINDS and counts[kind])
    return " · ".join(f"{counts[kind]} {kind}" for kind in known)


def ended(status: int | None) -> str:
    """How a process ended, by its status: `exit 3`, `killed by SIGTERM`."""
    if status is None:
        return "end not seen"
    if status >= 0:
        return f"exit {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def uncovered(coverage: Iterable[Coverage]) -> list[str]:
    """What nobody recorded, one entry each: `child process /usr/bin/python3`, `2 child process …`."""
    found = []
    for entry in coverage:
        if entry.how == NOT_COVERED:
            many = f"{entry.count} × " if entry.count > 1 else ""
            found.append(f"{many}{entry.source}{' ' + entry.detail if entry.detail else ''}")
    return found


def digest(value: str) -> str:
    """Enough of a digest to compare by eye: `9f2c…41aa`."""
    return f"{value[:4]}…{value[-4:]}" if len(value) > 9 else value
