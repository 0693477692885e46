"""The secrets of a native run: none in the store, all of them back exactly, whoever wrote and whoever reads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.session.native.conftest import META, RUN, answer, served

from lockstep.errors import Divergence
from lockstep.log.model import Kind, Status
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep.session.native.record import Record
from lockstep.session.native.server import Server

OLD, NEW = "sk-proj-" + "a1B2" * 10, "sk-proj-" + "c3D4" * 10


def opened(path: Path) -> Journal:
    return Journal.open(str(path), RUN, META)


def bytes_of(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*") if each.is_file())


def state(journal: Journal, value: Any) -> None:
    journal.step("main", "plan", "loop", journal.hide(value), b"k")


def states(path: Path) -> list[Any]:
    """All states, as a process that comes later gets them back."""
    journal = opened(path)
    reader = journal.reader()
    found = [journal.reveal(event.body) for event in reader.events(reader.main) if event.kind is Kind.STEP]
    journal.close()
    return found


def test_no_secret_reaches_the_store_and_all_of_them_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OLD)
    path = tmp_path / "s.db"
    journal = opened(path)
    told = {"messages": [f"the key is {OLD}", {"password": "hunter2horse"}], "n": 1}
    turn = journal.begin_turn("invoke", {"input": told})
    state(journal, told)
    answer(journal, told, f"got {OLD}")
    turn.end(Status.OK, told)
    journal.close()
    data = bytes_of(path)
    assert OLD.encode() not in data and b"hunter2horse" not in data
    assert states(path) == [told]


def test_a_state_has_the_key_of_its_time_also_after_that_was_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    for key in (OLD, NEW):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        journal = opened(path)
        state(journal, {"key": key, "text": f"Bearer {key}!"})
        journal.close()
    assert NEW.encode() not in bytes_of(path)
    assert states(path) == [{"key": key, "text": f"Bearer {key}!"} for key in (OLD, NEW)]


def test_processes_that_have_another_key_under_one_name_never_get_each_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    journals = []
    for key in (OLD, NEW):  # both begin before either has stored anything
        monkeypatch.setenv("OPENAI_API_KEY", key)
        journals.append((key, opened(path)))
    for key, journal in journals:
        state(journal, {"text": f"with {key}"})
    for key, journal in journals:
        state(journal, {"text": f"again with {key}"})
        journal.close()
    assert states(path) == [{"text": f"{how}with {key}"} for how in ("", "again ") for key in (OLD, NEW)]


def test_a_process_that_is_open_reads_secrets_that_another_one_has_found_since(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    journal = opened(path)
    code = f"""
        import sys
        from lockstep.session.native import Journal
        journal = Journal.open(sys.argv[1], "test/t", {{}})
        journal.step("main", "plan", "loop", journal.hide({{"text": "use {NEW}"}}), b"k")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], check=True, timeout=60)
    reader = journal.reader()
    (step,) = [event for event in reader.events(reader.main) if event.kind is Kind.STEP]
    assert journal.reveal(step.body) == {"text": f"use {NEW}"}
    state(journal, {"text": f"use {NEW}"})
    journal.close()
    assert states(path) == [{"text": f"use {NEW}"}] * 2


def test_what_looks_like_a_placeholder_comes_back_as_the_programs_own_words(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    journal = opened(path)
    state(journal, {"text": f"lockstep-secret.openai-1 and {OLD}"})
    (step,) = [event for event in journal.reader().events(journal.reader().main) if event.kind is Kind.STEP]
    told = {"text": f"lockstep-secret.{step.body['text'][-30:]}"}  # type: ignore[index, call-overload]
    state(journal, told)
    journal.close()
    assert states(path) == [{"text": f"lockstep-secret.openai-1 and {OLD}"}, told]


def test_a_replay_with_a_rotated_key_asks_the_same_and_gets_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    monkeypatch.setenv("OPENAI_API_KEY", OLD)
    journal = opened(path)
    turn = journal.begin_turn("invoke", {})
    answer(journal, {"key": OLD, "q": 1}, f"for {OLD}")
    turn.end(Status.OK, None)
    journal.close()
    monkeypatch.setenv("OPENAI_API_KEY", NEW)
    with open_store(str(path)) as store:
        server = Server(Record(store.run(RUN)), str(path))
        calls = server.turn(server.record.turns[0])
        assert served(calls, {"key": NEW, "q": 1}) == [(f"for {OLD}", Status.OK)]
        calls.finish()
        assert server.report().identical


def test_a_difference_quotes_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    monkeypatch.setenv("OPENAI_API_KEY", OLD)
    journal = opened(path)
    answer(journal, {"text": f"a {OLD}"}, 1)
    journal.close()
    with open_store(str(path)) as store:
        calls = Server(Record(store.run(RUN)), str(path)).stretch(0, 1 << 40)
        with pytest.raises(Divergence) as caught:
            served(calls, {"text": f"b {OLD} {NEW}"})
    told = repr(caught.value.difference)
    assert OLD not in told and NEW not in told and "lockstep-secret" in told


def test_with_a_run_that_is_replaced_go_its_secrets_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(str(path), create=True) as store:
        vaults = []
        for name, key in ((RUN, OLD), ("test/new", NEW)):
            journal = Journal.open(store, name, META)
            state(journal, {"text": f"use {key}"})
            vaults.append(journal.meta["vault"])
            journal.close()
        store.replace_run(RUN, "test/new")
    assert [each.name for each in (tmp_path / "s.db.vault").iterdir()] == vaults[1:]
    assert states(path) == [{"text": f"use {NEW}"}]
