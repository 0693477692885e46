"""Threads as native runs of a store: `langgraph/<thread>`, one journal for each branch of a thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep.log.address import quote, unquote
from lockstep.log.canonical import encode_ordered
from lockstep.log.checkpoints import CHANNELS, ITEMS, VALUE
from lockstep.log.model import Event, Kind, Value
from lockstep.log.placeholders import MARK
from lockstep.log.store import Store, open_store
from lockstep.session.native import Journal
from lockstep.session.native.new import versions
from lockstep_langgraph.shelves import MAIN, Book, Branch, Replaced

PREFIX = "langgraph/"
_AWAY = "rewriting-"  # what a thread is called while it is written anew
_LONGEST = 150  # characters of an id, quoted: a run's name may have 200
_SHORTENED = "%-"  # what a quoted id has nowhere
_GONE = frozenset({Code.NO_RUN, Code.NOT_A_STORE})
_NATIVE = frozenset({Kind.STEP, Kind.WRITES})


def _hidden(body: dict[str, Value], journal: Journal) -> dict[str, Value]:
    """A checkpoint's record with its secrets hidden: where the program's own words stand, each value under the name of
    its channel, which may say that it is one."""
    changes: dict[str, Any] = body.get(CHANNELS, {})  # type: ignore[assignment]
    values = {name: said[VALUE] if VALUE in said else said[ITEMS] for name, said in changes.items()}
    told: dict[str, Value] = {"metadata": body["metadata"], CHANNELS: values, "more": body.get("more")}
    hidden: Any = journal.hide(told)
    if hidden is told:
        return body
    new = {**body, "metadata": hidden["metadata"]}
    if changes:
        new[CHANNELS] = {
            name: {**said, VALUE if VALUE in said else ITEMS: value}
            for (name, said), value in zip(changes.items(), hidden[CHANNELS].values(), strict=True)
        }
    return {**new, "more": hidden["more"]} if "more" in body else new


def _hidden_writes(body: Any, journal: Journal) -> Value:
    """The record of a task's writes, likewise."""
    changed = False
    writes: list[Value] = []
    for index, channel, value in body["writes"]:
        told = {channel: value}
        hidden: Any = journal.hide(told)
        changed = changed or hidden is not told
        writes.append([index, channel, *hidden.values()])
    return {**body, "writes": writes} if changed else body


class StoredBook:
    """A thread's run."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journals = {MAIN: journal}
        self._branches: dict[str, Branch] = {}
        self._known: dict[str, int] = {}  # by branch: the last position that was read, or written with nobody between
        self._lengths: dict[str, int] = {}  # by branch: its events when it was read last
        self._own: set[tuple[str, int]] = set()  # branch and position of what this book wrote, beyond that
        self._stale = True

    def step(self, branch: str, lane: str, name: str, source: str, body: dict[str, Value], key: bytes, of: int) -> int:
        journal = self.journal(branch)
        return self._wrote(branch, journal, journal.step(lane, name, source, _hidden(body, journal), key, of))

    def writes(self, branch: str, lane: str, node: str, task: str, of: int, body: Value) -> int:
        journal = self.journal(branch)
        return self._wrote(branch, journal, journal.writes(lane, node, task, of, _hidden_writes(body, journal)))

    def fork(self, name: str, parent: str, pos: int, *, latest: bool = True) -> Branch:
        made = self.journal(parent).fork(name, pos, latest=latest)
        self._journals[made.branch] = made
        branch = self._branches[made.branch] = Branch(made.branch, parent, pos, latest)
        self._known[branch.name] = pos
        return branch

    def adopt(self, journal: Journal) -> None:
        """Writes a branch through a journal that is open already: two would store what they are told in any order."""
        self._journals[journal.branch] = journal

    def news(self) -> tuple[list[Branch], Iterator[tuple[str, Event]]] | None:
        journal = self._journals[MAIN]
        if not journal.changed() and not self._stale:
            return None
        self._stale = False
        try:
            reader = journal.reader()
        except StoreError as error:
            raise (Replaced() if error.code in _GONE else error) from None
        meta: Any = reader.meta
        # Numbers of runs are used again; a vault is one run's.
        known = {each.name for each in reader.branches}
        if meta.get("vault") != journal.meta.get("vault") or not self._branches.keys() <= known:
            raise Replaced
        new: list[Branch] = []
        events: list[tuple[str, Event]] = []
        for info in reader.branches:
            length = sum(stream.events for stream in info.streams)
            if self._lengths.get(info.name) == length:
                continue
            self._lengths[info.name] = length
            on = reader if info.name == MAIN else reader.on(info.name)
            if info.name not in self._branches:
                fork = on.fork
                told: Any = fork.body if fork is not None else None
                branch = Branch(
                    info.name, info.parent, info.pos, not isinstance(told, dict) or told.get("latest") is not False
                )
                self._branches[info.name] = branch
                self._known.setdefault(info.name, info.pos)
                new.append(branch)
            events += self._read(info.name, on, journal)
        return new, iter(events)

    @property
    def faults(self) -> list[str]:
        return [fault for journal in self._journals.values() for fault in journal.faults]

    @property
    def start(self) -> int:
        return 2  # of START

    def busy(self, branch: str) -> bool:
        return self.journal(branch).is_turn_held

    def reserve(self, branch: str) -> bool:
        return self.journal(branch).reserve_turn()

    def give_up(self, branch: str) -> None:
        self.journal(branch).give_up_turn()

    def journal(self, branch: str) -> Journal:
        found = self._journals.get(branch)
        if found is None:
            main = self._journals[MAIN]
            found = self._journals[branch] = Journal.open(
                self._store, main.run, main.meta, branch=branch, secrets=main.secrets
            )
        return found

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()

    def _wrote(self, branch: str, journal: Journal, pos: int) -> int:
        if self._stale or journal.changed():
            self._stale = True
            self._own.add((branch, pos))
        else:
            self._known[branch] = pos
        return pos

    def _read(self, branch: str, reader: Any, journal: Journal) -> Iterator[tuple[str, Event]]:
        stream = reader.main
        last = known = self._known[branch]
        for number, event in reader.heads(stream, known):
            last = event.pos
            if event.kind not in _NATIVE:
                continue
            if (branch, event.pos) in self._own:
                self._own.discard((branch, event.pos))
                continue
            body = reader.body(stream, number)
            yield branch, msgspec.structs.replace(event, body=journal.reveal(body) if _may_hide(body) else body)
        self._known[branch] = last


class StoredShelf:
    """The threads of a store."""

    def __init__(self, store: str | os.PathLike[str] | None = None) -> None:
        self._store: Store | None = None
        self._given = store

    def open(self, thread: str, *, create: bool) -> StoredBook | None:
        name = _name(thread)
        if not create and (not self._exists() or not self._opened().has_run(name)):
            return None
        store = self._opened()
        return StoredBook(store, Journal.open(store, name, _meta(thread)))

    def threads(self) -> list[str]:
        if not self._exists():
            return []
        return [self._thread(name) for name in self._opened().names() if name.startswith(PREFIX)]

    def drop(self, thread: str) -> None:
        if self._exists() and self._opened().has_run(_name(thread)):
            self._opened().delete_run(_name(thread))

    def rewrite(self, thread: str, write: Callable[[Book], None]) -> None:
        name = _name(thread)
        away = f"{_AWAY}{name}-{untapped.urandom(4).hex()}"
        store = self._opened()
        book = StoredBook(store, Journal.open(store, away, {**_meta(thread), "run": name}))
        try:
            book.news()
            try:
                write(book)
            finally:
                book.close()
            if not store.has_run(name):
                store.open_shared(name, _meta(thread)).close()
            store.replace_run(name, away)
        except BaseException:
            store.delete_run(away)
            raise

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def forked(self) -> object:
        store, self._store = self._store, None
        return store

    def _thread(self, name: str) -> str:
        if _SHORTENED not in name:
            return unquote(name[len(PREFIX) :])
        meta: Any = self._opened().run(name).meta
        return str(meta["native"]["thread"])

    def _exists(self) -> bool:
        """Whether there is a store to read. Reading never makes one."""
        if self._store is not None:
            return True
        try:
            self._store = open_store(self._given)
        except StoreError as error:
            if error.code is not Code.NOT_A_STORE:
                raise
            return False
        return True

    def _opened(self) -> Store:
        if self._store is None:
            self._store = open_store(self._given, create=True)
        return self._store


def _may_hide(body: Value) -> bool:
    """Whether a placeholder may stand in it. A thread is read whole, and few of its records have any: encoding one
    takes a tenth of a walk through it."""
    try:
        return MARK in encode_ordered(body)
    except (OverflowError, UnicodeEncodeError):
        return True


def _name(thread: str) -> str:
    """The run's name. One that would be too long, or could not be printed, ends in a digest of the id, which the run's
    meta has in full."""
    name = quote(thread)
    if len(name) <= _LONGEST and name.isprintable():
        return PREFIX + name
    digest = blake2b(thread.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{PREFIX}{''.join(filter(str.isprintable, name))[:60]}{_SHORTENED}{digest}"


def _meta(thread: str) -> dict[str, Value]:
    known = versions("langgraph", "langgraph-checkpoint", "langchain-core")
    return {"adapter": "langgraph", "native": {"thread": thread}, "versions": dict(known)}
