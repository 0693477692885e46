"""Calls of a tool that answers 200 bytes.    tool.py FIGURES BLOCKS CALLS"""

from __future__ import annotations

from meter import Figures, arguments

import lockstep

TEXT = "0123456789" * 20


@lockstep.tool(effect="read")
def get_order(order: int) -> dict[str, object]:
    return {"order": order, "note": TEXT}


def main(path: str, blocks: int, calls: int) -> None:
    figures = Figures(path)
    for number in range(calls // 10):
        get_order(number)
    for block in range(blocks):
        with figures.block(calls):
            for number in range(calls):
                get_order(block * calls + number)
    figures.write()


if __name__ == "__main__":
    main(*arguments(str, int, int))  # type: ignore[arg-type]
