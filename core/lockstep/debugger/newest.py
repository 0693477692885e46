"""Which branch of a thread has its latest checkpoint: where the framework goes on if nobody says where.

That is the one whose last checkpoint has the greatest id, of main and the branches that the framework's user made.
Those of `lockstep fork` and `bisect` say in their FORK that they are never the latest.
"""

from __future__ import annotations

from uuid import UUID

from lockstep.log.address import MAIN
from lockstep.log.model import BranchInfo, Kind, Value
from lockstep.log.steps import is_native
from lockstep.log.store import ROOT, RunReader

LATEST, ID = "latest", "id"  # in the body of a FORK, and in a checkpoint's record


def branch(reader: RunReader) -> str:
    """Its name; "" where the run is none of a framework, or has one branch only. Raises StoreError."""
    if len(reader.branches) < 2 or not is_native(reader.stored.meta):
        return ""
    greatest, found = "", MAIN
    for info in reader.branches:
        if info.problem or not _counts(reader, info):
            continue
        last = _last(reader, info)
        if last > greatest:
            greatest, found = last, info.name
    return found


def _counts(reader: RunReader, info: BranchInfo) -> bool:
    if info.name == MAIN:
        return True
    event = reader.on(info.name).fork
    return event is None or not isinstance(event.body, dict) or event.body.get(LATEST) is not False


def _last(reader: RunReader, info: BranchInfo) -> str:
    """The id of the last checkpoint that the branch has of its own, of the graph itself."""
    stream = next((one for one in reversed(info.streams) if one.process == ROOT), None)
    if stream is None:
        return ""
    last = -1
    for seq, event in reader.stored.heads(stream.id):
        if event.kind is Kind.STEP and event.lane == ROOT:
            last = seq
    return _text(reader.stored.field(stream.id, last, ID)) if last >= 0 else ""


def _text(value: Value) -> str:
    """Ids of 16 bytes are UUIDs, which are compared as they are written."""
    if isinstance(value, bytes) and len(value) == 16:
        return str(UUID(bytes=value))
    return value if isinstance(value, str) else ""
