"""What a run's meta says of it, for those who need no more of the run: commands that only look at it start quickly."""

from __future__ import annotations

from lockstep.log.model import Value

SCRUBBED = "scrubbed"  # the key under which a scrubbed run names the one that it was made of


def keeper(meta: Value) -> str:
    """The name of the adapter whose framework keeps a run, by the run's meta; "" for a run of a session."""
    found = meta.get("adapter") if isinstance(meta, dict) else None
    return found if isinstance(found, str) else ""
