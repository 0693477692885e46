"""The environment of a replay is the recorded one, as far as the program looked at it."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.log.model import Kind
from lockstep.log.store import open_store
from lockstep.taps.environ import bound


@pytest.fixture(autouse=True)
def _variables() -> Iterator[None]:
    """Each test may do to the environment what it likes."""
    before = dict(os.environ)
    os.environ.update(MODE="recorded", GONE="there")
    os.environ.pop("ABSENT", None)
    yield
    os.environ.clear()
    os.environ.update(before)


def _elsewhere() -> None:
    os.environ.update(MODE="replayed", ABSENT="there now", NEW="new")
    os.environ.pop("GONE", None)


def _changing() -> Any:
    before = os.environ.get("ABSENT")
    os.environ["ABSENT"] = "1"
    return before, os.environ["ABSENT"], os.environ.pop("ABSENT"), os.environ.get("ABSENT")


def _deleting() -> Any:
    del os.environ["GONE"]
    return "GONE" in os.environ


WAYS: dict[str, Callable[[], Any]] = {
    "get": lambda: (os.environ.get("MODE"), os.environ.get("ABSENT"), os.environ.get("ABSENT", "other")),
    "[]": lambda: (os.environ["MODE"], os.environ["GONE"]),
    "in": lambda: ("MODE" in os.environ, "ABSENT" in os.environ, "GONE" in os.environ),
    "getenv": lambda: (os.getenv("MODE"), os.getenv("ABSENT", "x"), os.getenvb(b"GONE")),
    "environb": lambda: (os.environb[b"MODE"], os.environb.get(b"ABSENT")),
    "setdefault": lambda: (os.environ.setdefault("ABSENT", "set"), os.environ.setdefault("MODE", "set")),
    "pop": lambda: (os.environ.pop("GONE"), os.environ.pop("ABSENT", None)),
    "del": _deleting,
    "read, set, pop": _changing,
    "expandvars": lambda: os.path.expandvars("$MODE/${GONE}/$ABSENT"),
    "copy": lambda: _plain(os.environ.copy()),
    "dict": lambda: _plain(dict(os.environ)),
    "|": lambda: _plain(os.environ | {"MINE": "1"}),
    "names": lambda: [name for name in os.environ if not bound.is_bound(name)],
    "items": lambda: [item for item in os.environ.items() if not bound.is_bound(item[0])],
    "repr": lambda: "'MODE': 'recorded'" in repr(os.environ) and "'NEW'" not in repr(os.environ),
    "a child": lambda: subprocess.run(["/bin/sh", "-c", "true"], env={**os.environ}, check=True) and os.environ["MODE"],
}


def _plain(found: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if not bound.is_bound(name)}


@pytest.mark.parametrize("way", WAYS)
def test_a_variable_is_what_it_was(session: Any, way: str) -> None:
    def program() -> Any:
        return WAYS[way]()

    before = dict(os.environ)
    bare = program()
    os.environ.clear()
    os.environ.update(before)
    recorded = session.record(program)
    assert recorded.faults == ()
    assert session.result == bare
    os.environ.clear()
    os.environ.update(before)
    _elsewhere()
    report = session.replay(program)
    assert report.difference is None
    assert session.result == bare


def test_c_code_is_told_the_recorded_value_too(session: Any) -> None:
    def program() -> str:
        os.environ.get("MODE")
        return subprocess.check_output(["/bin/sh", "-c", "printf $MODE"], text=True)

    session.record(program)
    _elsewhere()
    assert session.replay(program).difference is None
    assert session.result == "recorded"


def test_what_the_program_set_first_is_its_own(session: Any, tmp_path: Path) -> None:
    def program() -> str:
        os.environ["OWN"] = "mine"
        return os.environ["OWN"]

    session.record(program)
    assert "OWN" not in _stored(tmp_path)
    assert session.replay(program).identical


def test_only_what_was_read_is_stored_and_once(session: Any, tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(100):
            os.environ.get("MODE"), os.environ.get("ABSENT")

    session.record(program)
    stored = _stored(tmp_path)
    assert {name: stored[name] for name in ("MODE", "ABSENT")} == {"MODE": "recorded", "ABSENT": None}
    assert "GONE" not in stored


def test_what_is_no_text_comes_back(session: Any) -> None:
    os.environb[b"ODD"] = b"\xff\xfe"
    session.record(lambda: os.environb[b"ODD"])
    os.environb[b"ODD"] = b"even"
    session.replay(lambda: os.environb[b"ODD"])
    assert session.result == b"\xff\xfe"


def test_after_a_replay_the_environment_is_what_it_was(session: Any) -> None:
    session.record(lambda: [os.environ.get(name) for name in ("MODE", "ABSENT", "GONE")])
    _elsewhere()
    before = dict(os.environ)
    session.replay(lambda: [os.environ.get(name) for name in ("MODE", "ABSENT", "GONE")])
    assert session.result == ["recorded", None, "there"]
    assert dict(os.environ) == before
    assert subprocess.check_output(["/bin/sh", "-c", "printf $MODE"], text=True) == "replayed"


def test_a_variable_that_was_never_read_is_the_machines_and_named(session: Any) -> None:
    session.record(lambda: None)
    report = session.replay(lambda: os.environ.get("NEVER_READ"))
    assert report.identical
    assert [(entry.source, entry.how) for entry in report.coverage if "NEVER_READ" in entry.detail] == [
        ("environment", "differs")
    ]


def test_a_secret_is_stored_as_such_and_is_what_it_is_now(session: Any, tmp_path: Path) -> None:
    os.environ["SOME_API_KEY"] = "k-81bd0f2a77c3e5d9"
    session.record(lambda: os.environ["SOME_API_KEY"])
    assert _stored(tmp_path)["SOME_API_KEY"] == "lockstep-secret.SOME_API_KEY."
    os.environ["SOME_API_KEY"] = "k-another-0123456789"
    assert session.replay(lambda: os.environ["SOME_API_KEY"]).identical
    assert session.result == "k-another-0123456789"
    del os.environ["SOME_API_KEY"]
    session.replay(lambda: os.environ["SOME_API_KEY"])
    assert session.result == "k-81bd0f2a77c3e5d9"


def test_libraries_and_children_find_this_machine(session: Any) -> None:
    """A recorded HOME is what the program prints, and no place for a library to look for files."""

    def program() -> Any:
        child = subprocess.check_output(["/bin/sh", "-c", "printf $HOME"], env={**os.environ, "X": "1"}, text=True)
        return os.environ["HOME"], os.getenv("HOME"), os.path.expandvars("$HOME/x"), child

    os.environ["HOME"] = "/home/ada"
    session.record(program)
    assert session.result == ("/home/ada", "/home/ada", "/home/ada/x", "/home/ada")
    os.environ["HOME"] = "/home/bob"

    def elsewhere() -> Any:
        os.environ["HOME"] += "/sub"
        return os.environ["HOME"], os.path.expanduser("~"), dict(os.environ)["HOME"]

    session.replay(elsewhere)
    assert session.result == ("/home/ada/sub", "/home/bob/sub", "/home/ada/sub")


PRINTING = """
import os, sys
print(os.environ.get("HOME"), os.environ.get("MODE"), "PATHX" in os.environ)
os.environ["MODE"] = "mine"
print([name for name in os.environ if name.startswith("APP_")], [n for n in os.environ if n.startswith("LOCKSTEP")])
"""


def test_under_the_command_line(commands: Any, tmp_path: Path) -> None:
    program = tmp_path / "printing.py"
    program.write_text(PRINTING)
    recorded = commands.record(program, HOME="/home/ada", MODE="one", APP_A="1", LANG="C.UTF-8")
    assert recorded == commands.bare(program, HOME="/home/ada", MODE="one", APP_A="1")
    assert commands.replay(program, HOME="/home/bob", MODE="two", APP_B="1", PATHX="x") == recorded


def test_what_is_another_here_is_shown_beside_a_difference(commands: Any, tmp_path: Path) -> None:
    program = tmp_path / "asking.py"
    program.write_text("import os\n")
    commands.record(program)
    program.write_text("import os\nprint(os.environ.get('ASKED_NOW'))\n")
    commands.diverge(program)
    assert "environment differs: not recorded, so as they are here: ASKED_NOW" in commands.said


def test_what_was_read_before_a_kill_is_kept(commands: Any, tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(
        "import os, signal\nprint(os.environ['MODE'], flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = command.run(
        "record", "--store", str(tmp_path / "killed.db"), "--run", "killed", "--", sys.executable, str(program),
        env={**os.environ, "MODE": "kept"},
    )  # fmt: skip
    assert done.returncode in (137, -9)
    assert _stored(tmp_path, "killed.db", "killed")["MODE"] == "kept"


def test_threads_note_a_variable_without_getting_in_each_others_way(session: Any) -> None:
    def program() -> set[str | None]:
        found: set[str | None] = set()
        threads = [threading.Thread(target=lambda: found.add(os.environ.get("MODE"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    assert session.same(program) == {"recorded"}


def test_names_that_were_not_there_are_hidden_and_stay_for_children(session: Any) -> None:
    session.record(lambda: [name for name in os.environ if name == "ABSENT"])
    os.environ["ABSENT"] = "there now"

    def program() -> Any:
        return [name for name in os.environ if name == "ABSENT"], os.environ.get("ABSENT"), _c_getenv("ABSENT")

    assert session.replay(program).identical
    assert session.result == ([], None, b"there now")
    assert os.environ["ABSENT"] == "there now"


def test_names_that_are_gone_are_only_names(session: Any) -> None:
    session.record(lambda: [name for name in os.environ if name == "GONE"])
    del os.environ["GONE"]
    assert session.replay(lambda: ([name for name in os.environ if name == "GONE"], os.environ.get("GONE"))).identical
    assert session.result == (["GONE"], "")
    assert "GONE" not in os.environ


def test_the_time_zone_stays_the_clocks_business(session: Any) -> None:
    def program() -> Any:
        return os.environ.get("TZ"), time.strftime("%H", time.localtime(0))

    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    try:
        session.record(program)
        os.environ["TZ"] = "America/New_York"
        time.tzset()
        assert session.replay(program).identical
        assert session.result == ("Asia/Tokyo", "09")
        assert time.tzname[0] == "EST"
    finally:
        os.environ.pop("TZ")
        time.tzset()


def _c_getenv(name: str) -> bytes | None:
    found = ctypes.CDLL(None).getenv
    found.restype = ctypes.c_char_p
    return found(name.encode())  # type: ignore[no-any-return]


def _stored(place: Path, store: str = "in-process.db", run: str = "run") -> dict[str, Any]:
    with open_store(str(place / store)) as opened:
        reader = opened.run(run)
        stream = reader.streams[0]
        found: dict[str, Any] = {}
        for seq, event in reader.heads(stream.id):
            if event.kind is Kind.READS and event.what == "environ":
                body = reader.body(stream.id, seq)
                assert isinstance(body, dict)
                found |= body
        return found
