"""Calls of a tool that answers so many bytes.    tool.py FIGURES BLOCKS CALLS SIZE"""

from __future__ import annotations

from collections.abc import Callable

import asking
from by_hand import done, tool
from given import arguments
from meter import Figures


def main(path: str, blocks: int, calls: int, size: int) -> None:
    texts: list[str] = []

    @tool
    def get_order(order: int) -> dict[str, object]:
        return {"order": order, "note": texts[order]}

    figures = Figures(path)
    texts += [asking.words(size, number) for number in range(calls)]
    measure(figures, blocks, calls, get_order)
    figures.write()


def measure(figures: Figures, blocks: int, calls: int, get_order: Callable[[int], object]) -> None:
    if blocks:
        for number in range(calls // 10):
            get_order(number)
    done()
    for _ in range(blocks):
        with figures.block(calls):
            for number in range(calls):
                get_order(number)
            done()


if __name__ == "__main__":
    main(*arguments(str, int, int, int))  # type: ignore[arg-type]
