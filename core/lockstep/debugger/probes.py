"""The probes of a bisect: branches of the run, each made once.

A probe's branch is called `bisect-CUT-DIGEST`. The digest is over all that decides how it goes: the branch and cut that
it leaves, the answers it is given, what may run live, the program. So a later bisect, or one that goes on after an
interruption, finds the probe again by its name, and one of a changed program does not. A probe that is repeated is
another branch each time: its number among those of the cut is part of the digest.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import count
from types import CodeType
from typing import Any

import msgspec

from lockstep.debugger import predicate as predicates
from lockstep.debugger import unchanged
from lockstep.debugger.branches import lived
from lockstep.debugger.cuts import Cut
from lockstep.debugger.predicate import Predicate
from lockstep.debugger.unchanged import Alike
from lockstep.debugger.verdict import Probe
from lockstep.debugger.view import Plain, View, view
from lockstep.errors import Code
from lockstep.log import canonical
from lockstep.log.model import BranchInfo, Kind, RunState, Value
from lockstep.log.roll import LAUNCH
from lockstep.log.steps import is_native
from lockstep.log.store import RunReader, Store

PREFIX = "bisect-"
REUSED = "reused"
_DIGITS = 8
_GAPS = 32  # probes that may be missing among those of a cut: they were under way when a search was stopped
_MOST_ENTRIES = 50_000  # of directories that are looked through
_LARGEST = 1 << 20  # of a file named in a command, beyond which its time and size stand for it
_NO_CODE = frozenset({"node_modules", "site-packages", "__pycache__"})


class Made(msgspec.Struct, frozen=True):
    """A probe that was run. `live`: calls that really happened. `refused`: calls that were not allowed, each with what
    would let it run. `difference`: where its served part was another one, "" if it was not."""

    branch: str
    live: int
    refused: tuple[str, ...] = ()
    difference: str = ""
    seconds: float = 0.0


# Runs a probe under a branch name, anew.
type Runner = Callable[[Cut, str], Made]


class Series:
    """The probes of one run with the same options.

    options     what decides, beside the cut, how a probe goes
    again       branches that are not taken for probes that were made before; True: all that there are now
    supervised  whether somebody writes down how each program ended, once it has
    """

    def __init__(
        self, store: Store, run: str, path: str, parent: str, options: dict[str, Value], *,
        again: bool | Collection[str] = False, alike: Alike | None = None,
        plain: Plain | None = None, supervised: bool = False,
    ) -> None:  # fmt: skip
        self._supervised = supervised
        self.store = store
        self.run = run
        self._path = path
        self._parent = parent
        self._options = options
        if isinstance(again, bool):
            again = [branch.name for branch in store.run(run).branches] if again else ()
        self._ignored = frozenset(again)
        self._alike = alike
        self._plain = plain
        self._made: set[str] = set()
        self._turns: dict[str, set[int]] = {}

    def turn(self, cut: Cut) -> int:
        """Which probe of the cut the next one is, from 1: the first that is not taken."""
        taken = self._turns.get(self.name(cut), ())
        return next(nth for nth in count(1) if nth not in taken)

    def take(self, cut: Cut, nth: int) -> None:
        """From now on the cut's nth probe is one of this bisect."""
        self._turns.setdefault(self.name(cut), set()).add(nth)

    def kept(self, cut: Cut) -> tuple[int, str] | None:
        """The first probe of the cut that was run before and is not taken: which one it is, and its branch. Where
        several were under way when a search was stopped, one may be there and those before it not."""
        taken = self._turns.get(self.name(cut), set())
        branches = self.store.run(self.run).branches
        there = sum(branch.name.startswith(f"{PREFIX}{cut.name}-") for branch in branches)
        for nth in range(1, there + len(taken) + _GAPS) if there else ():
            if nth not in taken and (branch := self.before(cut, nth, branches)) is not None:
                return nth, branch
        return None

    def drop(self, cut: Cut, nth: int) -> int:
        """Removes what is left of a probe that was ended, whose number is free again. Returns how many calls had
        happened in it."""
        self._turns.get(self.name(cut), set()).discard(nth)
        calls = 0
        for branch in self._named(self.name(cut, nth), self.store.run(self.run).branches):
            if branch.name not in self._made and is_cut_off(self.store, self.run, branch, self._path, self._supervised):
                calls += lived(self.store.run(self.run, branch.name))
                self.store.delete_branch(self.run, branch.name)
        return calls

    def name(self, cut: Cut, nth: int = 1) -> str:
        """What the branch of the cut's nth probe is called."""
        # Where nothing may run for real, it does not matter what else might.
        options = {**self._options, "live": [], "tail": "record"} if cut.free else self._options
        about: dict[str, Value] = {
            "parent": self._parent, "at": cut.at, "edits": dict(cut.edits), "options": options,
        }  # fmt: skip
        if cut.within is not None:
            about["within"] = cut.within
        if cut.beside:
            about["others"] = "kept"
        if nth > 1:
            about["nth"] = nth
        return f"{PREFIX}{cut.name}-{canonical.digest(about).hex()[:_DIGITS]}"

    def before(self, cut: Cut, nth: int = 1, among: Sequence[BranchInfo] | None = None) -> str | None:
        """The branch of the cut's nth probe that was run before, None where there is none. One that was cut off is
        removed: what it would have done is not known. `among`: the branches of the run, where they are at hand."""
        for branch in self._named(self.name(cut, nth), self.store.run(self.run).branches if among is None else among):
            if branch.name in self._ignored:
                continue
            if is_cut_off(self.store, self.run, branch, self._path, self._supervised):
                self.store.delete_branch(self.run, branch.name)
            elif branch.state is not RunState.GROWING:
                return branch.name
        return None

    def _named(self, name: str, among: Iterable[BranchInfo]) -> list[BranchInfo]:
        """The branches that were to be called so. One whose name was taken has a number behind it."""
        return [one for one in among if one.name == name or one.name.rpartition("-")[0] == name]

    def probe(self, cut: Cut, predicate: Predicate, made: Made | None, before: str | None) -> Probe:
        """Judges a probe that was `made`, or found as `before`."""
        branch = made.branch if made is not None else before or ""
        self._made.add(branch)
        reader = self.store.run(self.run, branch)
        seen = view(reader, self._path, self.store.path, branch, self._plain)
        told = made if made is not None else Made(branch, 0)
        refused = told.refused or _refused(seen)
        judgement = predicates.of_probe(predicate, seen, refused, told.difference)
        reach, again = self._reach(reader, cut)
        return Probe(
            seen.address, cut.place, judgement.judged, judgement.why, told.live, told.seconds, made is None,
            reused(reader), refused, reach, lived(reader) if made is None else told.live, again,
        )  # fmt: skip

    def _reach(self, reader: RunReader, cut: Cut) -> tuple[int | None, bool]:
        """`reach` and `again` of a probe."""
        if not is_native(reader.meta) or cut.within is not None or cut.edits:
            return None, False
        recorded = self.store.run(self.run, self._parent)
        reach = unchanged.upto(recorded, reader, cut.step, self._alike)
        return reach, reach > cut.step and unchanged.again(recorded, reader, cut.step, reach)


def is_cut_off(store: Store, run: str, branch: BranchInfo, path: str = "", supervised: bool = False) -> bool:
    """Whether what a probe would have done is not known, since it was stopped. `path`: the run's, or its thread's;
    `supervised`: somebody writes down how the program ended, once it has."""
    reader = store.run(run, branch.name)
    if is_native(reader.meta) and branch.state is not RunState.GROWING:
        return view(reader, path or run, store.path, branch.name).state == RunState.INTERRUPTED
    if supervised and branch.state in (RunState.COMPLETE, RunState.FAILED):
        # Its exit status is told last: without it, it may have been killed on its way out, and so may we.
        return not _ended(branch)
    return branch.state is RunState.INTERRUPTED and not _ended(branch)


def made_before(store: Store, run: str, branch: str, path: str = "") -> Made:
    """A probe that is kept, as it was told when it was made. Where its served part was another one, that says its
    end."""
    reader = store.run(run, branch)
    seen = view(reader, path or run, store.path, branch)
    return Made(branch, lived(reader), _refused(seen))


def _ended(branch: BranchInfo) -> bool:
    """Whether its supervisor saw its end: it was killed, and by nobody who wanted to stop the search."""
    return any(stream.process == LAUNCH for stream in branch.streams)


def _refused(seen: View) -> tuple[str, ...]:
    """What was refused in a probe that is kept, where its program did not hide it."""
    if seen.state != RunState.REFUSED or seen.error is None or not seen.error.message.startswith(Code.REFUSED):
        return ()
    return (seen.error.message.removeprefix(f"{Code.REFUSED} "),)


def reused(reader: RunReader) -> tuple[str, ...]:
    """Which calls of a branch were answered from the record, since nothing allowed them to run: `tool get_order`."""
    names: dict[int, str] = {}
    found: dict[str, None] = {}
    for _, event in reader.heads(reader.streams[0].id):
        if event.kind is Kind.BEGIN:
            names[event.pos] = f"{event.what} {event.name}"
        elif event.kind is Kind.END and event.name == REUSED:
            found[names[event.of]] = None
    return tuple(found)


def listed(reader: RunReader) -> list[BranchInfo]:
    """The probes of all bisects of a run, the oldest first."""
    return [branch for branch in reader.branches if branch.name.startswith(PREFIX)]


def kept(store: Store, reader: RunReader, path: str, branch: BranchInfo, predicate: Predicate) -> Probe:
    """A probe as it is kept, and what the predicate says of it."""
    own = store.run(reader.info.name, branch.name)
    seen = view(own, path, store.path, branch.name)
    judgement = predicates.of_probe(predicate, seen, _refused(seen))
    return Probe(
        seen.address, _cut(branch.name), judgement.judged, judgement.why, 0, 0.0, True, reused(own), _refused(seen)
    )


def _cut(branch: str) -> str:
    """What a probe's branch is called after. One that was run again has a number behind it."""
    return re.sub(rf"-[0-9a-f]{{{_DIGITS}}}(-\d+)?$", "", branch.removeprefix(PREFIX))


# What is run.


def program(command: Sequence[str], directory: str) -> Value:
    """What a command is, as far as it can be seen from outside: its words, the files that they name, and the Python
    files below the working directory and beside the script. After a change a probe is another probe."""
    words = list(command)
    named = [os.path.join(directory, word) for word in words]
    files = [path for path in named if os.path.isfile(path)]
    places = {os.path.abspath(directory or os.getcwd()), *(os.path.dirname(os.path.abspath(path)) for path in files)}
    seen: Value = {"command": [*words], "directory": directory, "files": {path: _content(path) for path in files}}
    return {**seen, "code": _code(sorted(places))} if isinstance(seen, dict) else seen


def _content(path: str) -> Value:
    about = os.stat(path)
    if about.st_size > _LARGEST:
        return [about.st_size, about.st_mtime_ns]
    with open(path, "rb") as file:
        return blake2b(file.read(), digest_size=16).digest()


def _code(places: Iterable[str]) -> bytes:
    found = blake2b(digest_size=16)
    for path, size, changed in _python_files(places):
        found.update(f"{path}\0{size}\0{changed}\n".encode("utf-8", "surrogateescape"))
    return found.digest()


def _python_files(places: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    waiting = list(places)
    seen: set[str] = set()
    entries: list[os.DirEntry[str]] = []
    looked = 0
    while waiting and looked < _MOST_ENTRIES:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue  # what cannot be read here cannot be imported by the program either
        looked += len(entries)
        for entry in entries:
            if entry.name.endswith(".py"):
                about = entry.stat()
                if stat.S_ISREG(about.st_mode):
                    yield entry.path, about.st_size, about.st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and entry.name not in _NO_CODE:
                waiting.append(entry.path)


def function(target: Any) -> Value:
    """What a target in process is: where it is defined and its code. None where that does not say what it does, since
    it holds values of its own: then no other process's probes are this one's."""
    code = getattr(target, "__code__", None)
    if not isinstance(code, CodeType) or code.co_freevars or getattr(target, "__self__", None) is not None:
        return None
    place = os.path.dirname(os.path.abspath(code.co_filename))
    return {"target": f"{target.__module__}:{target.__qualname__}", "body": _body(code), "code": _code([place])}


def _body(code: CodeType) -> Value:
    consts = [_body(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return [code.co_code, [*code.co_names], consts]
