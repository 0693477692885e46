"""Values as sequences of words, each with the place where it stands: what two texts share is looked for in these.

A tool's `{"total": 4000}` comes to a model as a text, escaped or not, and from there as an argument: as words all of
these are `total 4000`. Case, white space, punctuation and the way a number is written do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec

from lockstep.debugger import bodies, structure
from lockstep.debugger.paths import Place
from lockstep.log import placeholders
from lockstep.session.snapshot import TAG

# A secret's placeholder is one word; so is a number with its decimals, and each sign of scripts without spaces.
SECRET = placeholders.MARK.decode()
_WORD = re.compile(
    rf"{SECRET}[\w.-]*\.|(?<![^\W_])\d+(?:[.,]\d+)+(?![^\W_])|[\u3040-\u30ff\u3400-\u9fff]|"
    r"(?:(?![\u3040-\u30ff\u3400-\u9fff])[^\W_])+"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_FORM = re.compile(rf"({SECRET})-(?:url|form|json)\.")
# Of an HTTP exchange: what its transport says. Counts and times of a provider are no words of an answer.
_TRANSPORT = frozenset({"headers", "method", "status"})
_COUNTS = frozenset({"usage", "usage_metadata", "response_metadata"})
_LONGEST = 400_000  # words of one value that are looked at


class Word(msgspec.Struct, frozen=True):
    """One word. `text`: as it is compared; `place`: of the text that it stands in, from `start` to `stop`; `key`: it is
    a name in a map, and no part of a value."""

    text: str
    place: Place
    start: int
    stop: int
    key: bool = False


class Track(msgspec.Struct, frozen=True):
    """The words of a value, and the texts that they stand in, by place."""

    words: tuple[Word, ...]
    texts: dict[Place, str]

    def raw(self, start: int, stop: int) -> str:
        """What stands from one word up to another, as it was written; pieces of several texts are put together."""
        pieces: list[str] = []
        at = start
        while at < stop:
            end = at
            while end < stop and self.words[end].place == self.words[at].place and not self.words[end].key:
                end += 1
            if end == at:
                at += 1  # a name is not what was asked for
                continue
            text = self.texts[self.words[at].place]
            pieces.append(text[self.words[at].start : self.words[end - 1].stop])
            at = end
        return " ".join(pieces)


def track(value: Any, *, exchange: bool = False, seen: set[bytes] | None = None) -> Track:
    """The words of a value.

    exchange  it is a request or answer over HTTP: what its transport says is left out
    seen      items of lists that are no news: those that are in it are left out, and the others added. A conversation
              holds all that was said before
    """
    words: list[Word] = []
    texts: dict[Place, str] = {}
    for place, text, key in _leaves(value, (), _TRANSPORT if exchange else frozenset(), seen):
        if not key:
            texts[place] = text
        words.extend(Word(word, place, start, stop, key) for word, start, stop in _words(text))
        if len(words) > _LONGEST:
            break
    return Track(tuple(words[:_LONGEST]), texts)


def _leaves(
    value: Any, place: Place, hidden: frozenset[str], seen: set[bytes] | None
) -> Iterator[tuple[Place, str, bool]]:
    value = structure.opened(value)
    if isinstance(value, dict) and value.keys() == {TAG, "base64"}:
        yield place, bodies.from_base64(value["base64"]).decode("utf-8", "replace"), False
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in hidden or (hidden and name in _COUNTS) or (name == TAG and isinstance(inner, str)):
                continue
            if not name.startswith("$"):
                yield (*place, name), name, True
            yield from _leaves(inner, (*place, name), hidden and _COUNTS, seen)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield from _pieces(value, place)
            return
        for number, inner in enumerate(value):
            if seen is not None and isinstance(inner, dict | list):
                known = msgspec.msgpack.encode(inner)
                if known in seen:
                    continue
                seen.add(known)
            yield from _leaves(inner, (*place, number), hidden, seen)
    elif isinstance(value, bytes):
        yield place, value.decode("utf-8", "replace"), False
    elif value is not None:
        text = str(value)
        yield place, text.lower() if isinstance(value, bool) else text, False


def _pieces(value: list[str], place: Place) -> Iterator[tuple[Place, str, bool]]:
    for number, text in enumerate(value):
        inner = structure.opened(text)
        if inner is text:
            yield (*place, number), text, False
        else:
            yield from _leaves(inner, (*place, number), frozenset(), None)


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _WORD.finditer(text):
        yield plain(found[0]), found.start(), found.end()


def plain(word: str) -> str:
    """A word as it is compared."""
    if word[0].isdigit() and word.replace(",", "").replace(".", "").isdigit():
        return _number(word)
    if word.startswith(SECRET):
        return _FORM.sub(r"\1.", word)
    return unicodedata.normalize("NFKC", word).casefold()


def _number(word: str) -> str:
    if _GROUPED.fullmatch(word):
        word = word.replace(",", "")
    whole, dot, rest = word.partition(".")
    return f"{whole}.{rest.rstrip('0')}".rstrip(".") if dot and rest.isdigit() else word


def is_number(word: str) -> bool:
    return word[0].isdigit() and word.replace(".", "").replace(",", "").isdigit()
