"""The chart of a bisect: how likely a probe is bad, by the place where it leaves the run. For the terminal, and as SVG.

Pure: a verdict in, text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from lockstep.debugger.lines import safe
from lockstep.debugger.verdict import Likelihood, Verdict

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60

# Of the SVG, in its own units: the plot, and what is around it.
_WIDE, _HIGH = 720, 260
_LEFT, _TOP, _RIGHT, _BOTTOM = 56, 64, 20, 56
_TICKS = 10


def bars(places: Sequence[Likelihood]) -> str:
    """One character for each place, or for as many as share one where there are too many: the mean of P(bad)."""
    count = min(len(places), _WIDTH)
    edges = [number * len(places) // count for number in range(count + 1)]
    parts = [places[low:high] for low, high in pairwise(edges)]
    return "".join(_bar(sum(place.bad for place in part) / len(part)) for part in parts)


def _bar(share: float) -> str:
    return _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]


def telling(found: Verdict, most: int = 5) -> list[Likelihood]:
    """The places to be told of, in their order: the likeliest culprits, and what is before the first of them."""
    by = sorted(range(len(found.posterior)), key=lambda at: -found.posterior[at].culprit)
    best = [at for at in by[: most - 1] if found.posterior[at].culprit >= 0.01] or by[:1]
    shown = sorted({*best, max(0, best[0] - 1)})
    return [found.posterior[at] for at in shown]


def svg(found: Verdict) -> str:
    """A drawing of its own: P(bad) with its interval as a band, how likely each place is the culprit as bars, and below
    how many probes there were. Scales with its width; needs no script and no font."""
    places = found.posterior
    title = f"bisect of {found.run}: {found.verdict}"
    if found.step is not None:
        title += f" {found.run}:{found.effect or found.step}"
    title = safe(title)
    said = f"P = {found.confidence:.2f} after {found.probes} probes"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH + _TOP + _BOTTOM}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#222">',
        f"<title>{escape(title)}, {said}</title>",
        f'<rect width="{_WIDE}" height="{_HIGH + _TOP + _BOTTOM}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="40" fill="#555">{said}</text>',
        *_legend(), *_grid(),
        *(_drawing(places) if places else ()),
        f'<text x="{_LEFT + _inner() / 2:.1f}" y="{_TOP + _HIGH + 46}" text-anchor="middle" fill="#555">'
        "step up to which the recorded answers are kept</text>",
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _inner() -> int:
    return _WIDE - _LEFT - _RIGHT


def _x(at: float, count: int) -> float:
    """The middle of the column of a place."""
    return _LEFT + _inner() * (at + 0.5) / count


def _y(share: float) -> float:
    return _TOP + _HIGH * (1 - share)


def _legend() -> Iterator[str]:
    marks = (("#c0392b", "P(bad), with its 95 % interval"), ("#2c6fbb", "P(culprit)"))
    x = _WIDE - _RIGHT - 300
    for colour, text in marks:
        yield f'<rect x="{x}" y="31" width="12" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 17}" y="40" fill="#555">{text}</text>'
        x += 212


def _grid() -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDE - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{share:g}</text>'


def _drawing(places: Sequence[Likelihood]) -> Iterator[str]:
    count = len(places)
    wide = _inner() / count
    # Steps, not slopes: between two places there is nothing.
    upper = [(_x(at, count) + side * wide / 2, _y(one.high)) for at, one in enumerate(places) for side in (-1, 1)]
    lower = [(_x(at, count) + side * wide / 2, _y(one.low)) for at, one in enumerate(places) for side in (-1, 1)]
    middle = [(_x(at, count) + side * wide / 2, _y(one.bad)) for at, one in enumerate(places) for side in (-1, 1)]
    yield f'<polygon points="{_points([*upper, *reversed(lower)])}" fill="#c0392b" fill-opacity="0.15"/>'
    for at, one in enumerate(places):
        if one.culprit >= 0.001:
            x, y = _x(at, count) - wide * 0.3, _y(one.culprit)
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide * 0.6:.1f}" height="{_TOP + _HIGH - y:.1f}" '
                f'fill="#2c6fbb" fill-opacity="0.8"><title>{_told(one)}</title></rect>'
            )
    yield f'<polyline points="{_points(middle)}" fill="none" stroke="#c0392b" stroke-width="2"/>'
    every = max(1, -(-count // _TICKS))
    for at, one in enumerate(places):
        if at % every == 0:
            yield (
                f'<text x="{_x(at, count):.1f}" y="{_TOP + _HIGH + 28}" text-anchor="middle" fill="#555">'
                f"{escape(safe(one.at))}</text>"
            )
        if any(one.tried):
            yield (
                f'<circle cx="{_x(at, count):.1f}" cy="{_TOP + _HIGH + 9}" '
                f'r="{min(6.0, 1.5 + sum(one.tried) / 2):.1f}" fill="#555"><title>{_told(one)}</title></circle>'
            )


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _told(place: Likelihood) -> str:
    bad, good, lost = place.tried
    return escape(
        safe(f":{place.at}  P(culprit) {place.culprit:.3f}, P(bad) {place.bad:.2f} ({place.low:.2f} to ")
        + f"{place.high:.2f}), probes: {bad} bad, {good} good, {lost} skipped"
    )
