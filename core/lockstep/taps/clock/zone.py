"""The local time zone: `localtime`, naive `fromtimestamp` and `astimezone` depend on the machine's.

Recorded as a fact of the start and put back before a replayed program begins, by the C environment
only: `os.environ` is the program's to read.
"""

from __future__ import annotations

import os
import time
from typing import Any

_ZONES = "/zoneinfo/"


def facts() -> dict[str, Any]:
    """`TZ` as set (or None), the zone's name where the system tells it, its names and offset in seconds
    west of UTC."""
    return {
        "TZ": os.environ.get("TZ"),
        "zone": _system_zone(),
        "names": list(time.tzname),
        "offset": time.timezone,
        "summer": time.altzone if time.daylight else None,
    }


def restore(recorded: dict[str, Any]) -> str | None:
    """Makes the recorded zone this process's; returns what it was told, None where it is that already."""
    now = facts()
    if not hasattr(time, "tzset") or all(recorded.get(name) == now[name] for name in ("names", "offset", "summer")):
        return None
    zone = recorded.get("TZ") or recorded.get("zone") or _posix(recorded)
    os.putenv("TZ", zone)
    time.tzset()
    return str(zone)


def undo() -> None:
    """Makes the zone again what the environment says."""
    zone = os.environ.get("TZ")
    if zone is None:
        os.unsetenv("TZ")
    else:
        os.putenv("TZ", zone)
    time.tzset()


def _system_zone() -> str | None:
    try:
        link = os.readlink("/etc/localtime")
    except OSError:
        return None
    return link.partition(_ZONES)[2] or None


def _posix(recorded: dict[str, Any]) -> str:
    # Without a name there are no rules of summer time: the standard time, as POSIX writes it.
    name = str((recorded.get("names") or ["UTC"])[0])
    west = int(recorded.get("offset") or 0)
    sign, rest = ("-" if west < 0 else ""), abs(west)
    return f"<{name}>{sign}{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
