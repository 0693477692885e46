"""One thread: its index of checkpoints, kept in step with its log, and what a put or a write does to both.

The log decides: an entry is in the index when it is durable, and what other processes have stored is read before each
question. Branches of the log follow from the parents: a checkpoint whose parent is not the head of a branch makes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from lockstep.errors import LockstepError
from lockstep.log import untapped
from lockstep.log.model import Event, Kind
from lockstep_langgraph import lanes
from lockstep_langgraph.cells import Cell, Codec, Item, Listed, cell_of
from lockstep_langgraph.entries import (
    Entry,
    Version,
    Write,
    body_of,
    entry_of,
    more_of,
    write_body,
    writes_of,
)
from lockstep_langgraph.shelves import MAIN, Book, Branch

_TASKS = "__pregel_tasks"


class Put(msgspec.Struct, frozen=True):
    """What `put` was given, as far as it is kept."""

    ns: str
    parent: str | None
    branch: str | None  # that was asked for by name
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    new_versions: Mapping[str, Version]


class Thread:
    """A thread in memory. All of it is used under `lock`."""

    def __init__(self, id: str, book: Book) -> None:
        self.id = id
        self.book = book
        self.lock = untapped.RLock()
        self.branches: dict[str, Branch] = {}
        self.failed: LockstepError | None = None  # what a put or a write failed with, until the thread is read again
        self.closed = False
        self.addressed: set[tuple[str, str]] = set()  # checkpoints that were asked for by their id
        self._spaces: dict[str, dict[str, Entry]] = {}  # by namespace, then by id
        self._sorted: dict[str, list[str]] = {}  # ids of a namespace, greatest last; made when it is asked for
        self._heads: dict[tuple[str, str], Entry] = {}  # by branch and namespace: the last of its own
        self._places: dict[tuple[str, int], Entry] = {}  # by branch and position
        self._early: dict[tuple[str, str], list[tuple[str, list[Write]]]] = {}
        self.weight = 0

    # Reading

    def refresh(self) -> None:
        """Takes in what other processes have stored."""
        news = self.book.news()
        if news is None:
            return
        branches, events = news
        for branch in branches:
            self.branches.setdefault(branch.name, branch)
        for name, event in events:
            self._take(name, event)

    def find(self, ns: str, id: str) -> Entry | None:
        found = self._spaces.get(ns, {}).get(id)
        return None if found is None or found.hidden else found

    def kept(self, ns: str, id: str | None) -> Entry | None:
        """As `find`, also one that is kept only for what others are rebuilt from."""
        return self._spaces.get(ns, {}).get(id) if id is not None else None

    def spaces(self) -> list[str]:
        return list(self._spaces)

    def newest(self, ns: str, branch: str | None = None) -> Entry | None:
        """The latest checkpoint: of the branch, or of all that can be the latest."""
        return next(self.ordered(ns, branch), None)

    def ordered(self, ns: str, branch: str | None = None, before: str | None = None) -> Iterator[Entry]:
        """Checkpoints of a namespace, that of the greatest id first."""
        space = self._spaces.get(ns, {})
        ids = self._sorted.get(ns)
        if ids is None:
            ids = self._sorted[ns] = sorted(space)
        line = self.line(branch) if branch is not None else None
        for id in reversed(ids):
            if before is not None and id >= before:
                continue
            entry = space[id]
            if not entry.hidden and self._has(entry.branch, entry.pos, line):
                yield entry

    def all(self) -> list[Entry]:
        """Branch by branch, in the order of the log, hidden ones too."""
        places = {name: place for place, name in enumerate(self.branches)}
        entries = [entry for space in self._spaces.values() for entry in space.values()]
        return sorted(entries, key=lambda entry: (places[entry.branch], entry.pos))

    def writes(self, entry: Entry, branch: str | None = None) -> list[Write]:
        """Those of its tasks in the order in which a superstep applies them, as far as the branch has them. Without
        one, of all branches that can be the latest, as a saver without branches has them."""
        if branch is None and not self.branches[entry.branch].latest:
            branch = entry.branch
        line = self.line(branch) if branch is not None else None
        chosen: dict[tuple[str, int], Write] = {}
        for write in entry.writes.values():
            if self._has(write.branch, write.pos, line):
                place = write.task, write.index
                if write.index < 0 or place not in chosen:
                    chosen[place] = write
        return sorted(chosen.values(), key=lambda each: (each.path, each.task, each.index))

    def end_of(self, entry: Entry, named: str | None) -> str | None:
        """The branch that goes on from this checkpoint without leaving another. `named`: the one that was asked for."""
        if named is not None and named in self.branches:
            return named if self.newest(entry.ns, named) is entry else None
        return entry.branch if self.is_head(entry) else None

    def is_head(self, entry: Entry) -> bool:
        return self._heads.get((entry.branch, entry.ns)) is entry

    def _has(self, branch: str, pos: int, line: dict[str, int] | None) -> bool:
        if line is None:
            return self.branches[branch].latest
        return pos <= line.get(branch, 0)

    def line(self, branch: str) -> dict[str, int]:
        """The branches that one consists of, with the position up to which it has each."""
        line: dict[str, int] = {}
        upto = 1 << 62
        found = self.branches.get(branch)
        while found is not None:
            line[found.name] = upto
            upto = min(upto, found.pos)
            found = self.branches.get(found.parent) if found.parent else None
        return line

    @property
    def waiting(self) -> bool:
        """Whether it holds what is not in the log: writes whose checkpoint is still to come."""
        return bool(self._early)

    # Writing

    def put(self, put: Put, branch: str, codec: Codec, *, paranoid: bool = False) -> Entry:
        """Stores a checkpoint in a branch. Raises what the codec or the log raise, with nothing changed."""
        parent = self.kept(put.ns, put.parent)
        tails = [
            (cell.strand, len(cell.strand.items))
            for cell in (parent.cells.values() if parent else ())
            if isinstance(cell, Listed)
        ]
        try:
            entry = self._made(put, parent, codec, paranoid)
            at = parent is not None and self.sees(parent, branch)
            of = parent.pos if parent is not None and at else 0
            body = body_of(entry, parent if of else None, of=of)
            source = str(put.metadata.get("source", "loop"))
            lane = lanes.of_namespace(put.ns)
            if put.ns and not of:
                body["ns"] = put.ns
            entry.name = self._makers(entry, parent, source, codec)
            pos = self.book.step(branch, lane, entry.name, source, body, state_key(entry), of)
        except BaseException:
            for strand, length in tails:
                strand.cut(length)
            raise
        self._add(entry, branch, pos)
        for task, writes in self._early.pop((entry.ns, entry.id), ()):
            self._log_writes(entry, branch, task, writes)
        return entry

    def write(
        self,
        ns: str,
        id: str,
        writes: Sequence[tuple[str, Any]],
        places: Mapping[str, int],
        task: str,
        path: str,
        branch: str | None,
        codec: Codec,
    ) -> None:
        """Stores writes of a task of a checkpoint. Those of one that is not stored yet wait for it."""
        entry = self.kept(ns, id)
        branch = branch or (entry.branch if entry is not None else MAIN)
        known = {(each.task, each.index) for each in self.writes(entry, branch)} if entry is not None else set()
        node = node_of(task, path)
        new: dict[int, Write] = {}
        for n, (channel, value) in enumerate(writes):
            index = places.get(channel, n)
            if index >= 0 and ((task, index) in known or index in new):
                continue
            new[index] = Write(task, index, channel, Item(codec.dump(value, channel)), path, node)
        if not new:
            return
        if entry is None:
            self._early.setdefault((ns, id), []).append((task, list(new.values())))
        else:
            self._log_writes(entry, branch, task, list(new.values()))

    def fork(self, name: str, parent: str, pos: int) -> str:
        branch = self.book.fork(name, parent, pos)
        self.branches[branch.name] = branch
        return branch.name

    def _log_writes(self, entry: Entry, branch: str, task: str, writes: list[Write]) -> None:
        path = writes[0].path
        if not self.sees(entry, branch):
            branch = entry.branch
        lane = lanes.of_task(entry.ns, task, path)
        pos = self.book.writes(branch, lane, writes[0].node, task, entry.pos, write_body(path, writes))
        for write in writes:
            entry.add(write, branch, pos)
        self.weight += len(writes)

    def _made(self, put: Put, parent: Entry | None, codec: Codec, paranoid: bool) -> Entry:
        checkpoint = put.checkpoint
        values = checkpoint["channel_values"]
        versions: dict[str, Version] = dict(checkpoint["channel_versions"])
        cells: dict[str, Cell] = {}
        above = parent.cells if parent is not None else {}
        before = parent.versions if parent is not None else {}
        for name, version in versions.items():
            if name in put.new_versions:
                if name in values:
                    cells[name] = cell_of(values[name], above.get(name), codec, name, paranoid=paranoid)
            elif before.get(name) == version:
                if name in above:
                    cells[name] = above[name]
            elif name in values:
                # A copy of a checkpoint hangs under that one's parent, with the versions of what it copies.
                cells[name] = cell_of(values[name], above.get(name), codec, name, paranoid=paranoid)
        seen = {
            node: parent.seen[node] if parent is not None and parent.seen.get(node) == each else dict(each)
            for node, each in checkpoint["versions_seen"].items()
        }
        updated = checkpoint.get("updated_channels")
        return Entry(
            put.ns,
            checkpoint["id"],
            put.parent,
            checkpoint["v"],
            checkpoint.get("ts"),
            Item(codec.dump_plain(dict(put.metadata), "metadata")),
            before if versions == before else versions,
            seen,
            above if parent is not None and cells == above else cells,
            list(updated) if updated is not None else None,
            more_of(dict(checkpoint), codec),
        )

    def _makers(self, entry: Entry, parent: Entry | None, source: str, codec: Codec) -> str:
        """The names of the nodes that made it, else where it comes from."""
        if source != "loop":
            return source
        before = parent.seen if parent is not None else {}
        names = {node for node, each in entry.seen.items() if before.get(node) != each and not node.startswith("__")}
        sent = parent.cells.get(_TASKS) if parent is not None else None
        for send in sent.make(codec) if sent is not None else ():
            node = getattr(send, "node", None)
            if isinstance(node, str):
                names.add(node)
        return ", ".join(sorted(names)) or "input"

    def sees(self, entry: Entry, branch: str) -> bool:
        """Whether a checkpoint is one of a branch's, own or shared."""
        if entry.branch == branch:
            return True
        return entry.pos <= self.line(branch).get(entry.branch, 0)

    def _take(self, branch: str, event: Event) -> None:
        body: Any = event.body
        if event.kind is Kind.STEP:
            parent = self._at(branch, event.of)
            entry = entry_of(_space(body, parent), body, parent)
            entry.name = event.name
            self._add(entry, branch, event.pos)
        else:
            found = self._at(branch, event.of)
            if found is None:
                return
            for write in writes_of(event.what, event.name, body):
                found.add(write, branch, event.pos)
                self.weight += 1

    def _at(self, branch: str, pos: int) -> Entry | None:
        """The entry at a position that a branch sees."""
        if not pos:
            return None
        found = self.branches[branch]
        while found.parent and pos <= found.pos:
            found = self.branches[found.parent]
        return self._places.get((found.name, pos))

    def _add(self, entry: Entry, branch: str, pos: int) -> None:
        entry.branch, entry.pos = branch, pos
        space = self._spaces.setdefault(entry.ns, {})
        ids = self._sorted.get(entry.ns)
        old = space.get(entry.id)
        if old is not None:
            entry.writes = old.writes
        elif ids is not None:
            if not ids or entry.id > ids[-1]:
                ids.append(entry.id)
            else:
                del self._sorted[entry.ns]
        space[entry.id] = entry
        self._places[branch, pos] = entry
        self._heads[branch, entry.ns] = entry
        self.weight += 4


def _space(body: Mapping[str, Any], parent: Entry | None) -> str:
    return str(body["ns"]) if "ns" in body else parent.ns if parent is not None else ""


def node_of(task: str, path: str) -> str:
    """The node of a task, or the function of a `@task`; "" where that is not known."""
    found = lanes.task(task)
    if found is not None:
        return found.node
    parts = path.lstrip("~").split(", ")
    return parts[1] if len(parts) > 1 and not parts[1].isdigit() else ""


def state_key(entry: Entry) -> bytes:
    """The identity of its state."""
    hashed = blake2b(digest_size=16)
    for name in sorted(entry.cells):
        hashed.update(name.encode("utf-8", "surrogatepass") + b"\0" + entry.cells[name].digest)
    return hashed.digest()
