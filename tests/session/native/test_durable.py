"""What of a native run survives a kill, a fork and a store that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.session.native.conftest import META, RUN, answer, begin
from tests.session.native.test_journal import wait_for

from lockstep.errors import StoreError
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import open_store
from lockstep.log.verify import verify
from lockstep.session.native import Journal

AGENT = """
    import os, signal, sys, time
    from lockstep.session.native import Journal

    journal = Journal.open(sys.argv[1], "test/t", {"adapter": "test"})
    turn = journal.begin_turn("invoke", {})
    first = journal.step("main", "input", "input", {"n": 0}, b"0")

    def ask(request, value):
        call = journal.call("main/plan", "model")
        call.ask("gpt-4o", request, request)
        call.end("ok", value)
"""


def killed(path: Path, body: str) -> list[Event]:
    """The events of a run whose process killed itself."""
    code = textwrap.dedent(AGENT) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with open_store(str(path)) as store:
        reader = store.run(RUN)
        assert reader.info.state is RunState.INTERRUPTED and verify(reader).consistent
        return list(reader.events(reader.main))


def test_a_kill_right_after_a_step_loses_nothing_that_came_before_it(tmp_path: Path) -> None:
    events = killed(
        tmp_path / "s.db",
        """
        ask("q", "a")
        journal.step("main", "plan", "loop", {"n": 1}, b"1", first)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert [event.kind for event in events[2:]] == [Kind.BEGIN, Kind.STEP, Kind.BEGIN, Kind.END, Kind.STEP]


def test_a_kill_after_a_call_leaves_the_call_if_it_was_given_the_time_of_a_commit(tmp_path: Path) -> None:
    events = killed(
        tmp_path / "s.db",
        """
        ask("q", "a")
        from lockstep.log.store import open_store
        reader = open_store(sys.argv[1]).run("test/t")
        while not any(event.what == "model" for _, event in reader.heads(reader.main)):
            pass
        call = journal.call("main/plan", "model")
        call.ask("gpt-4o", "r", "r")
        while not any(event.kind == 3 and event.pos > 5 for _, event in reader.heads(reader.main)):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert [event.body for event in events if event.kind is Kind.END] == ["a"]
    assert [event.name for event in events if event.kind is Kind.BEGIN] == ["invoke", "gpt-4o", "gpt-4o"]


def test_two_processes_write_to_one_run_and_every_call_keeps_its_own_parts(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    journal = Journal.open(str(path), RUN, META)
    code = textwrap.dedent(AGENT) + textwrap.dedent(
        """
        calls = []
        for number in range(40):
            call = journal.call(f"main/{os.getpid()}", "model")
            call.ask("gpt-4o", number, number)
            calls.append(call)
            call.part({"item": number})
        for number, call in enumerate(calls):
            call.end("ok", [os.getpid(), number])
        turn.end("ok", None)
        journal.close()
        """
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    for number in range(40):
        answer(journal, number, ["here", number], parts=({"item": number},), lane="main/here")
    assert [other.wait(60) for other in others] == [0, 0]
    journal.close()
    with open_store(str(path)) as store:
        reader = store.run(RUN)
        assert verify(reader).consistent
        events = list(reader.events(reader.main))
    begun = {event.pos: event for event in events if event.kind is Kind.BEGIN and event.what == "model"}
    assert len(begun) == 120
    for event in events:
        if event.kind in (Kind.PART, Kind.END) and event.of in begun:
            body: Any = begun[event.of].body
            told: Any = event.body
            assert event.lane == begun[event.of].lane
            assert body["request"] == (told["item"] if event.kind is Kind.PART else told[1])


def test_a_forked_child_goes_on_with_the_run_and_stores_nothing_of_its_parent_twice(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    journal = Journal.open(str(path), RUN, META)
    answer(journal, "before", "x")
    begin(journal, "open")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # CPython warns of a fork with threads
        child = os.fork()
    if not child:
        code = 1
        try:
            answer(journal, "in the child", "y")
            code = 0 if journal.flush() else 2
        finally:
            os._exit(code)
    answer(journal, "in the parent", "z")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    journal.close()
    with open_store(str(path)) as store:
        reader = store.run(RUN)
        assert verify(reader).consistent
        asked: Any = [event.body for event in reader.events(reader.main) if event.kind is Kind.BEGIN]
    assert sorted(body["request"] for body in asked) == ["before", "in the child", "in the parent", "open"]


def test_many_threads_record_at_once(tmp_path: Path) -> None:
    journal = Journal.open(str(tmp_path / "s.db"), RUN, META)

    def strand(number: int) -> None:
        for request in range(20):
            answer(journal, request, number, lane=f"main/{number}")
            if request % 5 == 0:
                journal.step("main", str(number), "loop", {}, b"")

    threads = [threading.Thread(target=strand, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    with open_store(str(tmp_path / "s.db")) as store:
        reader = store.run(RUN)
        events = list(reader.events(reader.main))
    begun = {event.pos: event.lane for event in events if event.kind is Kind.BEGIN}
    assert len(begun) == 120
    assert all(begun[event.of] == event.lane == f"main/{event.body}" for event in events if event.kind is Kind.END)


class Full:
    """A disk that is full for a while, in the place of a journal's stream."""

    def __init__(self, journal: Journal) -> None:
        self.real: Any = journal._shared
        self.full = True
        journal._shared = self  # type: ignore[assignment]

    def append(self, events: Any) -> Any:
        if self.full:
            from lockstep.errors import Code, NoRoom

            raise NoRoom(Code.UNWRITABLE, "the disk is full")
        return self.real.append(events)

    def close(self) -> None:
        self.real.close()


def test_a_store_that_cannot_be_written_for_a_while_costs_no_call_but_a_step_is_told(tmp_path: Path) -> None:
    journal = Journal.open(str(tmp_path / "s.db"), RUN, META)
    disk = Full(journal)
    answer(journal, "q", "a")
    with pytest.raises(StoreError, match="LS203"):
        journal.step("main", "plan", "loop", {}, b"1")
    assert not journal.flush() and journal.faults
    disk.full = False
    wait_for(lambda: not journal._ready)  # it is tried again without anything new
    answer(journal, "r", "b")
    assert journal.flush()
    journal.close()
    with open_store(str(tmp_path / "s.db")) as store:
        reader = store.run(RUN)
        assert [event.body for event in reader.events(reader.main) if event.kind is Kind.END] == ["a", "b"]
        assert not [event for event in reader.events(reader.main) if event.kind is Kind.STEP]


def test_what_a_process_has_told_is_stored_when_it_ends(tmp_path: Path) -> None:
    code = textwrap.dedent(AGENT) + 'ask("q", "a")\n'
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s.db")], check=True, timeout=60)
    with open_store(str(tmp_path / "s.db")) as store:
        reader = store.run(RUN)
        assert [event.body for event in reader.events(reader.main) if event.kind is Kind.END] == ["a"]


def test_one_turn_at_a_time_has_a_branch_and_the_second_is_told(tmp_path: Path) -> None:
    journal = Journal.open(str(tmp_path / "s.db"), RUN, META)
    other = Journal.open(str(tmp_path / "s.db"), RUN, META)
    first = journal.begin_turn("invoke", {})
    second = other.begin_turn("invoke", {})
    assert first.held and not second.held
    first.end(Status.OK, 1)
    assert not journal.is_turn_held
    assert other.begin_turn("invoke", {}).held


def test_what_a_call_tells_after_the_journal_was_closed_is_stored_all_the_same(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db"), create=True) as store:
        journal = Journal.open(store, RUN, META)
        call = begin(journal, "q")
        journal.close()
        call.end(Status.OK, "a")
        assert journal.flush() and not journal.faults
        reader = store.run(RUN)
        assert [event.body for event in reader.events(reader.main) if event.kind is Kind.END] == ["a"]


def test_a_run_that_was_deleted_meanwhile_costs_the_program_nothing_but_a_step_is_told(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db"), create=True) as store:
        journal = Journal.open(store, RUN, META)
        call = begin(journal, "q")
        journal.flush()
        store.delete_run(RUN)
        call.end(Status.OK, "a")
        assert journal.flush() and "LS205" in journal.faults[0]
        with pytest.raises(StoreError, match="LS205"):
            journal.step("main", "plan", "loop", {}, b"1")
