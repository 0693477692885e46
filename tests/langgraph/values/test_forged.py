"""A store that somebody else has written to: a crafted checkpoint runs nothing when it is listed, shown, checked,
resumed or replayed, and a row that was changed is told by `verify`."""

import dataclasses
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import ormsgpack
import pytest
from langgraph.graph import END, START, StateGraph
from tests.warm import command

import lockstep
from lockstep.errors import LockstepError
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep_langgraph import LockstepCheckpointer
from lockstep_langgraph.inert import Inert

CONFIG: Any = {"configurable": {"thread_id": "t"}}
RUN = "langgraph/t"

ran: list[str] = []
watching = False
_FORBIDDEN = frozenset(("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class"))


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if watching and event in _FORBIDDEN:
        ran.append(event)


sys.addaudithook(_hook)


class Trap:
    """Whatever makes one of these, or asks it something, is found out."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ran.append("__init__")

    def __setstate__(self, state: Any) -> None:
        ran.append("__setstate__")


@dataclasses.dataclass
class Order:
    id: int


class State(TypedDict):
    order: Order
    log: list[Any]
    extra: Any


def graph(saver: Any) -> Any:
    def work(state: State) -> dict[str, Any]:
        return {"log": [*state.get("log", []), len(state.get("log", []))]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


def attacks(canary: Path) -> dict[str, Any]:
    command = f"touch {canary}"
    trap = f"{__name__}:Trap"
    ext = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", command))))
    return {
        "a call of os.system": {"$": "object", "$class": "os:system", "$value": command, "args": [command]},
        "a process": {"$": "object", "$class": "subprocess:Popen", "args": command, "shell": True},
        "a class of the program": {"$": "object", "$class": trap, "x": 1},
        "an exception with another inside": {
            "$": "exception",
            "$value": {
                "module": "builtins", "name": "ValueError", "args": [{"enum": ["os", "system", command]}],
                "cause": {"exception": {"module": __name__, "name": "Trap", "args": [command]}},
            },
        },
        "a factory": {"$": "defaultdict", "$factory": {"$": "class", "$class": trap}, "$pairs": [["a", 1]]},
        "an extension of langgraph's": {"$": "typed", "type": "msgpack", "data": ext},
        "a pickle": {"$": "typed", "type": "pickle", "data": b"cos\nsystem\n(V" + command.encode() + b"\ntR."},
        "JSON of langchain's": {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [command]},
        "a message that is none": {"$": "message", "type": "human", "content": {"$": "object", "$class": trap}},
        "a Send to anywhere": {"$": "object", "$class": "langgraph.types:Send", "node": "work", "arg": {"$": "?"}},
        "terminal controls": "\x1b]0;owned\x07\x1b[2J[red]x[/red]",
        "a module that is not loaded": {"$": "dataclass", "$class": "antigravity:fly", "x": 1},
    }  # fmt: skip


NAMES = tuple(attacks(Path("/nowhere")))


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def quiet(canary: Path) -> Iterator[None]:
    """Nothing of the forged record runs in this test."""
    global watching
    ran.clear()
    watching = True
    yield
    watching = False
    assert ran == []
    assert not canary.exists()
    assert "antigravity" not in sys.modules


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    saver = LockstepCheckpointer(path)
    graph(saver).invoke({"order": Order(1), "log": [], "extra": None}, CONFIG)
    saver.close()
    return path


def forge(store: Path, value: Any) -> None:
    """What one with write access does: a checkpoint more, whose values and metadata are crafted."""
    journal = Journal.open(str(store), RUN, {})
    reader = journal.reader()
    last = max(
        (event for stream in reader.info.streams for event in reader.events(stream.id) if event.kind.name == "STEP"),
        key=lambda event: event.pos,
    )
    body = {
        "id": uuid.UUID("1fffffff-0000-6000-8000-000000000000").bytes,
        "ts": "2030-01-01T00:00:00+00:00",
        "metadata": {"source": "loop", "step": 5, "parents": {}, "note": value},
        "versions": {"extra": 9, "log": 9},
        "channels": {"extra": {"value": value}, "log": {"value": [value, [value]]}},
        "updated": ["extra"],
    }
    pos = journal.step("main", "work", "loop", body, b"x" * 16, last.pos)
    journal.writes("main/work", "work", str(uuid.UUID(int=7)), pos, {"path": "~", "writes": [[0, "extra", value]]})
    journal.close()


def _cli(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words, "--store", str(store), env={**os.environ, "NO_COLOR": "1"})


@pytest.mark.parametrize("name", NAMES)
def test_a_crafted_checkpoint_runs_nothing_when_it_is_read_listed_and_resumed(
    quiet: None, store: Path, canary: Path, name: str
) -> None:
    forge(store, attacks(canary)[name])
    saver = LockstepCheckpointer(store)
    resumed = graph(saver)

    for found in saver.list(CONFIG):
        assert found.metadata is not None and dict(found.checkpoint["channel_values"]) is not None
    state = resumed.get_state(CONFIG)
    assert state.values["order"] == Order(1)
    assert not isinstance(state.values["extra"], Trap)
    history = list(resumed.get_state_history(CONFIG))
    assert len(history) == 4
    result = resumed.invoke({"order": Order(2)}, CONFIG)
    assert result["order"] == Order(2) and result["log"][-1] == 2
    resumed.update_state(history[1].config, {"order": Order(3)})
    saver.copy_thread("t", "other")
    saver.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_crafted_checkpoint_runs_nothing_when_it_is_replayed(
    quiet: None, store: Path, canary: Path, name: str
) -> None:
    forge(store, attacks(canary)[name])
    saver = LockstepCheckpointer(store)
    for depth in ("call", "node"):
        try:
            lockstep.replay(RUN, graph(saver), store=str(store), depth=depth)
        except LockstepError:
            continue
    saver.close()


def test_a_crafted_checkpoint_runs_nothing_on_the_command_line(store: Path, canary: Path) -> None:
    for value in attacks(canary).values():
        forge(store, value)

    said = ""
    for words in (
        ("runs",), ("log", RUN), ("show", RUN), ("show", f"{RUN}:3"), ("log", RUN, "--json"), ("verify", RUN),
        ("show", f"{RUN}:5", "--json"), ("export", RUN, "--output", str(store.parent / "tape.db")), ("gc",),
    ):  # fmt: skip
        done = _cli(store, *words)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        said += done.stdout + done.stderr
    assert not canary.exists()
    assert "\x1b]" not in said and "\x07" not in said
    assert RUN in said


def test_what_stays_inert_says_what_it_was_and_is_kept(quiet: None, store: Path, canary: Path) -> None:
    forge(store, attacks(canary)["a class of the program"])
    saver = LockstepCheckpointer(store)
    resumed = graph(saver)
    extra = resumed.get_state(CONFIG).values["extra"]
    resumed.invoke({"order": Order(2)}, CONFIG)
    saver.close()

    assert type(extra) is Inert and extra.type == f"{__name__}:Trap" and extra["x"] == 1
    assert "types=" in extra.why or "not allowed" in extra.why
    again = LockstepCheckpointer(store, types=[Trap])
    found = graph(again).get_state(CONFIG).values["extra"]
    assert type(found) is Trap and vars(found) == {"x": 1}
    again.close()


def test_a_row_that_was_changed_is_told_by_verify(store: Path) -> None:
    before = _cli(store, "verify", RUN)
    connection = sqlite3.connect(store)
    ((key, body),) = connection.execute("SELECT id, body FROM segment ORDER BY id DESC LIMIT 1")
    connection.execute("UPDATE segment SET body=? WHERE id=?", (body[:-3] + bytes(3), key))
    connection.commit()
    connection.close()
    after = _cli(store, "verify", RUN)

    assert after.returncode != 0 and "Traceback" not in after.stderr
    assert after.stderr != before.stderr


def test_a_row_of_another_thread_s_checkpoint_is_not_read_as_this_one_s(store: Path) -> None:
    saver = LockstepCheckpointer(store)
    graph(saver).invoke({"order": Order(9), "log": []}, {"configurable": {"thread_id": "other"}})
    saver.close()
    connection = sqlite3.connect(store)
    rows = connection.execute("SELECT id, cols, body, head FROM segment ORDER BY id").fetchall()
    streams = {row[0] >> 32 for row in rows}
    assert len(streams) == 2
    mine, theirs = ([row for row in rows if row[0] >> 32 == stream] for stream in sorted(streams))
    connection.execute("UPDATE segment SET cols=?, body=? WHERE id=?", (*theirs[-1][1:3], mine[-1][0]))
    connection.commit()
    connection.close()
    done = _cli(store, "verify", RUN)

    assert done.returncode != 0 and "Traceback" not in done.stderr


@pytest.mark.parametrize("id", ["../../etc/passwd", "a/b", "a:b@c", "%2e%2e", "\x1b[31m", "x" * 3000, "é\u202e", "."])
def test_an_id_of_a_thread_is_never_a_path(quiet: None, tmp_path: Path, id: str) -> None:
    path = tmp_path / "store.db"
    saver = LockstepCheckpointer(path)
    config: Any = {"configurable": {"thread_id": id}}
    graph(saver).invoke({"order": Order(1), "log": []}, config)
    assert graph(saver).get_state(config).values["order"] == Order(1)
    saver.close()

    assert {file.name.partition("-")[0].partition(".")[0] for file in tmp_path.iterdir()} <= {"store", ".gitignore"}
    with open_store(path) as opened:
        (run,) = opened.runs()
    assert run.name.startswith("langgraph/") and "/" not in run.name.removeprefix("langgraph/")


@pytest.mark.parametrize("filter", [{"step') OR 1=1 --": 1}, {"a.b": 1}, {"source": {"$gt": ""}}, {"step": [1]}])
def test_a_filter_is_never_a_part_of_a_query(store: Path, filter: dict[str, Any]) -> None:
    saver = LockstepCheckpointer(store)

    assert list(saver.list(CONFIG, filter=filter)) == []
    assert len(list(saver.list(CONFIG, filter={"source": "loop"}))) == 2
    saver.close()
