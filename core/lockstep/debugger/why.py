"""Where a value came from: `lockstep why` and `lockstep.why`.

    found = lockstep.why("refund:12.1", "request.arguments.cents")
    found.origins[0].address, found.origins[0].path

The value is looked for in what was answered, read and given before it. What has it in its own request only passed it on
(a model that repeats what a tool said), so that the walk goes on from there. Reads the log only: nothing runs.

It knows what was copied, also in other white space, case, JSON or number format; not what was computed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from lockstep.debugger import listing, paths, sharing, structure
from lockstep.debugger.flow import OUTCOME, REQUEST, Flow, Node
from lockstep.debugger.paths import Place as Path
from lockstep.debugger.sharing import Found, Index, Source, Span
from lockstep.debugger.tracks import Track, track
from lockstep.errors import AddressError, Code, EditError
from lockstep.log.address import Address
from lockstep.log.store import open_store
from lockstep.log.timeline import END, Place, resolve

__all__ = ["Link", "Origin", "Why", "why"]

type Certainty = Literal["sure", "likely", "unsure"]

PROGRAM = "program"
_SPANS = 24  # spans of a value that are followed, at each hop
_ALIKE = 1.0  # bits around two short values from which on it is no chance that they are equal
_RIVALS = 4  # places that fit as well and are followed
_MARGIN = 2.0  # bits by which a place has to fit better than the next, to be sure
_OWN = 0.25  # what a model's own words count, beside what it was told
_SIDES = {"request": REQUEST, "outcome": OUTCOME, "answer": OUTCOME, "output": OUTCOME, "state": OUTCOME}
_PART = 4  # characters of a word that are enough to be a part of another


class Origin(msgspec.Struct, frozen=True):
    """Where a value, or a span of it, first was.

    address    of the effect, the input or the read
    path       where it stands there, as `show` prints it: `outcome.total`; of what no answer had and the program asked
               with itself `request.…`
    kind       model, tool, …, input, environ, file, …; `program`: it is in the program's own text or was made there
    span       what of the value; `spans` all that came from there
    exact      whether it is written alike in both places
    share      how much of what the value tells came from there, 0 to 1
    certainty  sure; likely: nothing but it fits, but it may be by chance; unsure: others fit as well, `rivals`
    """

    address: str
    path: str
    kind: str
    name: str
    span: str
    exact: bool
    share: float = 1.0
    certainty: Certainty = "sure"
    rivals: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()


class Link(msgspec.Struct, frozen=True):
    """One place that a span passed, from the value back to its origin. `origin`: number of that, from 0."""

    address: str
    path: str
    kind: str
    name: str
    span: str
    origin: int = 0


class Why(msgspec.Struct, frozen=True):
    """`lockstep why --json`. `origins`: what tells most first; none for a value that says nothing."""

    address: str
    path: str
    value: Any
    origins: tuple[Origin, ...]
    chain: tuple[Link, ...]


class Hop(msgspec.Struct, frozen=True):
    """Words of what a node asked or answered."""

    node: int
    side: str
    start: int
    stop: int
    track: Track

    @property
    def text(self) -> str:
        return self.track.raw(self.start, self.stop)


class Trail(msgspec.Struct, frozen=True):
    """One span, followed from the value back to where it came from. `bits`: what it tells."""

    hops: tuple[Hop, ...]
    bits: float
    sure: Certainty
    rivals: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.hops[-1].text


def why(address: str, path: str = "", *, store: str | os.PathLike[str] | None = None) -> Why:
    """Where a value came from.

    address  a step or an effect: `refund:12.1`
    path     a place in its request or outcome, as `show` prints it: `request.messages[2].content`, `outcome.total`,
             `total`; or a text that is in it. "": all of the outcome
    store    path of the store; by default as on the command line

    Raises AddressError (LS205, LS206), EditError LS212 where there is no such place or text, and StoreError (LS201,
    LS202, LS204).
    """
    with open_store(store) as opened:
        return of(resolve(opened, address), path)


def of(place: Place, path: str) -> Why:
    """As `why`, of what an address names."""
    if place.step is None:
        raise AddressError(
            Code.NO_ADDRESS, f"{place.address} is a run: name a step or an effect of it, as in {place.address}:1"
        )
    flow = Flow(str(Address(place.address.path, place.address.branch)), place.timeline)
    side, inner, whole = located(place, path)
    node = target(flow, place)
    full = node.side(side)
    start, stop = part(full, inner, path)
    if start == stop:  # what is left out where it is looked for, or a piece of a text that came in several
        full = track(whole)
        start, stop = part(full, inner, path)
    trails = Walk(flow).trails(node, side, full, (start, stop))
    shown = side if inner is None else f"{side}.{paths.shown(inner)}".replace(".[", "[").rstrip(".")
    return summed(flow, str(place.address), shown, path if inner is None else paths.at(whole, inner), trails)


def located(place: Place, path: str) -> tuple[str, Path | None, Any]:
    """Which side of a step a path means, the place in it, None for a text that is in it, and all of that side.
    Raises EditError LS212."""
    shown = listing.show(place)
    sides: dict[str, Any] = {REQUEST: shown.request, OUTCOME: shown.outcome}
    try:
        first, *rest = paths.parse(path) or (OUTCOME,)
    except EditError:
        first, rest = "", []
    tried: list[tuple[str, Path]] = []
    if isinstance(first, str) and first in _SIDES:
        tried.append((_SIDES[first], tuple(rest)))
    if first != "":
        tried += [(OUTCOME, (first, *rest)), (REQUEST, (first, *rest)), (REQUEST, ("arguments", first, *rest)),
                  (REQUEST, ("body", first, *rest)), (OUTCOME, ("body", first, *rest))]  # fmt: skip
    for side, inner in tried:
        try:
            paths.at(sides[side], inner)
        except EditError:
            continue
        return side, inner, sides[side]
    for side in (OUTCOME, REQUEST):
        named = _named(sides[side], path)
        if named is not None:
            return side, named, sides[side]
    for side in (OUTCOME, REQUEST):
        start, stop = part(track(sides[side]), None, path)
        if start < stop:
            return side, None, sides[side]
    raise paths.Missing(
        Code.NO_PLACE, f"{place.address} has no {path}, in its request or its outcome, and no such text. See: lockstep "
        f"show {place.address}",
    )  # fmt: skip


def _named(value: Any, name: str, place: Path = ()) -> Path | None:
    """The first value that has this name, wherever it is: the argument of a tool that a model called, say."""
    value = structure.opened(value)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        if key == name and isinstance(one, str | int | float):
            return (*place, key)
        found = _named(one, name, (*place, key))
        if found is not None:
            return found
    return None


def part(full: Track, inner: Path | None, text: str) -> tuple[int, int]:
    """Which words of a side are meant."""
    if inner is None:
        wanted = track(text)
        if not wanted.words:
            return 0, 0
        found = sharing.has(Index([Source(0, 0, full)]), wanted, 0, len(wanted.words))
        return next(((at, at + len(wanted.words)) for _, at in found), (0, 0))
    inside = [
        number for number, word in enumerate(full.words)
        if word.place[: len(inner)] == inner and not (word.key and len(word.place) == len(inner))
    ]  # fmt: skip
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


class Walk:
    """Follows words back through a flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._before: dict[int, Index] = {}

    def trails(self, node: Node, side: str, full: Track, part: tuple[int, int]) -> list[Trail]:
        """Where a part of a node's request or answer came from, span by span."""
        start, stop = part
        return list(self._back(node, side, full, Span(start, stop, 0.0), ())) if start < stop else []

    def _back(
        self, node: Node, side: str, here: Track, part: Span, hops: tuple[Hop, ...], sure: Certainty = "sure",
        rivals: tuple[str, ...] = (), *, alone: bool = False,
    ) -> Iterator[Trail]:  # fmt: skip
        """`alone`: only the best is followed, and nothing is compared with it."""
        if side == OUTCOME and node.sort in ("input", "read"):
            yield self._ended(node, side, here, part, hops, sure, rivals)
            return
        index = self._sources(node, side)
        for span in self._spans(index, node, side, here, part):
            if not here.raw(span.start, span.stop):
                continue  # names of fields alone are no value
            found = self._found(index, node, side, here, span)
            if not found:
                yield self._ended(node, side, here, span, hops, sure, rivals)
                continue
            best = found[0]
            others = () if alone else self._others(found, node, side, here, span)
            worse = _worst(sure, self._certainty(found, others, here, span))
            passed = (*hops, Hop(node.number, side, span.start, span.stop, here))
            then, there = self._of(best, node, side)
            yield from self._back(
                then, there, best.source.track, Span(best.start, best.stop, span.bits), passed, worse,
                (*rivals, *others), alone=alone,
            )  # fmt: skip

    def _ended(
        self, node: Node, side: str, here: Track, span: Span, hops: tuple[Hop, ...], sure: Certainty,
        rivals: tuple[str, ...],
    ) -> Trail:  # fmt: skip
        told = sharing.total(here, span.start, span.stop)
        return Trail((*hops, Hop(node.number, side, span.start, span.stop, here)), told, sure, rivals)

    # What a span may have come from.

    def _sources(self, node: Node, side: str) -> Index:
        """Of an answer: what was asked, and answered on the way. Of a request or a state: what was answered before."""
        if node.sort == "step" or side == REQUEST:
            return self._earlier(node)
        within = [Source(one.number, one.answered, one.outcome) for one in _all(node) if one.answered is not None]
        return Index([Source(node.number, node.asked, node.request), *within])

    def _earlier(self, node: Node) -> Index:
        found = self._before.get(node.number)
        if found is None:
            answered = [one for one in self.flow.before(node.asked) if one.number != node.number]
            # A text that was asked before did not come from what was answered since.
            asked = [
                Source(_turned(one.number), one.order, one.track) for one in self.flow.requests
                if one.order < node.asked and one.number != node.number
            ]  # fmt: skip
            found = self._before[node.number] = Index([*answered, *asked])
        return found

    def _of(self, found: Found, node: Node, side: str) -> tuple[Node, str]:
        """The node that a place is in, and which side of it."""
        number = found.source.number
        if number < 0:
            return self.flow.nodes[_turned(number)], REQUEST
        own = number == node.number and side == OUTCOME
        return self.flow.nodes[number], REQUEST if own else OUTCOME

    def _spans(self, index: Index, node: Node, side: str, here: Track, part: Span) -> list[Span]:
        """The part, whole if it is somewhere whole, else what it is made of."""
        start, stop = part.start, part.stop
        whole = Span(start, stop, part.bits)
        if self._found(index, node, side, here, whole) or (side == OUTCOME and not node.gathers):
            return [whole]
        spans = sharing.shared(index, here, start, stop)
        if side == OUTCOME and node.sort != "step":
            spans = [one for one in spans if self._found(index, node, side, here, one)]
        left = [Span(low, high, 0.0) for low, high in _gaps([(one.start, one.stop) for one in spans], start, stop)]
        most = sorted(spans, key=lambda one: -one.bits)[:_SPANS]
        return sorted([*most, *left], key=lambda one: one.start)

    def _found(self, index: Index, node: Node, side: str, here: Track, span: Span) -> list[Found]:
        """Where it may have come from, the likeliest first."""
        start, stop = span.start, span.stop
        found = sharing.places(index, here, start, stop)
        if not found and stop - start == 1:
            return _pieces(index, here, start)
        if not sharing.by_chance(here, start, stop):
            return found
        if side == OUTCOME and node.sort != "step":
            # A short number in what was asked is another one than that in the answer, if nothing around them is alike.
            return [one for one in found if one.fits >= _ALIKE]
        if found and found[0].fits < _ALIKE:
            # Nothing tells them apart: a program mostly goes on with what was said last.
            answered = [one for one in found if one.source.number >= 0]
            return sorted(answered, key=lambda one: (-one.source.order, one.start)) or found
        return found

    # How sure it is.

    def _others(self, found: Sequence[Found], node: Node, side: str, here: Track, span: Span) -> tuple[str, ...]:
        """Addresses of other places that fit as well, if these lead to another origin."""
        best = found[0]
        alike = [one for one in found[1:] if one.source is not best.source and one.fits > best.fits - _MARGIN]
        if not alike:
            return ()
        ends = {self._end(one, node, side) for one in alike[:_RIVALS]} - {self._end(best, node, side)}
        return tuple(self.flow.nodes[number].address for number in sorted(ends))

    def _end(self, found: Found, node: Node, side: str) -> int:
        then, there = self._of(found, node, side)
        span = Span(found.start, found.stop, 0.0)
        trails = list(self._back(then, there, found.source.track, span, (), alone=True))
        return max(trails, key=lambda one: one.bits).hops[-1].node

    def _certainty(self, found: Sequence[Found], others: Sequence[str], here: Track, span: Span) -> Certainty:
        best = found[0]
        if others:
            return "unsure"
        if sharing.by_chance(here, span.start, span.stop) and best.fits < _ALIKE:
            return "unsure" if len(found) > 1 else "likely"
        same = here.words[span.start].text == best.source.track.words[best.start].text
        return "sure" if same else "likely"


def target(flow: Flow, place: Place) -> Node:
    """The node that an address names, as `show` shows it."""
    step, effect = place.step, place.effect
    assert step is not None
    if effect is None and flow.of_step(step) is None:
        effect = listing.closing_effect(step) or (step.effects[0] if len(step.effects) == 1 else None)
    elif effect is None and isinstance(listing.show(place), listing.Commanded) and len(step.effects) == 1:
        effect = step.effects[0]  # a workflow's step is shown as the one answer that came
    found = flow.of_effect(effect) if effect is not None else flow.of_step(step)
    if found is None:
        raise AddressError(Code.NO_ADDRESS, f"{place.address} asked and answered nothing: name an effect of it")
    return found


def _turned(number: int) -> int:
    """The number of a source that is a request, for that of its node, and back."""
    return -1 - number


def _all(node: Node) -> list[Node]:
    return [each for one in node.inner for each in (one, *_all(one))]


def _worst(one: Certainty, other: Certainty) -> Certainty:
    order: tuple[Certainty, ...] = ("sure", "likely", "unsure")
    return max(one, other, key=order.index)


def _pieces(index: Index, here: Track, at: int) -> list[Found]:
    """Where there is a word of which this one is the begin or end, or that is the begin or end of this one."""
    for other in sharing.within(index, here.words[at].text, _PART, lambda each: any(map(str.isdigit, each))):
        found = [
            Found(source, place, place + 1, sharing.fit(here, at, at + 1, source.track, place), False)
            for source, place in index.at(other)
        ]  # fmt: skip
        return sorted(found, key=lambda one: (-one.fits, one.source.order))
    return []


def _gaps(covered: Sequence[tuple[int, int]], start: int, stop: int) -> list[tuple[int, int]]:
    found = []
    for low, high in [*sorted(covered), (stop, stop)]:
        if low > start:
            found.append((start, low))
        start = max(start, high)
    return found


def summed(flow: Flow, address: str, path: str, value: Any, trails: Sequence[Trail]) -> Why:
    """The trails, brought together by where they end."""
    ends: dict[tuple[int, str], list[Trail]] = {}
    for trail in trails:
        ends.setdefault((trail.hops[-1].node, trail.hops[-1].side), []).append(trail)

    def weight(trail: Trail) -> float:
        # What a model says in its own words is its wording, mostly; a number of its own is none.
        own = len(trail.hops) == 1 and len(ends) > 1
        return trail.bits * (_OWN if own and not any(map(str.isdigit, trail.hops[0].text)) else 1.0)

    every = sum(map(weight, trails)) or 1.0
    origins: list[Origin] = []
    links: list[Link] = []
    for number, (node_number, side) in enumerate(sorted(ends, key=lambda each: -sum(map(weight, ends[each])))):
        group = ends[node_number, side]
        best = max(group, key=lambda one: one.bits)
        node, first, last = flow.nodes[node_number], best.hops[0], best.hops[-1]
        made = side == REQUEST or node.kind == END
        origins.append(
            Origin(
                node.address, _path(last), PROGRAM if made else node.kind, node.name, best.text,
                last.text in first.text,
                round(sum(map(weight, group)) / every, 3), _worst(best.sure, "likely") if made else best.sure,
                tuple(dict.fromkeys(best.rivals)), tuple(one.text for one in group),
            )
        )  # fmt: skip
        for hop in best.hops:
            at = flow.nodes[hop.node]
            links.append(Link(at.address, _path(hop), at.kind, at.name, hop.text, number))
    return Why(address, path, value, tuple(origins), tuple(links))


def _path(hop: Hop) -> str:
    words = hop.track.words[hop.start : hop.stop]
    places = [word.place for word in words if not word.key] or [word.place for word in words]
    where = paths.shown(_common(places))
    return f"{hop.side}{'.' if where and not where.startswith('[') else ''}{where}"


def _common(places: Sequence[Path]) -> Path:
    """What all of them are in."""
    found = places[0]
    for place in places[1:]:
        same = next((n for n, (a, b) in enumerate(zip(found, place, strict=False)) if a != b), None)
        found = found[: same if same is not None else min(len(found), len(place))]
    return found
