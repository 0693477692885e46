"""A streamed answer: when its first event arrives, and its last.    stream.py FIGURES URL TIMES"""

from __future__ import annotations

import asking
import httpx
from given import arguments
from meter import Figures, wall


def main(path: str, url: str, times: int) -> None:
    figures = Figures(path)
    with httpx.Client() as client:
        client.post(url, json=asking.body(0)).json()
        for number in range(times):
            began = wall()
            with client.stream("POST", url, json={**asking.body(number), "stream": True}) as response:
                events = (line for line in response.iter_lines() if line.startswith("data: "))
                next(events)
                figures.add("first", (wall() - began) / 1e3)
                for _ in events:
                    pass
            figures.add("total", (wall() - began) / 1e3)
    figures.write()


if __name__ == "__main__":
    main(*arguments(str, str, int))  # type: ignore[arg-type]
