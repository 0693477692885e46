"""Walks a stored value and finds what of it is secret: in texts by themselves, and by the names they stand under.

The same walk serves recording, replay and `scrub`: what stands for a secret is decided by the `stand` that it
is given. A value in which nothing is found comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

from lockstep.log import placeholders, redact
from lockstep.log.model import Value
from lockstep.log.names import Judge, Says
from lockstep.log.redact import Hit

# Lists of [name, value], and lists of the words of a command.
_PAIRS = frozenset(("headers", "params", "data", "form", "fields", "cookies", "trailers", "query", "$pairs"))
_WORDS = frozenset(("argv", "command", "cmd", "args"))
_ENVIRONMENTS = frozenset(("env", "environ", "environment"))
_USER = frozenset(("-u", "--user", "--proxy-user", "--basic-auth"))
_SHORT = 6  # a text without a name to it that is shorter is no secret
_MEMO_TEXT = 512
_MEMO = 4096
_MEMO_PAIRS = 32
_TEXTS = (str, bytes)
# Texts whose beginning is not searched again: of which sizes, how many are remembered, how many bytes tell that one may
# be like another, and how many before their difference are searched all the same.
_WORTH, _LARGEST = 1024, 1 << 20
_QUIET = 4
_STARTS = 32
_BEFORE = 256
_LISTS = frozenset((list,))

type Stand = Callable[[bytes, str], bytes]  # a secret and its kind -> what stands for it
type Known = Callable[[bytes, bool], Iterable[Hit]]  # what else is secret in a text


class Hiding:
    """One way of hiding. Remembers short texts in which there is nothing, until `forget`.

    stored   it is text from a log, whose placeholders are placeholders and not the program's own words
    """

    def __init__(self, judge: Judge, stand: Stand, known: Known, *, stored: bool = False) -> None:
        self._stored = stored
        self.judge = judge
        self._stand = stand
        self._known = known
        self._clean: set[str] = set()
        self._clean_pairs: set[tuple[Any, ...]] = set()
        self._last: tuple[object, bytes, bytes] = (None, b"", b"")
        self._quiet: list[bytes] = []

    def forget(self) -> None:
        """More is known to be secret than before. What another thread finds clean right now, it does not remember."""
        self._clean = set()
        self._clean_pairs = set()
        self.forget_last()

    def forget_last(self) -> None:
        """The next text is scanned, also if it is the last one again, and all of it."""
        self._last = (None, b"", b"")
        self._quiet = []

    def value(self, value: Value, says: Says = Says.NOTHING, name: str = "") -> Value:
        """A value with placeholders in it. `name` and what it says: where the value stands."""
        kind: type = type(value)
        if kind is str:
            return self._text(value, says, name)  # type: ignore[arg-type]
        if kind is bytes:
            return self._bytes(value, says, name)  # type: ignore[arg-type]
        if kind is dict:
            return self._map(value, says, name)  # type: ignore[arg-type]
        if kind is list or kind is tuple:
            return self._list(value, says, name)  # type: ignore[arg-type]
        return value

    def hits(self, data: bytes, says: Says, name: str, partial: bool = False) -> list[Hit]:
        """What is secret in a text that stands under a name. `partial`: more of the text may follow."""
        if says not in (Says.NOTHING, Says.QUERY):
            found = redact.value(data, says, name)
            if says is Says.SECRET and not self._stored:
                return found
        else:
            found = []
        inner = redact.scan(data, self.judge, True) if partial else self._scan(data)
        known = list(self._known(data, partial))
        if self._stored and placeholders.MARK in data:
            at = [(each.start(), each.end()) for each in placeholders.every(data)]
            return _outside(redact.settle((*inner, *known, *found)), at)
        if known or (found and inner):
            return redact.settle((*inner, *known, *found))
        return found or inner

    def _scan(self, data: bytes) -> list[Hit]:
        """`redact.scan`. A chat's request begins as the one before did: what was searched there, with nothing in it
        that is a secret or could become one by what follows, is not searched again."""
        if not _WORTH <= len(data) <= _LARGEST:
            return redact.scan(data, self.judge)
        start, like = 0, b""
        for text in self._quiet:
            if text[:_STARTS] == data[:_STARTS] and (same := redact.shared(text, data)) > start:
                start, like = same, text
        # From where no name or token can begin that goes on behind what they share.
        start -= _BEFORE
        start = 1 + max(data.rfind(mark, 0, start) for mark in (b" ", b'"', b"\n")) if start > 0 else 0
        said = self.judge.said
        found = redact.scan(data[start:], self.judge)
        if found or said != self.judge.said or not redact.quiet(data):
            return [Hit(start + hit.start, start + hit.end, hit.kind, hit.open) for hit in found]
        self._quiet = [data, *(text for text in self._quiet if text is not like)][:_QUIET]
        return found

    def put(self, data: bytes, hits: list[Hit]) -> bytes:
        """A text with something else in the place of what is secret in it."""
        pieces, at = [], 0
        for hit in hits:
            pieces.append(self._own(data[at : hit.start]))
            pieces.append(self._stand(data[hit.start : hit.end], hit.kind))
            at = hit.end
        pieces.append(self._own(data[at:]))
        return b"".join(pieces)

    def _own(self, data: bytes) -> bytes:
        return data if self._stored else placeholders.escaped(data)

    def _text(self, text: str, says: Says, name: str) -> str:
        size, clean = len(text), self._clean
        if says is Says.NOTHING:
            if size < _SHORT or text in clean:
                return text
        elif not size:
            return text
        data = text.encode("utf-8", "surrogatepass")
        hits = self.hits(data, says, name)
        if hits or placeholders.MARK in data:
            return self.put(data, hits).decode("utf-8", "surrogatepass")
        if size <= _MEMO_TEXT and says is Says.NOTHING:
            if len(clean) > _MEMO:
                clean.clear()
            clean.add(text)
        return text

    def _bytes(self, data: bytes, says: Says, name: str) -> bytes:
        if len(data) < _SHORT and says is Says.NOTHING:
            return data
        clean = self._clean
        known, before, hidden = self._last  # a request's body is in what is stored and in what must match
        if before is data and known is clean:
            return hidden
        hits = self.hits(data, says, name)
        hidden = self.put(data, hits) if hits or placeholders.MARK in data else data
        self._last = (clean, data, hidden)
        return hidden

    def _map(self, fields: dict[str, Value], says: Says, under: str) -> Value:
        changed: dict[str, Value] = {}
        judge = self.judge.says
        named = judge(str(fields["name"])) if "value" in fields and type(fields.get("name")) is str else Says.NOTHING
        if says in (Says.COOKIES, Says.SET_COOKIE) and "value" in fields:
            named = Says.SECRET
        plain = says is Says.NOTHING and named is Says.NOTHING and under not in _ENVIRONMENTS
        for name, item in fields.items():
            kind: type = type(item)
            if plain and kind is str and item in self._clean and judge(name) is Says.NOTHING:
                continue
            if kind is str or kind is bytes:
                if name == "value" and named is not Says.NOTHING:
                    hidden = self.value(item, named, str(fields.get("name", "cookie")))
                elif says is Says.COOKIES and "value" not in fields:
                    hidden = self.value(item, Says.SECRET, "cookie")
                elif under in _ENVIRONMENTS and self.judge.variable(name):
                    hidden = self.value(item, Says.SECRET, name)
                else:
                    hidden = self.value(item, judge(name), name)
            elif kind is list or kind is dict or kind is tuple:
                hidden = self.value(item, judge(name), name)
            else:
                continue
            if hidden is not item:
                changed[name] = hidden
        keys = [name for name in fields if len(name) >= 2 * _SHORT and self._text(name, Says.NOTHING, "") is not name]
        if keys:
            return {self._text(name, Says.NOTHING, ""): changed.get(name, item) for name, item in fields.items()}
        return {**fields, **changed} if changed else fields

    def _list(self, items: list[Value], says: Says, name: str) -> Value:
        if name in _WORDS and items and all(type(item) in (str, bytes) for item in items):
            hidden = self.words(items)
        elif name in _PAIRS:
            return self._pairs(items, says)
        else:
            hidden = [item if type(item) in _ATOMS else self.value(item, says, name) for item in items]
        if all(map(is_, hidden, items)):
            return items
        return hidden

    def _pairs(self, items: list[Value], says: Says) -> Value:
        """Pairs of name and value. Headers mostly come again: those without anything are remembered as a whole."""
        told: Any = None
        clean = self._clean_pairs
        if len(items) <= _MEMO_PAIRS and _LISTS.issuperset(map(type, items)):
            told = says, *map(tuple, items)  # type: ignore[arg-type]
            try:
                if told in clean:
                    return items
            except TypeError:
                told = None  # something in it is no text
        hidden = [self._pair(item, says) for item in items]
        if not all(map(is_, hidden, items)):
            return hidden
        if (
            told is not None
            and sum(len(text) for pair in told[1:] for text in pair if type(text) in _TEXTS) <= _MEMO_TEXT
        ):
            if len(clean) > _MEMO:
                clean.clear()
            clean.add(told)
        return items

    def _pair(self, item: Value, says: Says) -> Value:
        if type(item) is list and len(item) == 2 and type(item[0]) is str:
            said = self.judge.says(item[0])
            if not said and type(item[1]) is str and (len(item[1]) < _SHORT or item[1] in self._clean):
                return item
            hidden = self.value(item[1], said, item[0])
            return item if hidden is item[1] else [item[0], hidden]
        return self.value(item, says)

    def words(self, words: list[Value]) -> list[Value]:
        """The words of a command, where an option may be followed by what it takes."""
        hidden: list[Value] = []
        option = ""
        for word in words:
            text = word if isinstance(word, str) else word.decode("utf-8", "surrogateescape")  # type: ignore[union-attr]
            says, name = Says.NOTHING, option.lstrip("-")
            if option in _USER and ":" in text and not text.startswith("-"):
                user, _, _ = text.partition(":")
                size = len(user.encode("utf-8", "surrogateescape")) + 1
                raw = text.encode("utf-8", "surrogateescape")
                new: Any = self.put(raw, [Hit(size, len(raw), "password")]) if len(raw) > size else raw
                hidden.append(new.decode("utf-8", "surrogateescape") if isinstance(word, str) else new)
                option = ""
                continue
            if option and not text.startswith("-"):
                says = self.judge.says(name)
                says = Says.SECRET if says is Says.MAYBE else says
            hidden.append(self.value(word, says, name))
            option = text if text.startswith("-") and "=" not in text else ""
        return hidden


def _outside(hits: Iterable[Hit], taken: list[tuple[int, int]]) -> list[Hit]:
    """What is secret beside the placeholders that stand in a text already."""
    found = []
    for hit in hits:
        start = hit.start
        for first, last in (*taken, (hit.end, hit.end)):
            if first >= hit.end or last <= start:
                if first < hit.end:
                    continue
                first = hit.end
            if first > start:
                found.append(Hit(start, first, hit.kind))
            start = max(start, last)
            if start >= hit.end:
                break
    return found


_ATOMS = frozenset((int, float, bool, type(None)))


def revealed(value: Value, text: Callable[[bytes], bytes]) -> Value:
    """The reverse walk: `text` puts the values into hidden text. The same object where there are none."""
    kind = type(value)
    if kind is str:
        if "lockstep-secret" not in value:  # type: ignore[operator]
            return value
        return text(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")  # type: ignore[union-attr]
    if kind is bytes:
        return text(value) if placeholders.MARK in value else value  # type: ignore[arg-type, operator]
    if kind is list:
        items: list[Value] = value  # type: ignore[assignment]
        new = [item if type(item) in _ATOMS else revealed(item, text) for item in items]
        return items if all(map(is_, new, items)) else new
    if kind is dict:
        fields: dict[str, Value] = value  # type: ignore[assignment]
        made = {
            str(revealed(name, text)) if "lockstep-secret" in name else name: item
            if type(item) in _ATOMS
            else revealed(item, text)
            for name, item in fields.items()
        }
        same = all(map(is_, made, fields)) and all(map(is_, made.values(), fields.values()))
        return fields if same else made
    return value
