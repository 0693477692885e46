"""Playwright: what a page sees in a replay, by four tools, and what recording and replaying a browser take.

    python bench/browsers.py [--quick] [--write]

`--write` puts the tables into docs/benchmarks.md. It is no module called `playwright`, which would hide the real one.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "playwright"))

import page
import tables
from browser_site import Site
from contenders import BARE, OURS, WORKLOADS, run
from observing import OBSERVABLES
from tables import Row

from lockstep_playwright.browsers import find_chromium


class Sizes(msgspec.Struct, frozen=True):
    """How much is done: recordings, each replayed once, by each tool; page loads; runs of fifty actions."""

    replays: int
    loads: int
    wires: int


FULL = Sizes(replays=10, loads=5, wires=5)
QUICK = Sizes(replays=1, loads=1, wires=1)

WAYS = {
    "socket": "Lockstep, own socket",
    "sessions": "Lockstep, Playwright's sessions",
    "har": "HAR: `record_har_path`, `route_from_har`",
    "route": "a log of responses, `context.route`, `route_web_socket`",
}


class Fidelity(msgspec.Struct, frozen=True):
    """One tool's replays: how many observables were equal in each, how often one was not, and what left the browser."""

    way: str
    equal: Sequence[int]
    differing: Counter[str]
    requests: Sequence[int]
    connects: Sequence[int]

    def cells(self) -> tuple[str, ...]:
        low, high = min(self.equal), max(self.equal)
        runs = len(self.equal)
        others = ", ".join(f"{name} {count}/{runs}" for name, count in sorted(self.differing.items()))
        shown = f"{low}" if low == high else f"{low} to {high}"
        equal = f"{shown} of {len(OBSERVABLES)}"
        return WAYS[self.way], equal, _range(self.requests), _range(self.connects), others or "-"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _told(workload: str, *words: object) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        run([sys.executable, WORKLOADS / workload, *words, figures])
        return json.loads(figures.read_text())


def fidelity(sizes: Sizes) -> Iterator[Fidelity]:
    """What pages see, tool by tool."""
    for way in WAYS:
        found = [_told("browse_observables.py", way) for _ in range(sizes.replays)]
        yield Fidelity(
            way,
            [len(OBSERVABLES) - len(each["differing"]) for each in found],
            Counter(name for each in found for name in each["differing"]),
            [len(each["requests"]) for each in found],
            [each["connects"] for each in found],
        )


def loads(sizes: Sizes) -> Iterator[Row]:
    """A page of a hundred requests."""
    found = _told("browse_load.py", sizes.loads)
    plain = found["plain"]
    for page_name in plain[0]:
        yield Row(f"a page of 100 requests, answered {page_name}", "ms", [each[page_name] * 1e3 for each in plain])
        for name, title in (("socket", "own socket"), ("sessions", "Playwright's sessions")):
            for verb, most in (("recorded", 1.3), ("replayed", 1.0)):
                pairs = zip(found[f"{name} {verb}"], plain, strict=True)
                ratios = [each[page_name] / bare[page_name] for each, bare in pairs]
                yield Row(f"the same, {verb} over {title} / plain", "", ratios, most)


def wires(sizes: Sizes) -> Iterator[Row]:
    """Fifty actions as they are, under `lockstep record`, and replayed without a browser."""
    titles = {"sync": "sync API", "async": "async API", "pages": "async API, five pages at once"}
    chromium = find_chromium()
    for how, title in titles.items():
        live, recorded, again = [], [], []
        for _ in range(sizes.wires):
            with tempfile.TemporaryDirectory() as folder, Site() as site:
                figures = Path(folder, "figures.json")
                command = [WORKLOADS / "browse_wire.py", figures, how, site.url, chromium]
                for act, took in ((BARE.record, live), (OURS.record, recorded), (OURS.replay, again)):
                    if act == OURS.replay:
                        site.kill()
                    act(Path(folder), command)
                    took.append(statistics.median(json.loads(figures.read_text())["wall"]))
        yield Row(f"50 actions, {title}: live", "ms", [each / 1e3 for each in live])
        yield Row("the same, recorded / live", "", [one / two for one, two in zip(recorded, live, strict=True)])
        yield Row("its replay, without a browser", "ms", [each / 1e3 for each in again])
        yield Row("live / replayed", "", [one / two for one, two in zip(live, again, strict=True)], least=50)


def shown[T: (Fidelity, Row)](items: Iterator[T], show: Callable[[str], object]) -> list[T]:
    """All of them; each line is shown as it is known."""
    found = []
    for item in items:
        found.append(item)
        show("   ".join(filter(None, item.cells())))
    return found


def markdown(seen: Sequence[Fidelity], rows: Sequence[Row]) -> str:
    """Both tables."""
    heads = ("", "observables equal", "requests that left", "connects", "what differed, in how many replays")
    first = tables.markdown(heads, ("---", "--:", "--:", "--:", "---"), (each.cells() for each in seen))
    return f"{first}\n\n{tables.of_rows(rows)}"


def main() -> None:
    asked = page.asked(__doc__)
    sizes = QUICK if asked.quick else FULL

    def show(text: str) -> None:
        print(text, flush=True)

    seen = shown(fidelity(sizes), show)
    rows = [*shown(loads(sizes), show), *shown(wires(sizes), show)]
    if asked.write:
        page.write("playwright", markdown(seen, rows), {"playwright": version("playwright"), "Chromium": _chromium()})


def _chromium() -> str:
    from lockstep_playwright.hosting import Wanted, opened

    with opened(Wanted(port=False)) as host:
        return str(host.browser.version)


if __name__ == "__main__":
    main()
