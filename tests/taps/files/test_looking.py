"""Looks without opening: what was there is there, in the order in which it was."""

import glob
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def _scanned() -> Any:
    with os.scandir(".") as entries:
        return [(entry.name, entry.path, entry.is_dir(), entry.is_file(), entry.is_symlink()) for entry in entries]


WAYS: dict[str, Callable[[], Any]] = {
    "os.path": lambda: [
        (os.path.exists(name), os.path.isfile(name), os.path.isdir(name), os.path.islink(name), os.path.lexists(name))
        for name in ("a.txt", "new.txt", "sub", "link")
    ],
    "sizes and times": lambda: (os.path.getsize("a.txt"), os.path.getmtime("a.txt"), os.path.getctime("a.txt")),
    "os.stat": lambda: os.stat("a.txt"),
    "all of os.stat": lambda: [getattr(os.stat("a.txt"), name) for name in dir(os.stat("a.txt")) if name[:3] == "st_"],
    "os.lstat": lambda: os.lstat("link"),
    "pathlib": lambda: (Path("a.txt").exists(), Path("new.txt").is_file(), Path("a.txt").stat().st_mtime_ns),
    "os.listdir": lambda: os.listdir(),
    "os.listdir of a name": lambda: os.listdir("sub"),
    "os.scandir": _scanned,
    "os.walk": lambda: list(os.walk(".")),
    "glob": lambda: glob.glob("**/*.txt", recursive=True),
    "Path.iterdir": lambda: [path.name for path in Path(".").iterdir()],
    "Path.glob": lambda: [str(path) for path in Path(".").glob("*.txt")],
    "Path.rglob": lambda: [str(path) for path in Path(".").rglob("*")],
}


@pytest.fixture
def tree(here: Path) -> Path:
    (here / "sub").mkdir()
    (here / "link").symlink_to("a.txt")
    for name in ("z.txt", "a.txt", "sub/in.txt", "m.md"):
        (here / name).write_text(name)
    return here


def _turned_over(tree: Path) -> None:
    for path in list(tree.iterdir()):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("new.txt", "sub"):
        (tree / name).write_text("now a file")


@pytest.mark.parametrize("way", WAYS)
def test_what_was_there_is_there(tree: Path, twice: Any, way: str) -> None:
    bare = WAYS[way]()
    assert twice(WAYS[way], lambda: _turned_over(tree)) == bare


def test_a_program_that_waits_for_a_file_waits_as_long(here: Path, twice: Any) -> None:
    def program() -> int:
        looks = 0
        while not os.path.exists("done"):
            looks += 1
            if looks == 5 and appears:
                (here.parent / "beside").rename(here / "done")
        return looks

    appears = True
    (here.parent / "beside").touch()

    def between() -> None:
        nonlocal appears
        appears = False

    assert twice(program, between) == 5


def test_looks_may_differ_in_number(here: Path, session: Any) -> None:
    (here / "a.txt").touch()
    session.record(lambda: os.path.exists("a.txt"))
    assert session.replay(lambda: [os.path.exists("a.txt"), os.path.exists("b.txt"), os.listdir()]).identical


def test_a_listing_has_the_runs_own_files_as_they_are_made_now(here: Path, session: Any) -> None:
    def program(name: str) -> list[str]:
        Path(name).write_text("made")
        return os.listdir()

    (here / "given.txt").touch()
    session.record(lambda: sorted(program("own.txt")))
    assert session.result == ["given.txt", "own.txt"]
    (here / "given.txt").unlink()
    (here / "own.txt").unlink()
    session.replay(lambda: sorted(program("other.txt")))
    assert session.result == ["given.txt", "other.txt"]


def test_os_access_is_not_served(here: Path, session: Any) -> None:
    session.record(lambda: os.access("a.txt", os.F_OK))
    (here / "a.txt").touch()
    session.replay(lambda: os.access("a.txt", os.F_OK))
    assert session.result is True
