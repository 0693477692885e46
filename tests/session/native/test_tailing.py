"""A fork by re-execution: what comes past its cut while the part before is still served, from threads and loops."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.session.native.conftest import RUN, answer

from lockstep.errors import Code
from lockstep.log.model import Status
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session.native.forking import told
from lockstep.session.native.tailing import Tailing
from lockstep.session.policy import Declared, Policy
from lockstep.session.tail import Plan

READS = Declared("read", "said here")


@pytest.fixture
def calls(run: Any) -> Tailing:
    """A fork of a run in which two strands asked one thing each, left between their answers."""
    turn = run.journal.begin_turn("kickoff", {})
    answer(run.journal, "first", "one", lane="desk/a")
    cut = run.journal.step("desk", "a", "own", {"channels": {}, "whole": True}, b"1")
    answer(run.journal, "second", "two", lane="desk/b")
    turn.end(Status.OK, None)
    run.journal.flush()
    plan = Plan("fork", "main", ":0", cut, cut, (), Policy(live=("*",)))
    journal = run.journal.fork("fork", cut, latest=False, origin=":0", told=told(plan))
    return Tailing(journal, run.record(), plan, run.path, crossed=lambda: journal.begin_turn("kickoff", {}))


def asked(calls: Tailing, lane: str, question: str) -> Any:
    call = calls.call(lane, "model")
    call.ask("gpt-4o", question, question, declared=READS)
    return call


def test_a_thread_waits_until_all_before_the_cut_has_been_done(calls: Tailing) -> None:
    went: list[float] = []

    def early() -> None:
        call = asked(calls, "desk/b", "second")
        call.ready()
        went.append(time.monotonic())
        assert call.live
        call.end(Status.OK, "three")

    thread = threading.Thread(target=early)
    thread.start()
    served = asked(calls, "desk/a", "first")
    served.ready()
    assert served.take().value == "one"
    time.sleep(0.2)
    assert not went
    before = time.monotonic()
    calls.stepped()
    thread.join(10)
    assert went[0] >= before
    assert calls.gate.is_open


def test_a_call_that_keeps_its_loop_waits_for_a_moment_only(calls: Tailing) -> None:
    async def both() -> str:
        call = asked(calls, "desk/b", "second")
        call.ready()  # what is served waits for this loop
        call.end(Status.OK, "three")
        served = asked(calls, "desk/a", "first")
        await served.aready()
        return str((await served.atake()).value)

    began = time.monotonic()
    assert asyncio.run(both()) == "one"
    assert time.monotonic() - began < 10
    calls.stepped()
    assert calls.gate.is_open
    calls.journal.flush()
    with open_store(calls.journal._store.path) as store:
        names = [effect.lane for step in Timeline(store.run(RUN, "fork")).steps for effect in step.effects]
    assert names == ["desk/a", "desk/b"]


def test_who_waits_is_told_where_nobody_gets_on(calls: Tailing) -> None:
    calls.stuck(1)
    difference = calls.latch.difference
    assert difference is not None
    assert (difference.code, difference.lane) == (Code.MISSING, "desk/a")
