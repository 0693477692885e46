"""What a run writes is written again, and read back as it was: also where the recording has left its traces."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import Code


def _cached() -> Any:
    if not os.path.exists("cache.json"):
        with open("cache.json", "w") as file:
            json.dump({"made": "now"}, file)
        return "computed", json.load(open("cache.json"))
    return "cached", json.load(open("cache.json"))


def _history() -> Any:
    with open("history.jsonl", "a") as file:
        file.write("one\n")
    first = open("history.jsonl").read(), os.path.getsize("history.jsonl")
    with open("history.jsonl", "a") as file:
        file.write("two\n")
    return first, open("history.jsonl").read(), os.path.getsize("history.jsonl")


def _inbox() -> Any:
    os.makedirs("done", exist_ok=True)
    seen = []
    for name in os.listdir("inbox"):
        seen.append(Path("inbox", name).read_text())
        os.rename(f"inbox/{name}", f"done/{name}")
    return seen, os.listdir("inbox"), [Path("done", name).read_text() for name in os.listdir("done")]


def _atomically() -> Any:
    Path("conf.tmp").write_text("new")
    os.replace("conf.tmp", "conf")
    return Path("conf").read_text(), os.path.exists("conf.tmp")


def _removed() -> Any:
    os.remove("old.txt")
    os.mkdir("folder")
    Path("folder/x").write_text("x")
    return os.path.exists("old.txt"), os.listdir("folder")


def _failing() -> Any:
    said = []
    for attempt in (lambda: os.mkdir("inbox"), lambda: os.remove("absent"), lambda: open("no/where", "w")):
        try:
            attempt()
        except OSError as error:
            said.append(repr(error))
    return said


def _touched() -> Any:
    Path("mark").touch()
    Path("old.txt").touch()
    return os.path.getsize("mark"), sorted(name for name in os.listdir() if name in ("mark", "old.txt"))


def _scratch() -> Any:
    with tempfile.TemporaryDirectory(dir=".") as directory:
        Path(directory, "x").write_text("kept")
        return Path(directory, "x").read_text()


PROGRAMS: dict[str, Callable[[], Any]] = {
    "a cache that was not there": _cached,
    "a file that is appended to": _history,
    "mail that is moved": _inbox,
    "a file that is replaced": _atomically,
    "what is removed and made": _removed,
    "calls that fail": _failing,
    "a temporary directory": _scratch,
    "files that are touched": _touched,
}


def _filled(here: Path) -> None:
    (here / "inbox").mkdir()
    (here / "inbox" / "mail.txt").write_text("mail")
    (here / "history.jsonl").write_text("zero\n")
    (here / "old.txt").write_text("old")
    (here / "conf").write_text("old")


@pytest.mark.parametrize("where", ["in the same directory", "in an empty one"])
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_run_that_writes_replays(here: Path, twice: Any, what: str, where: str) -> None:
    _filled(here)
    before = [shutil.copytree(here, here.parent / "again"), here.rename(here.parent / "bare")]
    os.chdir(before[1])
    bare = PROGRAMS[what]()
    (here.parent / "again").rename(here)
    os.chdir(here)

    def emptied() -> None:
        for path in list(here.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (here / "inbox").mkdir()  # nobody makes what another process had made

    assert twice(PROGRAMS[what], emptied if where == "in an empty one" else lambda: None) == bare


def test_a_run_that_appends_something_else_is_not_told_the_recorded(here: Path, session: Any) -> None:
    def program(word: str) -> str:
        with open("log.txt", "a") as file:
            file.write(word)
        return open("log.txt").read()

    (here / "log.txt").write_text("before ")
    session.record(lambda: program("one"))
    session.replay(lambda: program("two"))
    assert session.result == "before two"


def test_what_the_run_made_is_read_as_it_is(here: Path, session: Any) -> None:
    def program(word: str) -> str:
        Path("out.txt").write_text(word)
        return Path("out.txt").read_text()

    session.record(lambda: program("one"))
    session.replay(lambda: program("two"))
    assert session.result == "two"


def test_what_must_not_be_there_is_named(here: Path, session: Any) -> None:
    def program() -> None:
        open("once.txt", "x").close()

    session.record(program)
    report = session.replay(program)
    assert report.difference.code == Code.ENVIRONMENT
    assert "once.txt exists here" in report.difference.reason
    (here / "once.txt").unlink()
    assert session.replay(program).identical


def test_a_file_is_not_removed_where_the_recorded_one_was_absent(here: Path, session: Any) -> None:
    def program() -> str:
        with pytest.raises(FileNotFoundError):
            os.remove("precious.txt")
        return "went on"

    session.record(program)
    (here / "precious.txt").write_text("mine")
    assert session.replay(program).identical
    assert (here / "precious.txt").read_text() == "mine"


def test_a_file_that_is_changed_in_place_must_be_what_it_was(here: Path, session: Any) -> None:
    def program() -> str:
        with open("counter", "r+") as file:
            found = file.read()
            file.seek(0)
            file.write(str(int(found) + 1))
        return found

    (here / "counter").write_text("1")
    session.record(program)
    assert not session.replay(program).identical
    (here / "counter").write_text("1")
    assert session.replay(program).identical


def test_a_database_that_has_changed_is_named(here: Path, session: Any) -> None:
    def program() -> list[Any]:
        with sqlite3.connect("memory.db") as database:
            return database.execute("select word from words").fetchall()

    with sqlite3.connect("memory.db") as database:
        database.execute("create table words (word)")
    session.record(program)
    assert session.replay(program).identical
    with sqlite3.connect("memory.db") as database:
        database.execute("insert into words values ('new')")
    report = session.replay(program)
    assert [entry.source for entry in report.coverage if entry.how == "not covered"] == ["database"]
    assert not report.identical
