"""The stdout tap sees what a program prints, and what is printed stays what it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the program in argv[2] with a session that notes what it is told into the file argv[1].
NOTING = """
import json, runpy, sys
from lockstep.session import current
from lockstep.taps import output

class Noting:
    recording = True
    def __init__(self):
        self.seen = []
    def printing(self, channel):
        return None
    def output(self, channel, data):
        self.seen.append([channel, data if isinstance(data, str) else {"bytes": data.decode("latin-1")}])

session = Noting()
output.install()
output.start(session)
current.session = session
place, program = sys.argv[1:]
try:
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})
finally:
    current.session = None
    with open(place, "w") as file:
        json.dump(session.seen, file)
"""

PROGRAMS = {
    "print": ("print('a', 1, sep='-', end='!')", ["a", "-", "1", "!"]),
    "flush": ("print('a', flush=True)", ["a", "\n"]),
    "writelines": ("import sys; sys.stdout.writelines(['x\\n', 'y\\n'])", ["x\n", "y\n"]),
    "unicode": ("print('é東🙂')", ["é東🙂", "\n"]),
    "bytes": (
        "import sys; print('a', flush=True); sys.stdout.buffer.write(b'\\xff\\x00'); sys.stdout.buffer.flush()",
        ["a", "\n", {"bytes": "\xff\x00"}],
    ),
    "a reused buffer": (
        "import sys; b = bytearray(b'one'); sys.stdout.buffer.write(b); b[:] = b'two'; sys.stdout.buffer.write(b)",
        [{"bytes": "one"}, {"bytes": "two"}],
    ),
    "wrapped anew": (
        "import io, sys\n"
        "w = io.TextIOWrapper(sys.stdout.buffer, 'utf-8', write_through=True)\n"
        "w.write('é'); w.flush(); w.detach()",
        [{"bytes": "\xc3\xa9"}],
    ),
    "detached": ("import sys; b = sys.stdout.detach(); b.write(b'raw'); b.flush()", [{"bytes": "raw"}]),
    "reconfigured": (
        "import sys; print('a'); sys.stdout.reconfigure(encoding='latin-1', newline='\\r\\n'); print('é')",
        ["a", "\n", "é", "\n"],
    ),
    "redirected": (
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()) as s:\n    print('inside')\n"
        "print(len(s.getvalue()))",
        ["7", "\n"],
    ),
    "logging": (
        "import logging, sys; logging.basicConfig(stream=sys.stdout, format='%(message)s'); logging.error('x')",
        ["x\n"],
    ),
    "a large text": ("print('x' * 100_000)", ["x" * 100_000, "\n"]),
    "what cannot be encoded": (
        "import sys\nsys.stdout.reconfigure(encoding='ascii')\ntry:\n    print('é')\nexcept UnicodeEncodeError as e:\n"
        "    print(type(e).__name__)",
        ["UnicodeEncodeError", "\n"],
    ),
    "stderr": ("import sys; print('x', file=sys.stderr)", []),
    "threads": (
        "import threading\n"
        "def work(n):\n    for _ in range(200): print(n, flush=True)\n"
        "ts = [threading.Thread(target=work, args=(i,)) for i in (7, 7)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]",
        None,
    ),
}


@pytest.mark.parametrize("buffering", [[], ["-u"]], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_seen_once_and_written_as_without_us(tmp_path: Path, name: str, buffering: list[str]) -> None:
    program, expected = PROGRAMS[name]
    place = tmp_path / "seen"
    bare = subprocess.run([sys.executable, *buffering, "-c", program], capture_output=True, check=False)
    ours = subprocess.run(
        [sys.executable, *buffering, "-c", NOTING, str(place), program], capture_output=True, check=False
    )
    assert ours.returncode == bare.returncode
    seen = json.loads(place.read_text())
    if expected is None:
        assert sorted(ours.stdout) == sorted(bare.stdout)  # the threads' order is their own
        assert sorted(data for _, data in seen) == ["\n"] * 400 + ["7"] * 400
        return
    assert (ours.stdout, ours.stderr) == (bare.stdout, bare.stderr)
    assert seen == [["stdout", data] for data in expected]


LOOKS = """
import io, os, sys
o = sys.stdout
print(type(o) is io.TextIOWrapper, o is sys.__stdout__, o.isatty(), o.fileno(), o.encoding, o.errors, o.newlines,
      o.line_buffering, o.write_through, o.name, o.mode, type(o.buffer).__name__, o.writable(), o.readable(), repr(o))
print(o.write("abc"), o.buffer.write(b"de"), o.write.__name__, o.flush())
try:
    o.write(b"bytes")
except TypeError as error:
    print(error)
try:
    o.buffer.write("text")
except TypeError as error:
    print(error)
os.write(1, b"fd\\n")
o.close()
try:
    o.write("x")
except ValueError as error:
    print(error, file=sys.stderr)
"""


@pytest.mark.parametrize("buffering", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_the_stream_looks_and_fails_as_without_us(tmp_path: Path, buffering: list[str]) -> None:
    bare = subprocess.run([sys.executable, *buffering, "-c", LOOKS], capture_output=True, check=True)
    ours = subprocess.run(
        [sys.executable, *buffering, "-c", NOTING, str(tmp_path / "seen"), LOOKS], capture_output=True, check=True
    )
    assert (ours.stdout, ours.stderr) == (bare.stdout, bare.stderr)


def test_a_replay_is_told_of_the_recorded_terminal() -> None:
    program = """
import os, sys
from lockstep.taps import output

class Replaying:
    recording = False

session = Replaying()
before = sys.stdout.isatty(), os.isatty(1)
output.install()
output.start(session, {"0": [False, None], "1": [True, [101, 31]], "2": [False, None]})
print(sys.stdout.isatty(), os.isatty(1), os.isatty(2), tuple(os.get_terminal_size()))
try:
    os.get_terminal_size(2)
except OSError as error:
    print(error)
output.stop(session)
print((sys.stdout.isatty(), os.isatty(1)) == before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True True False (101, 31)",
        "[Errno 25] Inappropriate ioctl for device",
        "True",
    ]
