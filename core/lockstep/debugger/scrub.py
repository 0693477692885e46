"""Takes personal data, and credentials that nothing had recognised before, out of a run.

What it finds becomes a placeholder, the same one for the same text wherever it stands. The scrubbed run is a
new record with a chain of its own, which says in its meta that it was scrubbed: it is for reading and passing
on. A replay needs what was taken out of it, so that is done with the run it was made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import batched
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code, StoreError, TargetError
from lockstep.log import personal, placeholders, roll
from lockstep.log.address import MAIN
from lockstep.log.hiding import Hiding
from lockstep.log.meta import SCRUBBED
from lockstep.log.model import Event, Kind, RunState, Value
from lockstep.log.names import Judge, Rules
from lockstep.log.placeholders import Placeholder
from lockstep.log.redact import Hit
from lockstep.log.sqlite.store import SqliteStore
from lockstep.log.store import RunReader, Store, open_store
from lockstep.log.timeline import branch_of

_BATCH = 256
_NUMBERS = "values"  # of a READS event: packed numbers, no text


class Finding(msgspec.Struct, frozen=True):
    """One thing that is still there: of what kind, where (an event's position, 0 for the run's meta), how often.
    `process`: with the branch, as in `main@try-2`, where that is not main. `seen` is its beginning, enough to recognise
    it."""

    kind: str
    process: str
    pos: int
    what: str
    count: int
    seen: str


class Checked(msgspec.Struct, frozen=True):
    """What a scan of all that is stored of a run found."""

    run: str
    clean: bool
    found: tuple[Finding, ...]


class Scrubbed(msgspec.Struct, frozen=True):
    """The new run, and how often each kind was taken out. `branches`: the new run's, which are scrubbed with it."""

    run: str
    scrubbed: str
    events: int
    replaced: dict[str, int]
    branches: tuple[str, ...] = (MAIN,)


class Scrubber:
    """Scrubs the events of one run, with one placeholder for one text.

    own    a project's rules for personal data, by name
    seen   told of everything that is found
    """

    def __init__(self, rules: Rules, own: Mapping[str, re.Pattern[bytes]], seen: Callable[[bytes, str], None]) -> None:
        self._own = own
        self._seen = seen
        self._names: dict[bytes, bytes] = {}
        self._counts: dict[str, int] = {}
        self._hiding = Hiding(Judge(rules), self._stand, self._known, stored=True)

    def event(self, event: Event) -> Event:
        """The event as it is in the scrubbed run: names, texts and values, never its place and times."""
        body = event.body
        if not (event.kind is Kind.READS and isinstance(body, dict) and _NUMBERS in body):
            body = self.value(body)
        name, what = self.value(event.name), self.value(event.what)
        if body is event.body and name is event.name and what is event.what:
            return event
        return msgspec.structs.replace(event, body=body, name=str(name), what=str(what))

    def value(self, value: Value) -> Value:
        """A value without personal data and credentials."""
        return self._hiding.value(value)

    def _stand(self, text: bytes, kind: str) -> bytes:
        self._seen(text, kind)
        found = self._names.get(text)
        if found is None:
            label = f"scrubbed-{placeholders.label(kind)}"
            number = self._counts[label] = self._counts.get(label, 0) + 1
            found = self._names[text] = Placeholder(f"{label}-{number}").text()
        return found

    def _known(self, data: bytes, partial: bool) -> Iterator[Hit]:
        return personal.find(data, self._own)


def check(store: str, run: str, rules: Rules = Rules(), own: Mapping[str, str] | None = None) -> Checked:  # noqa: B008
    """Scans everything that is stored of a run: meta, names, requests, answers, output, states, the end.

    Raises StoreError, and TargetError LS402 for a rule that is no regular expression.
    """
    counts: dict[tuple[str, str, int, str, bytes], int] = {}
    at: tuple[str, int, str] = ("", 0, "meta")

    def seen(text: bytes, kind: str) -> None:
        where = (kind, *at, text)
        counts[where] = counts.get(where, 0) + 1

    scrubber = Scrubber(rules, _compiled(own), seen)
    with open_store(store) as opened:
        reader = _whole(opened, run)
        scrubber.value(_told(reader.meta))
        for branch in reader.branches:
            for stream in branch.streams:
                process = stream.process if branch.name == MAIN else f"{stream.process}@{branch.name}"
                for event in reader.stored.events(stream.id):
                    at = (process, event.pos, event.kind.name.lower())
                    scrubber.event(event)
    found = tuple(
        Finding(kind, process, pos, what, count, _beginning(text))
        for (kind, process, pos, what, text), count in counts.items()
    )
    return Checked(run, not found, found)


def scrub(store: str, run: str, rules: Rules = Rules(), own: Mapping[str, str] | None = None) -> Scrubbed:  # noqa: B008
    """Writes `RUN-scrubbed` beside a run, with all its branches. Raises StoreError and TargetError as `check`."""
    replaced: dict[str, int] = {}

    def seen(text: bytes, kind: str) -> None:
        replaced[kind] = replaced.get(kind, 0) + 1

    scrubber = Scrubber(rules, _compiled(own), seen)
    with open_store(store) as opened:
        reader = _whole(opened, run)
        if any(branch.state is RunState.GROWING for branch in reader.branches):
            raise StoreError(Code.UNWRITABLE, f"run {run} is still being written: scrub it when it has ended")
        if not isinstance(opened, SqliteStore):
            raise TypeError("runs are scrubbed in files only")
        return _write(opened, reader, scrubber, replaced)


def _whole(store: Store, run: str) -> RunReader:
    """The run of that name; a branch of one is scrubbed with it."""
    reader = branch_of(store, run)
    if reader.branch != MAIN:
        name = reader.info.name
        raise AddressError(Code.NO_ADDRESS, f"a run is scrubbed with all its branches, so name the run: {name}")
    return reader


def _write(store: SqliteStore, reader: RunReader, scrubber: Scrubber, replaced: dict[str, int]) -> Scrubbed:
    meta: Any = scrubber.value(_told(reader.meta))
    meta = {**(reader.meta if isinstance(reader.meta, dict) else {}), **meta, SCRUBBED: reader.info.name}
    meta.pop("vault", None)
    new = store.create_run(f"{reader.info.name}-scrubbed", meta, started=reader.info.started).name
    events = 0
    try:
        # In the order in which they were made, so a parent is there when its branches come.
        for branch in sorted(reader.branches, key=lambda each: each.id):
            if branch.parent:
                store.create_branch(new, branch.name, branch.parent, branch.pos)
            # The supervisor's stream last: its end has what the others have come to.
            for stream in sorted(branch.streams, key=lambda each: each.process == roll.LAUNCH):
                end = reader.end(stream.id)
                appender = store.stream(new, stream.process, branch=branch.name)
                for batch in batched(map(scrubber.event, reader.stored.events(stream.id)), _BATCH):
                    appender.append([_called(event, store, new, branch.name) for event in batch])
                    events += len(batch)
                appender.close(None if end.state is RunState.GROWING else end.state, end.faults)
    except BaseException:
        store.delete_run(new)
        raise
    return Scrubbed(reader.info.name, new, events, replaced, tuple(branch.name for branch in reader.branches))


def _called(event: Event, store: SqliteStore, run: str, branch: str) -> Event:
    """An event that has the roll of the branch's streams gets that of the new ones."""
    if event.kind is not Kind.FINISH or not isinstance(event.body, dict) or roll.STREAMS not in event.body:
        return event
    whole = roll.call(store.run(run, branch))
    entries = whole if isinstance(whole, list) else []
    called = [entry for entry in entries if isinstance(entry, list) and entry[0] != roll.LAUNCH]
    return msgspec.structs.replace(event, body={**event.body, roll.STREAMS: called})


def _told(meta: Value) -> Value:
    """What of a run's meta is text of somebody's; ids and seeds are ours."""
    if not isinstance(meta, dict):
        return meta
    return {name: value for name, value in meta.items() if name not in ("seed", "vault", "started")}


def _compiled(own: Mapping[str, str] | None) -> dict[str, re.Pattern[bytes]]:
    found = {}
    for name, text in (own or {}).items():
        try:
            found[name] = re.compile(text.encode())
        except re.error as error:
            raise TargetError(Code.BAD_TARGET, f"the rule {name} in [tool.lockstep.scrub] is wrong: {error}") from None
    return found


def _beginning(text: bytes) -> str:
    shown = text[: min(4, len(text) // 3)].decode("utf-8", "replace")
    return f"{shown}… ({len(text)} bytes)"
