"""State of graphs as inert values and back: what the checkpointer stores of channels, writes and metadata.

`lockstep.session.snapshot` says how objects become tagged maps. This adds what LangGraph's states hold (messages,
secrets) and strictness: only classes that are allowed (`lockstep_langgraph.allowed`) come back as themselves, and
nothing that is stored is imported, constructed or run. Everything else comes back as its data
(`lockstep_langgraph.inert`), with a report of where it is, what it is and what to do about it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from lockstep.log.canonical import LEAVES
from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_langgraph import copies, declared, messages, typed
from lockstep_langgraph.allowed import Allowed
from lockstep_langgraph.losses import Loss, Reports
from lockstep_langgraph.making import Maker
from lockstep_langgraph.taking import Taker


class Codec:
    """What stores values and restores them. Immutable; usable from any thread.

    types   classes (or names, as in `shop.models:Order`) that come back as themselves beside those of the schemas
    serde   the program's own serializer: values then are what it makes of them, `{"$": "typed", "type", "data"}`
    """

    def __init__(self, types: Iterable[Any] = (), *, serde: Any = None) -> None:
        self.allowed = Allowed().more(types).more(typed.allowed_by(serde))
        self.typed = typed.of(serde)
        self.reports = Reports()
        declared.note_graphs()

    def with_types(self, extra: Iterable[Any]) -> Codec:
        """The same with more classes allowed; itself where all are. What was reported is not reported again."""
        allowed = self.allowed.more(extra)
        if allowed == self.allowed:
            return self
        more = copy.copy(self)
        more.allowed = allowed
        return more

    def dump_plain(self, obj: Any, path: str = "") -> Value:
        """As `dump`, whatever serializer the program has: of metadata, by which checkpoints are found and drawn."""
        return self._taken(obj, path, None)

    def dump(self, obj: Any, path: str = "", lost: list[Loss] | None = None) -> Value:
        """The object as data, as it is now. `path`: what errors and reports call its place, as in `messages[3]`.

        What will not come back as it is gets reported once, and is added to `lost`. Raises StoreError LS207 with the
        path of what can't be stored.
        """
        if self.typed is not None:
            return self.typed.dump(obj, path, lambda part: self._taken(part, path, lost))
        return self._taken(obj, path, lost)

    def load(self, value: Value, path: str = "") -> Any:
        """The object that `dump` was given, or one equal to it. What may not or can't come back is inert, which is
        reported once."""
        if type(value) in LEAVES:
            return value
        maker = Maker(self.allowed, self.typed, path)
        made = maker.value(value, None, 0)
        if maker.lost:
            self.reports.tell([Loss(path + snapshot.path(at), what, why) for at, what, why in maker.lost])
        return made

    def is_as_stored(self, obj: Any, value: Value, path: str = "") -> bool:
        """Whether an object is still what it was stored as: whether `dump` would give that again, but faster."""
        if self.typed is not None:
            return self.typed.is_as_stored(obj, value, path, lambda part: self._taken(part, path, None))
        plan = messages.BY_CLASS.get(type(obj))
        if plan is not None and type(value) is dict:
            same = messages.is_as_stored(obj, plan, value)
            if same is not None:
                return same
        return messages.equal(self.dump(obj, path), value)

    def is_told(self, objects: list[Any]) -> bool:
        """Whether all of these are equal only to what says the same: messages are, whose classes compare all fields."""
        return messages.BY_CLASS.keys() >= set(map(type, objects))

    def watch(self, obj: Any) -> Callable[[], bool] | None:
        """What tells, faster still, whether an object is as it is now; None for those of which nothing does."""
        return messages.watch(obj) if type(obj) in messages.BY_CLASS else None

    def maker(self, value: Value, path: str = "") -> Callable[[], Any]:
        """What makes the object that `load` would, afresh each time and much faster."""
        pattern = self.load(value, path)
        if type(pattern) in messages.BY_CLASS:
            return messages.pattern(pattern, copies.clone)
        return lambda: copies.clone(pattern)

    def clone(self, obj: Any) -> Any:
        """A copy of an object that `load` made: changing one does not change the other. Runs no code of its class."""
        return copies.clone(obj)

    def _taken(self, obj: Any, path: str, lost: list[Loss] | None) -> Value:
        if type(obj) in LEAVES:
            plain: Value = obj
            return plain
        taker = Taker(self.allowed, path)
        value = taker.value(obj, None)
        if taker.lost:
            found = [Loss(path + snapshot.path(at), what, why) for at, what, why in taker.lost]
            self.reports.tell(found)
            if lost is not None:
                lost += found
        return value
