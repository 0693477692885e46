"""What cannot be kept is told once, with its code and channel, and ends the turn at the next task."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from saved_graphs import line, thread

from lockstep.errors import Code, StoreError
from lockstep_langgraph import LockstepCheckpointer
from lockstep_langgraph.stored import StoredBook

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]


def breaks_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> dict[str, int]:
    """The store takes so many steps, and then none any more."""
    plain = StoredBook.step
    seen = {"left": steps}

    def step(self: Any, *told: Any) -> int:
        if seen["left"] <= 0:
            raise StoreError(Code.UNWRITABLE, "the disk is full")
        seen["left"] -= 1
        return plain(self, *told)

    monkeypatch.setattr(StoredBook, "step", step)
    return seen


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_put_that_fails_ends_the_turn_soon_and_is_told_once_and_short(
    saver: Saver, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    ran: list[str] = []
    names = [f"n{number}" for number in range(30)]
    nodes = {name: (lambda state, name=name: (ran.append(name), {"seen": [name]})[1]) for name in names}
    graph = line(saver, *names, **nodes)
    breaks_after(monkeypatch, 4)
    with pytest.raises(StoreError) as failed:
        if half == "async":
            asyncio.run(graph.ainvoke({"seen": []}, thread()))
        else:
            graph.invoke({"seen": []}, thread())
    assert failed.value.code is Code.UNWRITABLE
    assert "thread 't'" in str(failed.value)
    assert "the disk is full" in str(failed.value)
    assert len(ran) <= 4
    assert len("".join(traceback.format_exception(failed.value)).splitlines()) < 100


def test_a_store_that_is_none_is_told_before_any_task_runs(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("no store\n" * 500)
    ran: list[str] = []
    saver = LockstepCheckpointer(tmp_path / "notes.db")
    graph = line(saver, *"abcdefgh", **{name: lambda state: ran.append("a task") for name in "abcdefgh"})
    with pytest.raises(StoreError) as failed:
        graph.invoke({"seen": []}, thread())
    assert (failed.value.code, ran) == (Code.NOT_A_STORE, [])
    assert len("".join(traceback.format_exception(failed.value)).splitlines()) < 100
    saver.close()


def test_after_the_fault_the_thread_is_as_it_was_and_no_finished_task_runs_again(
    saver: Saver, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    nodes = {name: (lambda state, name=name: (ran.append(name), {"seen": [name]})[1]) for name in "abc"}
    graph = line(saver, *"abc", **nodes)
    seen = breaks_after(monkeypatch, 3)
    with pytest.raises(StoreError):
        graph.invoke({"seen": ["in"]}, thread())
    assert ran == ["a", "b"]
    for each in (saver, opened()):
        newest = next(each.list(thread()))
        assert newest.checkpoint["channel_values"]["seen"] == ["in", "a"]
        assert ("seen", ["b"]) in [(channel, value) for _, channel, value in newest.pending_writes or ()]
    seen["left"] = 100
    assert graph.invoke(None, thread())["seen"] == ["in", "a", "b", "c"]
    assert ran == ["a", "b", "c"]


def test_a_value_that_cannot_be_stored_is_told_with_its_channel(saver: Saver) -> None:
    def opens(state: Any) -> Any:
        return {"seen": ["fine", open("/dev/null")]}

    with pytest.raises(StoreError, match=r"seen\[1\]") as failed:
        line(saver, "a", a=opens).invoke({"seen": []}, thread())
    assert failed.value.code is Code.UNSTORABLE
    assert "TextIOWrapper" in str(failed.value)


def test_the_steps_before_it_are_kept(saver: Saver, opened: Opened) -> None:
    def opens(state: Any) -> Any:
        return {"word": open("/dev/null")}

    with pytest.raises(StoreError, match="word"):
        line(saver, "a", "b", "c", b=opens).invoke({"seen": []}, thread())
    for each in (saver, opened()):
        assert line(each, "a", "b", "c").get_state(thread()).values["seen"] == ["a"]


def test_a_store_that_is_none_is_refused_with_the_way_out(tmp_path: Any) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no store")
    graph = line(LockstepCheckpointer(str(path)), "a")
    with pytest.raises(StoreError) as failed:
        graph.invoke({"seen": []}, thread())
    assert failed.value.code is Code.NOT_A_STORE
    assert path.read_text() == "no store"


def test_a_strategy_that_is_none_is_refused(saver: Saver) -> None:
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["t"], strategy="keep_all")


@pytest.mark.parametrize("what", ["delete_thread", "prune", "copy_thread"])
def test_a_thread_is_not_taken_from_under_a_turn(saver: Saver, what: str) -> None:
    def work(state: Any) -> Any:
        given: dict[str, tuple[Any, ...]] = {"delete_thread": ("t",), "prune": (["t"],), "copy_thread": ("other", "t")}
        with pytest.raises(StoreError) as failed:
            getattr(saver, what)(*given[what])
        return {"seen": [str(failed.value.code)]}

    line(saver, "a").invoke({"seen": []}, thread("other"))
    graph = line(saver, "work", "rest", work=work)
    assert graph.invoke({"seen": []}, thread())["seen"] == ["LS203", "rest"]
    saver.delete_thread("t")
    assert graph.get_state(thread()).values == {}
