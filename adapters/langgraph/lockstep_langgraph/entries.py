"""What is kept of a thread: its checkpoints and the writes of their tasks, in memory and as they stand in the log.

The body of a checkpoint's STEP is a record as in `lockstep.log.checkpoints`, which says what became of the channels
since the parent (`channels`, `gone`, `whole`), with these beside:

    id          16 bytes of a UUID, else text
    v, ts       as LangGraph has them; `v` where it is not 4
    ns, parent  namespace and id of the parent, where `of` names no event that has them
    metadata    whole
    versions    {channel: version} that changed, `unversioned` the channels that have none any more
    seen        {node: {channel: version}} that changed, null for what went; `unseen` the nodes that went
    updated     LangGraph's `updated_channels`
    more        {key: {"value": value}} of what else a checkpoint had, null for a key that it had not
    hidden      true of one that is kept only for what others are rebuilt from

The body of a WRITES is {"path": text, "writes": [[index, channel, value], …]}.
"""

from __future__ import annotations

from typing import Any

from lockstep.log.checkpoints import CHANNELS, GONE, ITEMS, KEEP, VALUE, WHOLE
from lockstep.log.model import Value
from lockstep_langgraph.cells import Cell, Item, Listed, Strand, Whole

type Version = int | float | str

VERSION = 4  # of checkpoints as LangGraph 1.x makes them: not stored
_KNOWN = frozenset({"v", "ts", "id", "channel_values", "channel_versions", "versions_seen", "updated_channels"})


class Write:
    """One write of a task.

    index        its place among the task's, below 0 for the special channels
    branch, pos  where its WRITES stands in the log
    """

    __slots__ = ("branch", "channel", "index", "item", "node", "path", "pos", "task")

    def __init__(self, task: str, index: int, channel: str, item: Item, path: str, node: str = "") -> None:
        self.task = task
        self.index = index
        self.channel = channel
        self.item = item
        self.path = path
        self.node = node
        self.branch = ""
        self.pos = 0


class Entry:
    """One checkpoint.

    ns, id, parent   `parent` is the id of the parent checkpoint, None of a first one
    name, branch, pos   of its STEP: the nodes that made it, and where it stands
    versions, seen, cells   whole; never changed, and shared with the parent where they are equal
    metadata         encoded
    more             other keys of the checkpoint, encoded; None for those that were absent
    writes           of its tasks, by (branch, task, index): a task may run once in each branch
    hidden           it is kept only for what others are rebuilt from
    """

    __slots__ = (
        "branch",
        "cells",
        "hidden",
        "id",
        "metadata",
        "more",
        "name",
        "ns",
        "parent",
        "pos",
        "seen",
        "ts",
        "updated",
        "v",
        "versions",
        "writes",
    )

    def __init__(
        self,
        ns: str,
        id: str,
        parent: str | None,
        v: int,
        ts: str | None,
        metadata: Item,
        versions: dict[str, Version],
        seen: dict[str, dict[str, Version]],
        cells: dict[str, Cell],
        updated: list[str] | None,
        more: dict[str, Item | None],
        *,
        hidden: bool = False,
    ) -> None:
        self.ns = ns
        self.id = id
        self.parent = parent
        self.v = v
        self.ts = ts
        self.metadata = metadata
        self.versions = versions
        self.seen = seen
        self.cells = cells
        self.updated = updated
        self.more = more
        self.hidden = hidden
        self.writes: dict[tuple[str, str, int], Write] = {}
        self.name = ""
        self.branch = ""
        self.pos = 0

    def add(self, write: Write, branch: str, pos: int) -> None:
        write.branch, write.pos = branch, pos
        place = branch, write.task, write.index
        if write.index < 0 or place not in self.writes:
            self.writes[place] = write


def body_of(entry: Entry, parent: Entry | None, *, of: int) -> dict[str, Value]:
    """The body of its STEP. `of`: the position by which the parent is named, 0 where it is not."""
    body: dict[str, Value] = {"id": _short(entry.id)}
    if entry.v != VERSION:
        body["v"] = entry.v
    if entry.ts is not None:
        body["ts"] = entry.ts
    if entry.parent is not None and not of:
        body["parent"] = _short(entry.parent)
        parent = None
    body["metadata"] = entry.metadata.value
    versions, seen, cells = (parent.versions, parent.seen, parent.cells) if parent is not None else ({}, {}, {})
    _add(body, "versions", {name: each for name, each in entry.versions.items() if versions.get(name) != each})
    _add(body, "unversioned", [name for name in versions if name not in entry.versions])
    _add(
        body,
        "seen",
        {node: changed for node, each in entry.seen.items() if (changed := _changed(each, seen.get(node))) is not None},
    )
    _add(body, "unseen", [node for node in seen if node not in entry.seen])
    channels: dict[str, Value] = {}
    for name, cell in entry.cells.items():
        before = cells.get(name)
        if cell is not before:
            channels[name] = _change(cell, before)
    body[CHANNELS] = channels
    _add(body, GONE, [name for name in cells if name not in entry.cells])
    if parent is None:
        body[WHOLE] = True
    if entry.updated is not None:
        body["updated"] = list(entry.updated)
    _add(body, "more", {name: None if each is None else {"value": each.value} for name, each in entry.more.items()})
    if entry.hidden:
        body["hidden"] = True
    return body


def entry_of(ns: str, body: dict[str, Any], parent: Entry | None) -> Entry:
    """The checkpoint that a STEP says, with what it shares with its parent."""
    versions, seen, cells = (parent.versions, parent.seen, parent.cells) if parent is not None else ({}, {}, {})
    above = parent.id if parent is not None else long_id(body["parent"]) if "parent" in body else None
    return Entry(
        ns,
        long_id(body["id"]),
        above,
        body.get("v", VERSION),
        body.get("ts"),
        Item(body["metadata"]),
        _without({**versions, **body.get("versions", {})}, body.get("unversioned")),
        _without(_merged(seen, body["seen"]), body.get("unseen")) if "seen" in body or "unseen" in body else seen,
        _cells(cells, body),
        body.get("updated"),
        {name: None if each is None else Item(each["value"]) for name, each in body.get("more", {}).items()},
        hidden=body.get("hidden", False),
    )


def more_of(checkpoint: dict[str, Any], codec: Any) -> dict[str, Item | None]:
    """What of a checkpoint has no place of its own; None for what all others have and this one has not."""
    more: dict[str, Item | None] = {
        name: Item(codec.dump(each, name)) for name, each in checkpoint.items() if name not in _KNOWN
    }
    if "updated_channels" not in checkpoint:
        more["updated_channels"] = None
    return more


def write_body(path: str, writes: list[Write]) -> dict[str, Value]:
    return {"path": path, "writes": [[write.index, write.channel, write.item.value] for write in writes]}


def writes_of(task: str, node: str, body: dict[str, Any]) -> list[Write]:
    return [Write(task, index, channel, Item(value), body["path"], node) for index, channel, value in body["writes"]]


def _add(body: dict[str, Value], name: str, part: Any) -> None:
    if part:
        body[name] = part


def _changed(now: dict[str, Version], before: dict[str, Version] | None) -> dict[str, Value] | None:
    if before is None:
        return dict(now)
    if now is before:
        return None
    changed: dict[str, Value] = {name: each for name, each in now.items() if before.get(name) != each}
    changed.update({name: None for name in before if name not in now})
    return changed or None


def _merged(seen: dict[str, dict[str, Version]], changed: dict[str, dict[str, Any]]) -> dict[str, dict[str, Version]]:
    merged = dict(seen)
    for node, each in changed.items():
        versions = {**merged.get(node, {}), **each}
        merged[node] = {name: version for name, version in versions.items() if version is not None}
    return merged


def _without(fields: dict[str, Any], gone: list[str] | None) -> dict[str, Any]:
    for name in gone or ():
        fields.pop(name, None)
    return fields


def _cells(cells: dict[str, Cell], body: dict[str, Any]) -> dict[str, Cell]:
    changes, gone = body.get(CHANNELS), body.get(GONE)
    if not changes and not gone:
        return cells
    made = _without(dict(cells), gone)
    for name, said in (changes or {}).items():
        made[name] = _joined(said, cells[name]) if VALUE not in said else _cell(said[VALUE])
    return made


def _cell(value: Value) -> Cell:
    return Listed(Strand([Item(each) for each in value]), len(value)) if type(value) is list else Whole(Item(value))


def _change(cell: Cell, before: Cell | None) -> dict[str, Value]:
    if isinstance(cell, Whole):
        return {VALUE: cell.item.value}
    if not isinstance(before, Listed) or not before.length:
        return {VALUE: [item.value for item in cell.items]}
    if cell.strand is before.strand:
        kept = min(cell.length, before.length)
    else:
        kept = next(
            (n for n, (one, other) in enumerate(zip(cell.items, before.items, strict=False)) if one is not other),
            min(cell.length, before.length),
        )
    return {KEEP: kept, ITEMS: [item.value for item in cell.strand.items[kept : cell.length]]}


def _joined(said: dict[str, Any], before: Cell) -> Listed:
    if not isinstance(before, Listed):
        raise ValueError("a list is told by a part of what was none")
    keep, items = said[KEEP], [Item(each) for each in said[ITEMS]]
    strand = before.strand
    if keep == before.length == len(strand.items):
        strand.items += items
        return Listed(strand, len(strand.items))
    return Listed(Strand(strand.items[:keep] + items), keep + len(items))


def _short(id: str) -> Value:
    """16 bytes for the text of a UUID as it is usually written."""
    if len(id) == 36:
        try:
            short = bytes.fromhex(id.replace("-", ""))
        except ValueError:
            return id
        if long_id(short) == id:
            return short
    return id


def long_id(id: bytes | str) -> str:
    if isinstance(id, str):
        return id
    text = id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
