"""A program is recorded, one of its answers is edited, and it is served the edited one by the tap of its client.

Each edit is a fork of the recorded run, and the fork is replayed.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from lockstep.debugger import calls, edits, fork, paths
from lockstep.debugger.edits import Edit
from lockstep.errors import Divergence
from lockstep.log.model import Status, Value
from lockstep.log.store import locate, open_store
from lockstep.log.timeline import Timeline
from lockstep.session.policy import Policy
from lockstep.session.session import finish, start_fork, start_recording, start_replay
from lockstep.testing import Provider

POLICY = Policy()

_KEY = re.compile(r"sk-lockstep\w+|lockstep-secret\.[\w-]+\.")

type Change = tuple[str, Value]


class Editing:
    """`record` a program, look at what it `got`, and run it with an `edit`."""

    def __init__(self) -> None:
        self.run = ""

    def record(self, program: Callable[[], Any]) -> Any:
        """Returns what the program returns, or raises."""
        session = start_recording(None, "case", {})
        self.run = session.run
        error: BaseException | None = None
        try:
            return program()
        except Exception as raised:
            error = raised
            raise
        finally:
            report = finish(session, None, error)
            assert report.faults == ()

    def shown(self, address: str = "1") -> Any:
        """The outcome at an address, as `show --json` prints it."""
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run))
            outcome = calls.read(timeline, edits.find(timeline, address)).outcome
        return msgspec.json.decode(msgspec.json.encode(outcome))

    def pieces(self, *changes: tuple[str, Value], at: str = "1") -> tuple[edits.Given, ...]:
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run))
            return edits.made(timeline, edits.find(timeline, at), changes)

    def served(self, program: Callable[[], Any], *changes: Change, at: str = "1") -> Any:
        """Forks at that step with those edits of what closed it; returns what the program returns, or raises. The
        branch is replayed too: it must be the same run again."""
        return self.served_all(program, {at: changes})

    def served_all(self, program: Callable[[], Any], changes: dict[str, tuple[Change, ...]]) -> Any:
        """The same with edits of several steps, of which the last one is forked."""
        asked = [Edit(at, path, value) for at, each in changes.items() for path, value in each]
        run, plan = fork.planned(locate(None), f"{self.run}:{[*changes][-1]}", asked, POLICY, "fork")
        session = start_fork(None, run, plan, deadline=20.0)
        forked = _ran(program)
        report = finish(session, None, forked.error)
        assert report.difference is None and report.faults == () and report.refused == ()
        assert (report.answers, report.live, report.unreached) == ({"edited": len(changes)}, 0, ())
        self.again(program, f"{run}@{plan.branch}", forked)
        for at, each in changes.items():
            self._shows(plan.branch, at, each)
        return forked.given()

    def _shows(self, branch: str, at: str, changes: tuple[Change, ...]) -> None:
        """`show` prints of the branch what the edits asked for, in so far as the program has read it."""
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run, branch))
            call = calls.read(timeline, edits.find(timeline, at))
        if call.status is Status.CLOSED:
            return
        expected = self.shown(at)
        for path, value in changes:
            if not path.startswith("headers.") and not (path.startswith("body") and call.kind == "model"):
                expected = paths.put(expected, paths.parse(path), value, added=("tool_calls", "error"))
        if call.kind == "model" and isinstance(expected, str):
            expected = {"content": expected}
        assert _telling(call.outcome) == _telling(expected)

    def again(self, program: Callable[[], Any], branch: str, forked: Ran) -> None:
        session = start_replay(None, branch, deadline=20.0)
        replayed = _ran(program)
        report = finish(session, None, replayed.error if not isinstance(replayed.error, Divergence) else None)
        assert report.difference is None, report.difference
        assert report.identical
        assert (replayed.value, repr(replayed.error)) == (forked.value, repr(forked.error))


def _telling(outcome: Any) -> Any:
    """Of an outcome what an edit must bring there exactly: headers count bytes, new calls get ids."""
    if isinstance(outcome, dict) and "status" in outcome:
        kept = {name: _telling(outcome[name]) for name in ("body", "error") if outcome.get(name) is not None}
        return {"status": outcome["status"]} | (kept if outcome["status"] != 204 else {})
    if isinstance(outcome, dict) and not outcome.keys() - {"role", "content", "tool_calls"}:
        wanted = [(call["name"], call.get("arguments", {})) for call in outcome.get("tool_calls") or ()]
        return {"content": outcome.get("content") or "", "tool_calls": wanted}
    if isinstance(outcome, dict) and outcome.get("$") == "raise":
        return outcome["type"], outcome.get("args") or [outcome.get("message", "")]
    if outcome == {"$": "generator", "items": []}:
        return None  # a generator that handed out nothing, and a function that returned None, are one in the record
    return json.loads(_KEY.sub("KEY", json.dumps(outcome)))


@dataclasses.dataclass
class Ran:
    """What a program returned, or raised."""

    value: Any = None
    error: BaseException | None = None

    def given(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _ran(program: Callable[[], Any]) -> Ran:
    try:
        return Ran(program())
    except BaseException as error:
        return Ran(error=error)


@pytest.fixture
def editing() -> Editing:
    return Editing()


@pytest.fixture
def web() -> Iterator[Provider]:
    with Provider() as started:
        yield started
