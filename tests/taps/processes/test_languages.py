"""What is said to a process in a language that is known is compared by what it says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import Code
from lockstep.taps.processes import languages

PARROT = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"


def _numberless() -> Any:
    """Lines of `number words`; the number does not count."""
    rest = b""

    def read(data: bytes) -> bytes:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        return b"".join(line.partition(b" ")[2] + b"\n" for line in lines)

    return read


@pytest.fixture
def parrot(tmp_path: Path) -> Iterator[Path]:
    script = tmp_path / "parrot.py"
    script.write_text(PARROT)
    languages.learn(languages.Language("parrot", lambda argv: any("parrot" in word for word in argv), _numberless))
    yield script
    languages.forget("parrot")


def _talk(script: Path, words: list[str]) -> str:
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for word in words:
            process.stdin.write(word)
            process.stdin.flush()
        process.stdin.close()
        return process.stdout.read()


def test_what_does_not_count_in_a_message_may_be_another(session: Any, parrot: Path) -> None:
    words = ["1 hello\n", "2 wor", "ld\n"]
    session.record(lambda: _talk(parrot, words))
    words[:] = ["7 hello\n8 world\n"]
    assert session.replay(lambda: _talk(parrot, words)).identical


def test_another_message_is_named_whole(session: Any, parrot: Path) -> None:
    words = ["1 hello\n", "2 world\n"]
    session.record(lambda: _talk(parrot, words))
    words[1] = "2 nobody\n"
    found = session.replay(lambda: _talk(parrot, words)).difference
    assert (found.code, found.expected, found.actual) == (Code.OUTPUT, "world", "nobody")


def test_where_its_program_is_does_not_count(session: Any, parrot: Path, tmp_path: Path) -> None:
    scripts = [parrot]
    session.record(lambda: _talk(scripts[0], ["1 hello\n"]))
    scripts[0] = tmp_path / "elsewhere" / "parrot.py"
    scripts[0].parent.mkdir()
    scripts[0].write_text(PARROT)
    assert session.replay(lambda: _talk(scripts[0], ["1 hello\n"])).identical
