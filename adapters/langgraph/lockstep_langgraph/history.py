"""What delta channels are rebuilt from: the writes along a checkpoint's ancestors, back to the nearest stored value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lockstep_langgraph.cells import Codec
from lockstep_langgraph.entries import Entry
from lockstep_langgraph.threads import Thread


def ancestors(thread: Thread, entry: Entry) -> Iterator[Entry]:
    """Its parent, that one's, and so on, also those that are hidden."""
    seen = {entry.id}
    above = thread.kept(entry.ns, entry.parent)
    while above is not None and above.id not in seen:
        seen.add(above.id)
        yield above
        above = thread.kept(above.ns, above.parent)


def of_channels(
    thread: Thread, entry: Entry, channels: Sequence[str], codec: Codec, branch: str | None = None
) -> dict[str, Any]:
    """Of each channel its `writes`, oldest first, and the value `seed` that they begin from, where one is stored.

    A stored value is from before the writes of its own checkpoint, so those count too; those of `entry` itself are
    still pending, and do not.
    """
    writes: dict[str, list[tuple[str, str, Any]]] = {name: [] for name in channels}
    seeds: dict[str, Any] = {}
    left = set(channels)
    for above in ancestors(thread, entry):
        if not left:
            break
        for write in reversed(thread.writes(above, branch)):
            if write.channel in left:
                writes[write.channel].append((write.task, write.channel, write.item.make(codec)))
        for name in left & above.cells.keys():
            seeds[name] = above.cells[name].make(codec)
            left.discard(name)
    found: dict[str, Any] = {}
    for name in channels:
        found[name] = {"writes": writes[name][::-1]}
        if name in seeds:
            found[name]["seed"] = seeds[name]
    return found


def needed(thread: Thread, kept: Iterable[Entry]) -> dict[str, Entry]:
    """Those that are not kept, and that delta channels of those that are, are rebuilt from; by id.

    Which channels are delta channels their counters say, that LangGraph keeps in the metadata.
    """
    kept = list(kept)
    ids = {entry.id for entry in kept}
    found: dict[str, Entry] = {}
    for entry in kept:
        counters: Any = entry.metadata.value
        counters = counters.get("counters_since_delta_snapshot") if isinstance(counters, dict) else None
        left = set(counters) - entry.cells.keys() if isinstance(counters, dict) else set()
        for above in ancestors(thread, entry):
            if not left:
                break
            if above.id not in ids:
                found[above.id] = above
            left -= above.cells.keys()
    return found
