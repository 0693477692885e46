"""What words of one value another one has: the longest spans first, and of several places the one that fits best.

How much a span tells is weighed in bits, roughly: digits and ids tell much, short and frequent words nothing. A value
that stands at several places is told apart by what stands around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import msgspec

from lockstep.debugger.tracks import SECRET, Track, Word, is_number

_AROUND = 16  # words on each side that tell two places apart
_NEAR = 4.0  # at this distance a word counts half
LEAST = 3.5  # bits below which a span says nothing by itself
WEAK = 7.0  # bits below which a single word may stand somewhere by chance
# Words that say nothing by themselves: the most frequent ones, and those in which messages are written.
_DULL = frozenset({
    "a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "more", "most", "my", "no", "not", "of", "on", "one", "or", "our", "out", "she", "should", "so",
    "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "us",
    "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would", "yes", "you", "your",
    "true", "false", "null", "none", "type", "text", "content", "role", "name", "value", "id", "function", "tool",
    "user", "assistant", "system", "args", "arguments", "kwargs",
})  # fmt: skip


class Span(msgspec.Struct, frozen=True):
    """Words `start` to `stop` of a track, and their bits."""

    start: int
    stop: int
    bits: float


class Source(msgspec.Struct, frozen=True):
    """Where words may have come from. `order`: the earlier, the smaller."""

    number: int
    order: int
    track: Track


class Found(msgspec.Struct, frozen=True):
    """A place in a source that has a span. `fits`: bits of what is alike around it, too."""

    source: Source
    start: int
    stop: int
    fits: float
    written: bool


class Index:
    """Where each word stands in some sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self._at: dict[str, list[tuple[Source, int]]] = {}
        for source in sources:
            for number, word in enumerate(source.track.words):
                self._at.setdefault(word.text, []).append((source, number))

    def at(self, word: str) -> Sequence[tuple[Source, int]]:
        return self._at.get(word, ())

    def words(self) -> Iterator[str]:
        return iter(self._at)


def bits(word: Word) -> float:
    """How much a word tells. A name in a map says what a value is, and is none."""
    text = word.text
    if word.key or text in _DULL:
        return 0.5
    if is_number(text):
        return min(3.3 * len(text.replace(".", "")), 20.0)
    if any(sign.isdigit() for sign in text) or text.startswith(SECRET):
        return min(4.0 * len(text), 24.0)
    if not text.isascii() and len(text) == 1:
        return 3.0
    return 1.0 if len(text) < 3 else min(1.0 + 0.9 * len(text), 8.0)


def total(track: Track, start: int, stop: int) -> float:
    return sum(bits(word) for word in track.words[start:stop])


def has(index: Index, track: Track, start: int, stop: int) -> Iterator[tuple[Source, int]]:
    """All places in the sources that have these words one behind the other."""
    words = track.words[start:stop]
    for source, at in index.at(words[0].text):
        theirs = source.track.words
        if at + len(words) <= len(theirs) and all(
            theirs[at + n].text == word.text for n, word in enumerate(words)
        ) and any(not theirs[at + n].key for n in range(len(words))):  # fmt: skip
            yield source, at


def shared(index: Index, track: Track, start: int, stop: int) -> list[Span]:
    """Which words of a part the sources have, in spans that do not overlap: what tells most is taken first."""
    longest = [_longest(index, track, at, stop) for at in range(start, stop)]
    told = [0.0, *accumulate(bits(word) for word in track.words[start:stop])]

    def span(low: int, high: int) -> Span:
        much = told[high - start] - told[low - start]
        if high - low == 1:
            # One word alone may well be a chance, and words that follow each other in both are none.
            return Span(low, high, much * (1.0 if _is_id(track.words[low].text) else 0.6))
        return Span(low, high, much + 2.0 * (high - low - 1) if high > low else 0.0)

    found: list[Span] = []
    parts = [(start, stop)]
    while parts:
        low, high = parts.pop()
        spans = (span(at, min(at + longest[at - start], high)) for at in range(low, high))
        best = max(spans, key=lambda each: (each.bits, -each.start), default=None)
        if best is None or best.bits < LEAST:
            continue
        found.append(best)
        parts += [(low, best.start), (best.stop, high)]
    return sorted(found, key=lambda each: each.start)


def _is_id(text: str) -> bool:
    return any(sign.isdigit() for sign in text) or text.startswith(SECRET)


def by_chance(track: Track, start: int, stop: int) -> bool:
    """Whether such words may well stand somewhere by chance: one short number or word."""
    if stop - start != 1:
        return total(track, start, stop) < LEAST
    word = track.words[start]
    return bits(word) < (WEAK if is_number(word.text) else 5.0)


def _longest(index: Index, track: Track, at: int, stop: int) -> int:
    best = 0
    words = track.words
    for source, there in index.at(words[at].text):
        theirs = source.track.words
        if best and not (at + best < stop and there + best < len(theirs)):
            continue
        length = 1
        while at + length < stop and there + length < len(theirs) and (
            words[at + length].text == theirs[there + length].text
        ):  # fmt: skip
            length += 1
        if length > best and any(not theirs[there + n].key for n in range(length)):
            best = length
    return best


def places(index: Index, track: Track, start: int, stop: int) -> list[Found]:
    """Where the sources have a span, the best fit first, and of two that fit alike the earlier."""
    raw = track.raw(start, stop)
    found = [
        Found(source, at, at + stop - start, fit(track, start, stop, source.track, at), False)
        for source, at in has(index, track, start, stop)
    ]
    found = [msgspec.structs.replace(one, written=one.source.track.raw(one.start, one.stop) == raw) for one in found]
    return sorted(found, key=lambda one: (-round(one.fits + 0.5 * one.written, 1), one.source.order, one.start))


def fit(track: Track, start: int, stop: int, other: Track, at: int) -> float:
    """How much of what stands around a span stands around another place of it, nearer words counting more."""
    size = stop - start
    low, high = max(0, start - _AROUND), min(len(track.words), stop + _AROUND)
    ours = _near(track, low, high, start, stop)
    theirs = _near(other, max(0, at - _AROUND), min(len(other.words), at + size + _AROUND), at, at + size)
    around = sum(
        weight * min(1.0, 2 * theirs[word]) * _weight(word, track) for word, weight in ours.items() if word in theirs
    )
    return around + _next(track, start, stop, other, at, low, high)


def _weight(word: str, track: Track) -> float:
    return 0.25 if word in _DULL else max(2.0, bits(Word(word, (), 0, 0)))


def _near(track: Track, low: int, high: int, start: int, stop: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for at in range(low, high):
        if start <= at < stop:
            continue
        away = start - at if at < start else at - stop + 1
        found[track.words[at].text] = max(found.get(track.words[at].text, 0.0), 1 / (1 + away / _NEAR))
    return found


def _next(track: Track, start: int, stop: int, other: Track, at: int, low: int, high: int) -> float:
    """Bits of the words that follow on without a gap on both sides."""
    gained = 0.0
    before = 1
    while start - before >= low and at - before >= 0 and (
        track.words[start - before].text == other.words[at - before].text
    ):  # fmt: skip
        gained += bits(track.words[start - before])
        before += 1
    behind, end = 0, at + stop - start
    while stop + behind < high and end + behind < len(other.words) and (
        track.words[stop + behind].text == other.words[end + behind].text
    ):  # fmt: skip
        gained += bits(track.words[stop + behind])
        behind += 1
    return gained


def within(index: Index, word: str, least: int, keep: Callable[[str], bool]) -> list[str]:
    """Words of the sources that this one begins or ends with, or that begin or end with it; the longest first."""
    if len(word) < least:
        return []
    found = [
        each for each in index.words()
        if len(each) >= least and each != word and keep(each)
        and (word.startswith(each) or word.endswith(each) or each.endswith(word) or each.startswith(word))
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-min(len(each), len(word)), each))
