"""Threads that are pruned, copied or lose the checkpoints of some runs: written anew, and put in the old one's place.

What is stored is never changed in place: a thread is as it was until all of the new one is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from lockstep_langgraph import history, lanes
from lockstep_langgraph.entries import Entry, Write, body_of, write_body
from lockstep_langgraph.held import Threads
from lockstep_langgraph.shelves import MAIN, Book, Branch, Shelf
from lockstep_langgraph.threads import Thread, state_key


def copy(threads: Threads, source: str, target: str) -> None:
    """Adds nothing to a target that exists: it becomes what the source is."""
    if source == target:
        return
    # Both locks, in one order whichever way a thread is copied.
    with threads.using(min(source, target)) as one, threads.using(max(source, target)) as other:
        thread = one if source < target else other
        if thread is not None:
            copied = thread
            threads.rewrite(target, lambda book: _write(copied, copied.all(), book))


def into(thread: Thread, shelf: Shelf, target: str) -> None:
    """Makes another thread of what a thread is seen to be: checkpoints with their ids, and the writes on them."""
    shelf.rewrite(target, lambda book: _write(thread, thread.all(), book))


def prune(threads: Threads, ids: Iterable[str], strategy: str) -> None:
    for id in ids:
        if strategy == "delete":
            threads.drop(id)
            continue
        with threads.using(id) as thread:
            if thread is not None:
                latest = [entry for ns in thread.spaces() if (entry := thread.newest(ns)) is not None]
                _keep(threads, thread, latest)


def delete_runs(threads: Threads, runs: Collection[str]) -> None:
    """Removes what runs made: those whose id is `run_id` in the metadata of a checkpoint."""
    for id in threads.ids():
        with threads.using(id) as thread:
            if thread is None:
                continue
            left = [entry for entry in thread.all() if not entry.hidden and _run(entry) not in runs]
            if len(left) < sum(not entry.hidden for entry in thread.all()):
                _keep(threads, thread, left)


def _run(entry: Entry) -> Any:
    metadata: Any = entry.metadata.value
    return metadata.get("run_id") if isinstance(metadata, dict) else None


def _keep(threads: Threads, thread: Thread, kept: list[Entry]) -> None:
    if not kept:
        threads.drop(thread.id)
        return
    hidden = {(entry.ns, id) for entry in kept for id, entry in history.needed(thread, [entry]).items()}
    shown = {(entry.ns, entry.id) for entry in kept}
    entries = [entry for entry in thread.all() if (entry.ns, entry.id) in shown or (entry.ns, entry.id) in hidden]
    threads.rewrite(thread.id, lambda book: _write(thread, entries, book, shown))


def _write(thread: Thread, entries: list[Entry], book: Book, shown: Collection[tuple[str, str]] | None = None) -> None:
    """Stores the entries in an empty book, in branches as they were: all of a branch, then those that leave it."""
    places: dict[tuple[str, int], int] = {}  # new positions, by old branch and position
    names: dict[str, str] = {}
    for branch in thread.branches.values():
        own: list[tuple[int, Entry, list[Write]]] = [
            (entry.pos, entry, []) for entry in entries if entry.branch == branch.name
        ]
        for entry in entries:
            own += [(pos, entry, writes) for pos, writes in _writes_in(entry, branch.name).items()]
        if branch.parent and not own:
            continue
        names[branch.name] = _branch(branch, thread, places, names, book)
        for old, entry, writes in sorted(own, key=lambda each: each[0]):
            if writes:
                pos = _write_writes(entry, writes, names[branch.name], places, book)
            else:
                pos = _write_step(thread, entry, names[branch.name], places, book, shown)
            places[branch.name, old] = pos


def _writes_in(entry: Entry, branch: str) -> dict[int, list[Write]]:
    found: dict[int, list[Write]] = {}
    for write in entry.writes.values():
        if write.branch == branch:
            found.setdefault(write.pos, []).append(write)
    return found


def _branch(
    branch: Branch, thread: Thread, places: dict[tuple[str, int], int], names: dict[str, str], book: Book
) -> str:
    """The new branch, which leaves after the last of what is kept and was before it."""
    if not branch.parent:
        return branch.name
    line = thread.line(branch.name)
    shared = [(name, pos) for name, pos in places if pos <= line.get(name, 0)]
    last = shared[-1] if shared else None
    parent, pos = (names[last[0]], places[last]) if last is not None else (MAIN, book.start)
    return book.fork(branch.name, parent, pos, latest=branch.latest).name


def _write_step(
    thread: Thread,
    entry: Entry,
    branch: str,
    places: dict[tuple[str, int], int],
    book: Book,
    shown: Collection[tuple[str, str]] | None,
) -> int:
    parent = thread.kept(entry.ns, entry.parent)
    of = 0
    if parent is not None and thread.sees(parent, entry.branch):
        of = places.get((parent.branch, parent.pos), 0)
    body = body_of(entry, parent if of else None, of=of)
    if entry.ns and not of:
        body["ns"] = entry.ns
    if shown is not None and (entry.ns, entry.id) not in shown:
        body["hidden"] = True
    metadata: Any = entry.metadata.value
    source = str(metadata.get("source", "loop")) if isinstance(metadata, dict) else "loop"
    return book.step(branch, lanes.of_namespace(entry.ns), entry.name, source, body, state_key(entry), of)


def _write_writes(
    entry: Entry, writes: list[Write], branch: str, places: dict[tuple[str, int], int], book: Book
) -> int:
    first = writes[0]
    lane = lanes.of_task(entry.ns, first.task, first.path)
    of = places[entry.branch, entry.pos]
    return book.writes(branch, lane, first.node, first.task, of, write_body(first.path, writes))
