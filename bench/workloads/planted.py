"""An agent that believes what it is told, and what it is told goes into its next question: one bad answer spoils all
that follows.    planted.py URL STEPS

It runs under either tool. The peer wants its steps marked, and its session opened by the program.
"""

from __future__ import annotations

import contextlib
import json
from importlib.util import find_spec
from typing import Any

import httpx
from given import arguments

LIMIT = 1000


class Overcharged(Exception):
    """What the bad answer leads to."""


def main(url: str, steps: int) -> None:
    session: Any = contextlib.nullcontext()
    mark: Any = lambda label: contextlib.nullcontext()  # noqa: E731
    if find_spec("lockstepd") is not None:
        from lockstepd.runtime import auto_session

        session = auto_session()
        mark = session.step
    owed, note = 0, ""
    with session, httpx.Client() as client:
        for number in range(steps):
            with mark(f"call {number}"):
                asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{number} {note}"}]}
                said = client.post(url, json=asked).json()["choices"][0]["message"]["content"]
            told = json.loads(said)
            note = told["note"]
            owed = max(owed, told["owed"])
        if hasattr(session, "final_state"):
            session.final_state["owed"] = owed
    settle(owed)


def settle(owed: int) -> None:
    if owed > LIMIT:
        raise Overcharged(owed)


if __name__ == "__main__":
    main(*arguments(str, int))  # type: ignore[arg-type]
