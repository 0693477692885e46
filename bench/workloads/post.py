"""Posts of 1.3 kB of JSON on one connection.    post.py FIGURES CLIENT URL BLOCKS CALLS"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asking
from given import arguments
from meter import Figures

WARM_UP = 20


def main(path: str, client: str, url: str, blocks: int, calls: int) -> None:
    figures = Figures(path)
    warm = [asking.body(number) for number in range(WARM_UP)]
    rounds = [[asking.body(WARM_UP + block * calls + n) for n in range(calls)] for block in range(blocks)]
    {"httpx": by_httpx, "requests": by_requests, "aiohttp": by_aiohttp}[client](figures, url, warm, rounds)
    figures.write()


def by_httpx(figures: Figures, url: str, warm: Sequence[Any], rounds: Sequence[Sequence[Any]]) -> None:
    import httpx

    with httpx.Client() as client:
        for body in warm:
            client.post(url, json=body).json()
        for bodies in rounds:
            with figures.block(len(bodies)):
                for body in bodies:
                    client.post(url, json=body).json()


def by_requests(figures: Figures, url: str, warm: Sequence[Any], rounds: Sequence[Sequence[Any]]) -> None:
    import requests

    with requests.Session() as session:
        for body in warm:
            session.post(url, json=body).json()
        for bodies in rounds:
            with figures.block(len(bodies)):
                for body in bodies:
                    session.post(url, json=body).json()


def by_aiohttp(figures: Figures, url: str, warm: Sequence[Any], rounds: Sequence[Sequence[Any]]) -> None:
    import asyncio

    import aiohttp

    async def post() -> None:
        async with aiohttp.ClientSession() as session:
            for body in warm:
                async with session.post(url, json=body) as response:
                    await response.json()
            for bodies in rounds:
                with figures.block(len(bodies)):
                    for body in bodies:
                        async with session.post(url, json=body) as response:
                            await response.json()

    asyncio.run(post())


if __name__ == "__main__":
    main(*arguments(str, str, str, int, int))  # type: ignore[arg-type]
