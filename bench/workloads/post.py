"""Posts of 1.3 kB of JSON on one httpx connection.    post.py FIGURES URL BLOCKS CALLS"""

from __future__ import annotations

import asking
import httpx
from meter import Figures, arguments

WARM_UP = 20


def main(path: str, url: str, blocks: int, calls: int) -> None:
    figures = Figures(path)
    with httpx.Client() as client:
        for number in range(WARM_UP):
            client.post(url, json=asking.body(number)).json()
        for block in range(blocks):
            bodies = [asking.body(WARM_UP + block * calls + number) for number in range(calls)]
            with figures.block(calls):
                for body in bodies:
                    client.post(url, json=body).json()
    figures.write()


if __name__ == "__main__":
    main(*arguments(str, str, int, int))  # type: ignore[arg-type]
