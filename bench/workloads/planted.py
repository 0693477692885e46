"""An agent that believes what it is told, and what it is told goes into its next question: one bad answer spoils all
that follows.

planted.py model URL STEPS      it asks a model
planted.py tool PLANTED STEPS   it asks a tool, whose answer number PLANTED is bad in the first process alone

It runs under either recorder. The peer wants its steps marked, and its session opened by the program; it has no
decorator for tools, so that its session's methods are called as its own executor calls them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

LIMIT = 1000
PEER = find_spec("lockstepd") is not None


class Overcharged(Exception):
    """What the bad answer leads to."""


def main(kind: str, where: str, steps: int) -> None:
    session: Any = contextlib.nullcontext()
    mark: Any = lambda label: contextlib.nullcontext()  # noqa: E731
    if PEER:
        from lockstepd.runtime import auto_session

        session = auto_session()
        mark = session.step
    owed, note = 0, ""
    with session, contextlib.ExitStack() as opened:
        ask = model(where, opened) if kind == "model" else tool(int(where), session)
        for number in range(1, steps + 1):
            with mark(f"call {number}"):
                told = ask(number, note)
            note = told["note"]
            owed = max(owed, told["owed"])
        if PEER:
            session.final_state["owed"] = owed
    settle(owed)


def settle(owed: int) -> None:
    if owed > LIMIT:
        raise Overcharged(owed)


type Ask = Callable[[int, str], dict[str, Any]]


def model(url: str, opened: contextlib.ExitStack) -> Ask:
    import httpx

    client = opened.enter_context(httpx.Client())

    def ask(number: int, note: str) -> dict[str, Any]:
        asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{number} {note}"}]}
        told: dict[str, Any] = json.loads(client.post(url, json=asked).json()["choices"][0]["message"]["content"])
        return told

    return ask


def tool(planted: int, session: Any) -> Ask:
    def look(number: int, note: str) -> dict[str, Any]:
        # A file that says whether it is still so: neither recorder knows of it, and both leave it alone.
        bad = number == planted and not os.path.exists(os.environ["MENDED"])
        with open(os.environ["MADE"], "a") as made:
            made.write(".")
        return {"note": f"{os.getpid()} {number}", "owed": 4000 if bad else 450}

    if not PEER:
        import lockstep

        return lockstep.tool(effect="read")(look)
    from lockstepd.core.events import EventKind

    def ask(number: int, note: str) -> dict[str, Any]:
        asked = {"call_id": str(number), "name": "look", "args": {"number": number, "note": note}}
        if session.mode_is_replaying:
            session.expect_exact(EventKind.TOOL_CALL, asked)
            told: dict[str, Any] = session.expect_exact(EventKind.TOOL_RESULT, None)["value"]
            return told
        session.emit(EventKind.TOOL_CALL, asked)
        value = look(number, note)
        answer = {"call_id": str(number), "ok": True, "value": value, "duration_ns": 0, "completion_index": number}
        session.emit(EventKind.TOOL_RESULT, answer)
        return value

    return ask


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
