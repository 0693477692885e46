"""The agent of `bench/planted` as a program: it asks for one answer after the other over HTTP and counts a total.

clerk.py URL STEPS

It runs under the peer, which wants its steps marked and its session opened by the program.
"""

from __future__ import annotations

import sys

import httpx
from lockstepd.runtime import auto_session


def main(url: str, steps: int) -> None:
    session = auto_session()
    total, wanted = 0, 0
    with session, httpx.Client() as client:
        for number in range(1, steps + 1):
            with session.step(f"answer {number}"):
                asked = {"step": number, "total": total, "wanted": wanted}
                told = client.post(url, json=asked).json()
            total, wanted = told["total"], told["wanted"]
        session.final_state["total"] = total


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
