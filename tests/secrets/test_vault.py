"""The vault: who can read it, several writers, what is lost with it and what goes with a run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from secret_runs import lockstep, replayed

from lockstep import inprocess
from lockstep.log.store import open_store
from lockstep.log.vault import SUFFIX, Vault, delete, is_id, new_id

WRITER = """
import sys
from lockstep.log.vault import Vault
vault = Vault(sys.argv[1], sys.argv[2])
for number in range(100):
    vault.put(f"{sys.argv[3]}-{number}", b"value " + sys.argv[3].encode() * 100)
"""
AGENT = """
import sys, lockstep
@lockstep.tool
def login(user): return {"access_token": "tok-" + user + "-0123456789"}
@lockstep.tool
def call(headers): return "done"
token = login("bob")["access_token"]
print(token, call({"Authorization": "Bearer " + token}), sys.argv[1:])
"""


def test_a_value_comes_back_also_when_it_is_no_text(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "store.db"), new_id())
    for name, value in (("a", b"text"), ("b", b"\xff\x00\n"), ("c", "süß\n".encode()), ("a", b"newer")):
        vault.put(name, value)
    assert vault.read() == ({"a": b"newer", "b": b"\xff\x00\n", "c": "süß\n".encode()}, "")


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "store.db"), new_id())
    before = os.umask(0)
    try:
        vault.put("a", b"b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(vault.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(vault.path)).st_mode) == 0o700


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    store, vault = str(tmp_path / "store.db"), new_id()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, store, vault, name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    values, wrong = Vault(store, vault).read()
    assert not wrong
    assert len(values) == 300


def test_a_damaged_vault_says_so_and_gives_what_it_still_has(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "store.db"), new_id())
    vault.put("a", b"first")
    vault.put("b", b"second")
    path = Path(vault.path)
    path.write_bytes(path.read_bytes()[:-9] + b"\xff{]\n")
    values, wrong = vault.read()
    assert values == {"a": b"first"}
    assert "damaged" in wrong


@pytest.mark.parametrize("text", ["", "..", "../../etc/passwd", "A" * 32, None, 7, "0" * 31])
def test_a_stranger_s_run_names_no_other_file(text: object) -> None:
    assert not is_id(text)
    assert is_id(new_id())


def test_a_run_s_vault_goes_with_it_and_a_copy_keeps_it(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with inprocess.record("a", store=store) as session:
        session.step("s", {"password": "hunter2-abc"})
    [vault] = (tmp_path / f"store.db{SUFFIX}").iterdir()
    with open_store(store) as opened:
        meta = opened.run("a").meta
        opened.create_run("copy", meta)
        opened.delete_run("a")
        assert vault.exists()
        opened.delete_run("copy")
    assert not vault.parent.exists()
    delete(store, new_id())  # nothing there: nothing wrong


def test_without_the_vault_and_with_a_damaged_one_the_run_replays_and_says_what_it_is(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    done = lockstep("record", "--run", "a", "--", sys.executable, str(program), "--api-key", "given-on-the-line-1")
    assert done.returncode == 0, done.stderr
    [vault] = (tmp_path / f"store.db{SUFFIX}").iterdir()
    assert replayed("a")["redacted"] == []
    shown = lockstep("replay", "a")
    assert "given-on-the-line-1" in shown.stdout

    whole = vault.read_bytes()
    vault.write_bytes(b"{nonsense\n" + whole)
    damaged = lockstep("replay", "a")
    assert damaged.returncode == 1
    assert "the vault are damaged" in damaged.stderr

    vault.unlink()
    without = lockstep("replay", "a")
    assert without.returncode == 0, without.stderr
    assert "identical (redacted)" in without.stderr
    assert "lockstep-secret.access_token-1. done" in without.stdout
    assert replayed("a")["redacted"] == ["access_token-1", "api-key-1"]


def test_another_key_on_the_command_line_is_the_same_run(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    lockstep("record", "--run", "a", "--", sys.executable, str(program), "--api-key", "given-on-the-line-1")
    done = lockstep("replay", "a", "--", sys.executable, str(program), "--api-key", "another-one-2")
    assert done.returncode == 0, done.stderr
    assert "another-one-2" in done.stdout
