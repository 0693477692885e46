"""What a program reads of its files comes back, whatever has become of them."""

import asyncio
import codecs
import io
import json
import linecache
import mmap
import os
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import Code


def _text() -> str:
    with open("in.txt") as file:
        return file.read()


def _lines() -> list[str]:
    with open("in.txt", encoding="latin-1", newline="") as file:
        return list(file)


def _seeking() -> Any:
    with open("in.txt", "rb") as file:
        room = bytearray(3)
        return file.readinto(room), bytes(room), file.seek(0), file.readline(), file.tell()


def _unbuffered() -> bytes:
    with open("in.txt", "rb", buffering=0) as file:
        return file.read(4)


def _descriptor() -> Any:
    fd = os.open("in.txt", os.O_RDONLY)
    try:
        return os.read(fd, 100), os.fstat(fd).st_size
    finally:
        os.close(fd)


def _mapped() -> bytes:
    with open("in.txt", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return bytes(view)


def _copied() -> str:
    shutil.copy("in.txt", "out.txt")
    return Path("out.txt").read_text()


def _in_a_task() -> str:
    async def read() -> str:
        return await asyncio.to_thread(_text)

    return asyncio.run(read())


def _seen() -> Any:
    with open("in.txt") as text, open("in.txt", "rb") as binary:
        return type(text), text.name, text.mode, text.encoding, type(binary), binary.name, text.fileno() > 2


WAYS: dict[str, Callable[[], Any]] = {
    "open": _text,
    "io.open": lambda: io.open("in.txt").read(),  # noqa: UP020
    "absolute": lambda: open(os.path.abspath("in.txt")).read(),
    "bytes path": lambda: open(b"in.txt").read(),
    "pathlib text": lambda: Path("in.txt").read_text(),
    "pathlib bytes": lambda: Path("in.txt").read_bytes(),
    "pathlib open": lambda: Path("in.txt").open().readlines(),
    "codecs": lambda: codecs.open("in.txt", "r", "utf-8").read(),
    "lines": _lines,
    "seek, readinto, tell": _seeking,
    "unbuffered": _unbuffered,
    "os.open": _descriptor,
    "mmap": _mapped,
    "shutil.copy": _copied,
    "a thread of asyncio": _in_a_task,
    "what the file object is": _seen,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", ["changed", "gone"])
def test_a_file_is_read_as_it_was(here: Path, twice: Any, way: str, change: str) -> None:
    file = here / "in.txt"
    file.write_bytes(b"first \xc3\xa9\r\nsecond\n")
    bare = WAYS[way]()
    then = twice(WAYS[way], (lambda: file.write_text("other")) if change == "changed" else file.unlink)
    assert then == bare


def test_json_of_a_file_is_what_it_was(here: Path, twice: Any) -> None:
    (here / "state.json").write_text('{"cents": 4000}')
    loaded = twice(lambda: json.load(open("state.json")), lambda: (here / "state.json").write_text("{}"))
    assert loaded == {"cents": 4000}


def test_each_look_gets_its_own_content(here: Path, twice: Any) -> None:
    def program() -> list[str]:
        seen = [_text(), _text()]
        with io.FileIO("in.txt", "w") as file:  # as another process does it: no tap sees this
            file.write(b"second")
        return [*seen, _text(), _text()]

    (here / "in.txt").write_text("first")
    assert twice(program) == ["first", "first", "second", "second"]


def test_threads_have_contents_of_their_own(here: Path, twice: Any) -> None:
    turn = [threading.Event(), threading.Event()]

    def program() -> list[str]:
        seen: dict[int, list[str]] = {0: [], 1: []}

        def look(number: int) -> None:
            seen[number] = [_text(), _text()]

        threads = [threading.Thread(target=look, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen[0] + seen[1]

    (here / "in.txt").write_text("one")
    assert twice(program, lambda: (here / "in.txt").write_text("two")) == ["one"] * 4
    assert turn


@pytest.mark.parametrize(
    ("name", "error"),
    [("nope.txt", FileNotFoundError), ("folder", IsADirectoryError), ("in.txt/x", NotADirectoryError)],
)
def test_what_could_not_be_opened_cannot_be_opened(here: Path, twice: Any, name: str, error: type[OSError]) -> None:
    (here / "in.txt").write_text("a file")
    (here / "folder").mkdir()

    def program() -> Any:
        with pytest.raises(error) as raised:
            open(name)
        return repr(raised.value), str(raised.value), raised.value.filename, raised.value.errno

    def change() -> None:
        shutil.rmtree(here / "folder")
        (here / "in.txt").unlink()
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("there now")

    assert name in twice(program, change)[1]


def test_reading_another_file_is_a_difference(here: Path, session: Any) -> None:
    (here / "a.txt").write_text("a")
    (here / "b.txt").write_text("b")
    session.record(lambda: open("a.txt").read())
    report = session.replay(lambda: open("b.txt").read())
    assert report.difference.code == Code.READS
    assert (report.difference.path, report.difference.actual) == ("b.txt", "open b.txt")


@pytest.mark.parametrize("times", [1, 3])
def test_reading_more_or_less_often_is_a_difference(here: Path, session: Any, times: int) -> None:
    (here / "a.txt").write_text("a")
    session.record(lambda: [open("a.txt").read() for _ in range(2)])
    report = session.replay(lambda: [open("a.txt").read() for _ in range(times)])
    assert report.difference.code == Code.READS
    assert (report.difference.expected, report.difference.actual) == ("2", str(times))


def test_past_the_cut_of_a_killed_recording_files_are_real(here: Path, session: Any) -> None:
    (here / "a.txt").write_text("a")
    session.record(lambda: None)
    report = session.replay(lambda: open("a.txt").read(), interrupted=True)
    assert report.difference is None


def test_one_content_is_stored_once(here: Path, session: Any, tmp_path: Path) -> None:
    content = os.urandom(300_000).hex()
    (here / "a.txt").write_text(content)
    (here / "b.txt").write_text(content)
    session.record(lambda: [open(name).read() for name in ("a.txt", "b.txt") * 50])
    stored = sum(file.stat().st_size for file in tmp_path.glob("in-process.db*"))
    assert stored < 2 * len(content)


def test_a_big_file_is_told_by_its_hash(here: Path, session: Any) -> None:
    big = here / "big.bin"
    big.write_bytes(bytes(5 << 20))

    def program() -> int:
        with open("big.bin", "rb") as file:
            return len(file.read())

    session.record(program)
    assert session.replay(program).identical
    with big.open("r+b") as file:
        file.seek(3 << 20)
        file.write(b"x")
    report = session.replay(program)
    assert not report.identical and report.difference is None
    assert [entry.detail for entry in report.coverage if entry.how == "not covered"] == [
        "big.bin (5242880 bytes) was too big to be stored, and is another one now"
    ]


@pytest.mark.parametrize(
    "name", ["../outside.txt", ".venv/lib/in.txt", "lib/site-packages/in.txt", "pkg/__pycache__/in.txt", ".lockstep/x"]
)
def test_other_peoples_files_are_left_alone(here: Path, session: Any, name: str) -> None:
    file = here / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("first")
    session.record(lambda: open(name).read())
    file.write_text("second")
    session.replay(lambda: open(name).read())
    assert session.result == "second"


def test_a_project_may_lie_elsewhere(here: Path, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "in.txt").write_text("first")
    session.record(_text)
    other = here.parent / "checkout"
    other.mkdir()
    monkeypatch.chdir(other)
    assert session.replay(lambda: (other / "in.txt").read_text()).identical
    assert session.result == "first"


def test_a_program_that_moves_names_the_same_files(here: Path, twice: Any) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "in.txt").write_text("first")

    def program() -> tuple[str, str]:
        os.chdir("sub")
        try:
            inside = open("in.txt").read()
        finally:
            os.chdir("..")
        return inside, open("sub/in.txt").read()

    assert twice(program, lambda: (here / "sub" / "in.txt").write_text("x")) == ("first", "first")


def test_the_interpreters_own_reads_are_nobodys(here: Path, session: Any) -> None:
    source = here / "module.py"
    source.write_text("x = 1\n")

    def program() -> str:
        linecache.clearcache()
        return linecache.getline(str(source), 1)

    session.record(program)
    assert session.result == "x = 1\n"
    assert session.replay(lambda: None).identical


def test_open_is_still_what_it_seems() -> None:
    assert open is io.open
    assert pickle.loads(pickle.dumps(open)) is not None and open.__name__ == "open"
    assert os.stat in os.supports_dir_fd and os.stat in os.supports_follow_symlinks
    assert os.open in os.supports_dir_fd and os.scandir in os.supports_fd
    assert shutil.rmtree.avoids_symlink_attacks

    class Reader:
        opener = open

    with pytest.raises(FileNotFoundError):
        Reader().opener("nowhere/to/be/found")
