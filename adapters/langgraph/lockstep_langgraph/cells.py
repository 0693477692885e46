"""What channels hold: each value kept once, shared by all the checkpoints that have not changed it.

A list that grows is one `Strand` of items; each checkpoint has its own length of it, so that a step that adds one item
costs one item, in memory and in the log. Values are kept encoded. An object made from one is kept beside it as a
pattern to copy from, and never handed out itself: what a node does to its state stays in that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from operator import is_
from threading import Lock
from typing import Any, Protocol

from lockstep.log import canonical
from lockstep.log.model import Value

NEAR = 16  # items at the end of a list that are looked at again in each put: what nodes change in place is mostly there
ROUND = 16  # others that are, in turn: more of them would be most of what a put costs
OWN = 16  # items at the end of a list that no two checkpoints of a listing share


class Codec(Protocol):
    """Objects as data and back (`lockstep_langgraph.values`)."""

    @property
    def typed(self) -> Any: ...
    def dump(self, obj: Any, path: str = "") -> Value: ...
    def dump_plain(self, obj: Any, path: str = "") -> Value: ...
    def load(self, value: Value, path: str = "") -> Any: ...
    def is_as_stored(self, obj: Any, value: Value, path: str = "") -> bool: ...
    def is_told(self, objects: list[Any]) -> bool: ...
    def watch(self, obj: Any) -> Callable[[], bool] | None: ...
    def maker(self, value: Value, path: str = "") -> Callable[[], Any]: ...


class Item:
    """One encoded value, and what makes objects of it by one codec. `watched`: the object that it was last seen as, and
    what tells whether that still is as it was."""

    __slots__ = ("_by", "_digest", "_make", "value", "watched")

    def __init__(self, value: Value) -> None:
        self.value = value
        self._by: Codec | None = None
        self._make: Callable[[], Any] | None = None
        self._digest = b""
        self.watched: tuple[Any, Callable[[], bool]] | None = None

    def make(self, codec: Codec, path: str = "") -> Any:
        """A fresh object."""
        return self.maker(codec, path)()

    def maker(self, codec: Codec, path: str = "") -> Callable[[], Any]:
        """What makes one each time. `path`: what reports call its place."""
        make = self._make
        if make is None or self._by is not codec:
            make = self._make = codec.maker(self.value, path)
            self._by = codec
        return make

    @property
    def digest(self) -> bytes:
        if not self._digest:
            self._digest = blake2b(canonical.canonical(self.value), digest_size=16).digest()
        return self._digest


class Strand:
    """The items of a list that only grows, and the program's own objects that they were made from.

    `sources[n]` is what item n was last seen as. They are held, so that no other object can get the identity of one.
    `told`: the codec can tell all of them from others (`is_told`).
    """

    __slots__ = ("_chain", "_next", "items", "sources", "told")

    def __init__(self, items: list[Item], sources: list[Any] | None = None, *, told: bool = False) -> None:
        self.items = items
        self.sources = sources if sources is not None else []
        self.told = told
        self._next = 0
        self._chain: list[bytes] = []

    def digest(self, length: int) -> bytes:
        chain = self._chain
        del chain[len(self.items) :]
        last = chain[-1] if chain else b""
        for item in self.items[len(chain) : length]:
            last = blake2b(last + item.digest, digest_size=16).digest()
            chain.append(last)
        return chain[length - 1] if length else b""

    def cut(self, length: int) -> None:
        """Takes back what was added beyond: it could not be stored."""
        del self.items[length:], self.sources[length:], self._chain[length:]

    def looked_at(self, count: int) -> Iterator[int]:
        """The numbers of those of the first `count` items whose content is to be compared this time."""
        near = max(0, count - NEAR)
        if near:
            start = self._next % near
            self._next = start + ROUND
            yield from range(start, min(near, start + ROUND))
        yield from range(near, count)


class Listed:
    """A list: the first `length` items of a strand."""

    __slots__ = ("length", "strand")

    def __init__(self, strand: Strand, length: int) -> None:
        self.strand = strand
        self.length = length

    def make(self, codec: Codec, path: str = "") -> Any:
        path = f"{path}[]"
        return [item.maker(codec, path)() for item in self.strand.items[: self.length]]

    @property
    def items(self) -> list[Item]:
        return self.strand.items[: self.length]

    @property
    def digest(self) -> bytes:
        return b"l" + self.strand.digest(self.length)


class Whole:
    """Any other value."""

    __slots__ = ("item",)

    def __init__(self, item: Item) -> None:
        self.item = item

    def make(self, codec: Codec, path: str = "") -> Any:
        return self.item.make(codec, path)

    @property
    def digest(self) -> bytes:
        return b"w" + self.item.digest


type Cell = Listed | Whole


class Listing:
    """Makes the values of the checkpoints of one listing, of which each list goes on the one before: items that they
    have in common are the same objects in all of them, but for the last few of each list, which are what programs
    change before they give them to `update_state`. A history of n steps then makes some n items, not n * n / 2, and
    the collector of garbage has that much less to look at."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._made: dict[Strand, list[Any]] = {}
        self._lock = Lock()

    def make(self, cell: Cell, path: str) -> Any:
        if not isinstance(cell, Listed) or cell.length <= OWN:
            return cell.make(self._codec, path)
        path = f"{path}[]"
        codec, items = self._codec, cell.strand.items
        common = cell.length - OWN
        with self._lock:
            made = self._made.setdefault(cell.strand, [])
            made += [item.maker(codec, path)() for item in items[len(made) : common]]
            head = made[:common]
        return head + [item.maker(codec, path)() for item in items[common : cell.length]]


def cell_of(obj: Any, before: Cell | None, codec: Codec, path: str, *, paranoid: bool = False) -> Cell:
    """The cell of what a channel has now. `before`: what it had in the parent checkpoint, `path`: the channel.

    Raises what `codec.dump` raises, with nothing changed.
    """
    if type(obj) is not list:
        return Whole(Item(codec.dump(obj, path)))
    objects = list(obj)
    if not isinstance(before, Listed):
        return Listed(Strand(_fresh(objects, 0, codec, path), objects, told=codec.is_told(objects)), len(objects))
    old = before.strand
    same = _same(objects, old, before.length, codec, path, paranoid)
    if same == before.length == len(old.items):
        new = _fresh(objects, same, codec, path)
        if len(old.sources) < same:
            old.sources = objects[:same]
            old.told = codec.is_told(old.sources)
        old.items += new
        old.sources += objects[same:]
        old.told = old.told and codec.is_told(objects[same:])
        return Listed(old, len(objects))
    if same == len(objects):
        return Listed(old, same)
    items = old.items[:same] + _rest(objects, same, before, codec, path)
    return Listed(Strand(items, objects, told=codec.is_told(objects)), len(objects))


def _fresh(objects: list[Any], start: int, codec: Codec, path: str) -> list[Item]:
    return [Item(codec.dump(objects[n], f"{path}[{n}]")) for n in range(start, len(objects))]


def _same(objects: list[Any], old: Strand, length: int, codec: Codec, path: str, paranoid: bool) -> int:
    """How many of the first items are as they were."""
    count = min(len(objects), length)
    known = old.sources if len(old.sources) == count else old.sources[:count]
    identical = len(known) == count and _identical(objects, known, old.told)
    if identical and not paranoid and not _changed(objects, old, count, codec):
        return count
    for n in range(count):
        if not codec.is_as_stored(objects[n], old.items[n].value, path):
            return n
    old.sources[:count] = objects[:count]
    old.told = codec.is_told(old.sources)
    return count


def _identical(objects: list[Any], known: list[Any], told: bool) -> bool:
    """Whether the known objects are the first of these. `told`: they are messages, which are equal only to what says
    the same. Then the lists are compared as such, which asks no object that is the same, in a tenth of the time; but
    not those of objects that were read again, of which all would be asked, in each put."""
    if not told or not known or known[0] is not objects[0] or known[-1] is not objects[len(known) - 1]:
        return all(map(is_, known, objects))
    more = objects[len(known) :]
    del objects[len(known) :]
    try:
        return known == objects
    except Exception:
        return False  # something in an additional field has no truth value
    finally:
        objects += more


def _changed(objects: list[Any], old: Strand, count: int, codec: Codec) -> bool:
    """Whether one of those that are looked at this time was changed in place."""
    items = old.items
    for n in old.looked_at(count):
        item, obj = items[n], objects[n]
        watched = item.watched
        if watched is not None and watched[0] is obj and watched[1]():
            continue
        if not codec.is_as_stored(obj, item.value):
            return True
        same = codec.watch(obj)
        item.watched = None if same is None else (obj, same)
    return False


def _rest(objects: list[Any], start: int, before: Listed, codec: Codec, path: str) -> list[Item]:
    """The items from `start` on, those of them that were in the list already as the items that they were: a list that
    lost its first items stores none of the others again."""
    items = before.items
    seen = {id(source): item for source, item in zip(before.strand.sources, items, strict=False)}
    known = {item.digest: item for item in items}
    found: list[Item] = []
    for n in range(start, len(objects)):
        item = seen.get(id(objects[n]))
        if item is None or not codec.is_as_stored(objects[n], item.value, path):
            item = Item(codec.dump(objects[n], f"{path}[{n}]"))
            item = known.get(item.digest, item)
        found.append(item)
    return found
