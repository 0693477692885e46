"""`lockstep export`, `import`, `rm` and `gc`, what `verify` says of a keyed record, and stores nobody may write."""

import json
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYTHON = sys.executable
KEY = {"LOCKSTEP_KEY": "0123456789abcdef" * 4}
OTHER = {"LOCKSTEP_KEY": "fedcba9876543210" * 4}

AGENT = """
import os, random, time
import lockstep

@lockstep.tool
def draw(n):
    return random.randbytes(n).hex()

print(time.time(), draw(20), [name for name in os.environ if name.startswith("LOCKSTEP_KEY")])
"""


@pytest.fixture
def recorded(lockstep: Any, program: Callable[[str], str]) -> None:
    done = lockstep("record", "--run", "refund", "--", PYTHON, program(AGENT), env=KEY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n"), "the program sees the key"


def test_a_keyed_run_is_authentic_for_who_has_the_key(lockstep: Any, recorded: None) -> None:
    mine = lockstep("verify", "refund", "--authentic", env=KEY)
    assert mine.returncode == 0, mine.stderr
    assert "✓ authentic" in mine.stderr and "✓ identical" in mine.stderr
    without = lockstep("verify", "refund", "--times", "0")
    assert (without.returncode, "set LOCKSTEP_KEY" in without.stderr) == (0, True)
    other = lockstep("verify", "refund", "--times", "0", env=OTHER)
    assert (other.returncode, "not with yours" in other.stderr) == (0, True)
    for env in ({}, OTHER):
        refused = lockstep("verify", "refund", "--authentic", env=env)
        assert refused.returncode == 1
        assert "✗ not authentic" in refused.stderr and "identical" not in refused.stderr
    told = json.loads(lockstep("verify", "refund", "--times", "0", "--json", env=KEY).stdout)
    assert (told["authentic"], told["trust"], told["consistent"]) == (True, "authentic", True)


def test_a_run_that_is_not_keyed_is_consistent_and_no_more(lockstep: Any, program: Callable[[str], str]) -> None:
    lockstep("record", "--run", "refund", "--", PYTHON, program(AGENT))
    done = lockstep("verify", "refund", "--times", "0")
    assert done.returncode == 0
    assert "✓ consistent" in done.stderr and "not keyed" in done.stderr
    asked = lockstep("verify", "refund", "--authentic", env=KEY)
    assert (asked.returncode, "it has no seal" in asked.stderr) == (1, True)


def test_the_stream_of_the_supervisor_is_missed(lockstep: Any, recorded: None, tmp_path: Path) -> None:
    """And with it the roll of the others: such a record is not said to be whole."""
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("DELETE FROM stream WHERE process='launch'")
    connection.commit()
    connection.close()
    told = json.loads(lockstep("verify", "refund", "--times", "0", "--json", env=KEY).stdout)
    assert (told["open_end"], told["authentic"]) == (True, False)


def test_a_stream_that_was_taken_out_is_missed(lockstep: Any, recorded: None, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("DELETE FROM stream WHERE process='main'")
    connection.commit()
    connection.close()
    done = lockstep("verify", "refund", "--times", "0")
    assert done.returncode == 1
    assert "process main: missing: the stream was there when the command ended" in done.stderr


def test_a_weak_key_stops_before_the_program_runs(lockstep: Any, program: Callable[[str], str]) -> None:
    done = lockstep("record", "--", PYTHON, program("print('ran')"), env={"LOCKSTEP_KEY": "hunter2"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "LS208" in done.stderr and "hunter2" not in done.stderr


def test_a_run_goes_through_a_tape_and_replays(lockstep: Any, recorded: None, tmp_path: Path) -> None:
    exported = lockstep("export", "refund", "-o", "refund.tape.zst")
    assert exported.returncode == 0, exported.stderr
    assert "● exported refund  tape" in exported.stderr
    again = lockstep("export", "refund", "-o", "refund.tape.zst")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    imported = lockstep("import", "refund.tape.zst", "--json", env=KEY)
    [told] = json.loads(imported.stdout)
    assert (told["run"], told["recorded_as"], told["trust"]) == ("refund-2", "refund", "authentic")
    refused = lockstep("replay", "refund-2")
    assert (refused.returncode, "LS302" in refused.stderr) == (2, True)
    assert lockstep("replay", "refund-2", "--trust").returncode == 0
    assert lockstep("replay", "refund-2", "--", PYTHON, "agent.py").returncode == 0
    named = lockstep("verify", "refund-2", "--times", "0", env=KEY)
    assert "it was recorded as refund" in named.stderr
    [row] = [run for run in json.loads(lockstep("runs", "--json").stdout) if run["run"] == "refund-2"]
    assert row["origin"] == str(tmp_path / "refund.tape.zst")
    assert "imported" in lockstep("runs").stdout


def test_a_tape_is_read_where_it_lies(lockstep: Any, recorded: None) -> None:
    lockstep("export", "refund", "-o", "refund.tape")
    assert "draw" in lockstep("log", "refund", "--store", "refund.tape").stdout
    assert lockstep("replay", "refund", "--trust", "--store", "refund.tape").returncode == 0
    written = lockstep("record", "--store", "refund.tape", "--", PYTHON, "agent.py")
    assert written.returncode == 2


def test_lines_of_json_go_to_stdout(lockstep: Any, recorded: None) -> None:
    done = lockstep("export", "refund", "--output", "-")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["run"] == "refund"
    assert {row["kind"] for row in rows[1:]} >= {"START", "BEGIN", "END", "FINISH"}
    wrong = lockstep("export", "refund", "--output", "x", "--format", "xml")
    told = "LS215 'xml' is no format that refund can be written in: tape, jsonl"
    assert (wrong.returncode, told in wrong.stderr) == (2, True)


def test_runs_are_deleted_and_the_room_is_given_back(lockstep: Any, recorded: None, tmp_path: Path) -> None:
    lockstep("export", "refund", "-o", "t")
    lockstep("import", "t")
    missing = lockstep("rm", "refund-2", "nothing")
    assert (missing.returncode, "LS205" in missing.stderr) == (2, True)
    assert [run["run"] for run in json.loads(lockstep("runs", "--json").stdout)] == ["refund-2", "refund"]
    assert lockstep("rm", "refund-2").returncode == 0
    freed = lockstep("gc", "--json")
    told = json.loads(freed.stdout)
    assert told["after"] == (tmp_path / "store.db").stat().st_size
    assert "● freed" in lockstep("gc").stderr
    assert lockstep("verify", "refund", "--times", "0").returncode == 0


# Stores that cannot be written.


def test_a_program_runs_on_when_the_disk_is_full(lockstep: Any, program: Callable[[str], str]) -> None:
    """`ulimit -f` stands for the disk: no file may grow beyond that."""
    agent = program(
        "import random, lockstep\n"
        "draw = lockstep.tool(lambda n: random.randbytes(3000).hex())\n"
        "for n in range(60): draw(n)\n"
        "print('the end')\n"
    )
    limit = 80 << 10
    done = lockstep(
        "record", "--run", "full", "--", PYTHON, agent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
    assert "● full  interrupted" in done.stderr
    assert done.stderr.count("LS203 no room") == 1
    checked = lockstep("verify", "full", "--times", "0")
    assert (checked.returncode, "open end" in checked.stderr) == (0, True)


READ_ONLY = """
import os, sys
# While the interpreter's own files can be read.
import zstandard
from lockstep.debugger import listing
from lockstep.errors import LockstepError
from lockstep.log.sqlite.store import SqliteStore
from lockstep.log.store import open_store
if os.geteuid() == 0:  # whom permissions do not stop
    os.setgid(65534)
    os.setuid(65534)
with open_store(sys.argv[1]) as store:
    print([(run.run, run.state) for run in listing.runs(store)])
try:
    open_store(sys.argv[1], create=True).create_run("mine", {})
except LockstepError as error:
    print(error)
"""


def test_a_store_is_read_where_nobody_may_write(lockstep: Any, recorded: None, tmp_path: Path) -> None:
    place = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        lockstep("gc")
        (place / "store.db").write_bytes((tmp_path / "store.db").read_bytes())
        (place / "store.db").chmod(0o444)
        place.chmod(0o555)
        done = subprocess.run(
            [PYTHON, "-c", READ_ONLY, str(place / "store.db")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        listed, refused = done.stdout.splitlines()
        assert listed == "[('refund', 'complete')]"
        assert refused.startswith("LS203 no permission to write") and "--store or LOCKSTEP_STORE" in refused
    finally:
        place.chmod(0o755)
        (place / "store.db").unlink()
        place.rmdir()


def test_a_store_below_a_file_is_refused_with_what_to_do(lockstep: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = lockstep("record", "--store", "file/store.db", "--", PYTHON, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "LS203" in done.stderr
