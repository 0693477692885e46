"""The tables that the programs print and put into docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import msgspec
from rounds import figure


class Row(msgspec.Struct, frozen=True):
    """One line: a figure in every round. `most`, `least`: it is at most, or at least, this."""

    title: str
    unit: str
    figures: Sequence[float]
    most: float | None = None
    least: float | None = None

    def cells(self) -> tuple[str, ...]:
        middle = statistics.median(self.figures)
        goal = ""
        if self.most is not None:
            goal = f"≤ {self.most:g}: {'yes' if middle <= self.most else 'NO'}"
        if self.least is not None:
            goal = f"≥ {self.least:g}: {'yes' if middle >= self.least else 'NO'}"
        return self.title, self.unit, figure(self.figures), goal


def of_rows(rows: Iterable[Row]) -> str:
    """These lines, in Markdown."""
    return markdown(("", "unit", "Lockstep", "goal"), ("---", "---", "--:", "---"), (row.cells() for row in rows))


def markdown(heads: Sequence[str], ruler: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table. `ruler`: how each column is aligned, as Markdown says it."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ruler, *lines))
