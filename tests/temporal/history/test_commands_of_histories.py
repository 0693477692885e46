"""Histories on the command line: imported, checked against today's code, and taken from a server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import hidden
import kitchen_sink
import pytest
from live_server import Server, Work, committed, worked

import lockstep
from lockstep import cli
from lockstep.log.store import open_store
from lockstep_temporal.recorded import Recorded

HERE = Path(__file__).parent


class Said(NamedTuple):
    stdout: str
    stderr: str


type Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """`lockstep` with these words, in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))

    def called(*words: str, status: int = 0) -> Said:
        monkeypatch.setattr(sys, "argv", ["lockstep", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli._main()
            raise SystemExit(0)
        said = Said(*capfd.readouterr())
        assert (ended.value.code or 0) == status, said
        return said

    return called


def written(folder: Path, *names: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.json").write_text(committed(name))
    return [str(folder / f"{name}.json") for name in names]


def test_histories_of_a_chain_are_imported_in_any_order_and_replayed(run: Run, tmp_path: Path) -> None:
    done = run("import", "--json", *written(tmp_path / "past", "edges.2", "steps", "edges.1"))
    told = json.loads(done.stdout)
    assert [each["run"] for each in told] == ["temporal/edges", "temporal/steps", "temporal/edges"]
    replayed = json.loads(run("replay", "temporal/edges", "--target", "kitchen_sink", "--json").stdout)
    assert (replayed["identical"], replayed["steps"]) == (True, 20)
    (local,) = (each for each in replayed["coverage"] if each["source"] == "local_activity")
    assert local["detail"].startswith("a history says which ones were called")


def test_a_folder_of_histories_is_checked_one_line_each(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "past" / "more", "edges.1", "unwinds")
    written(tmp_path / "past", "steps", "kitchen_sink.2")
    lines = run("replay", "past", "--target", "kitchen_sink").stderr.splitlines()
    assert lines == [
        "✓ past/kitchen_sink.2.json  identical  13 steps",
        "✓ past/steps.json  identical  6 steps",
        "✓ past/more/edges.1.json  identical  10 steps",
        "✓ past/more/unwinds.json  identical  4 steps",
        "4 of 4 files identical",
    ]
    assert not (tmp_path / "store.db").exists()


def test_what_diverges_is_named_and_ends_with_1(run: Run, tmp_path: Path) -> None:
    source = Path(kitchen_sink.__file__).read_text()
    (tmp_path / "other_sink.py").write_text(source.replace("args=[number, list(done)]", "args=[-number, list(done)]"))
    files = written(tmp_path / "past", "unwinds", "steps")
    lines = run("replay", *files, "--target", "other_sink", status=1).stderr.splitlines()
    assert lines[0].startswith("✓ ")
    assert lines[1].endswith("diverged at step 0  LS101 activity: an argument differs  arguments[0]: 1 → -1")
    assert lines[2] == "1 of 2 files identical"
    assert lines[3].startswith("  one in full: lockstep replay ")
    told = json.loads(run("replay", *files, "--target", "other_sink", "--json", status=1).stdout)
    assert [(each["run"], each["identical"]) for each in told] == [(files[0], True), (files[1], False)]


def test_the_command_itself_ends_well(tmp_path: Path) -> None:
    (file,) = written(tmp_path / "past", "steps")
    roots = os.pathsep.join([str(HERE.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "replay", file, "--target", "kitchen_sink"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": roots},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("✓ identical   6 steps")


def test_a_single_file_says_all_that_a_replay_says(run: Run, tmp_path: Path) -> None:
    (file,) = written(tmp_path / "past", "steps")
    assert run("replay", file, "--target", "kitchen_sink").stderr.startswith("✓ identical   6 steps")
    told = json.loads(run("replay", file, "--target", "kitchen_sink:Steps", "--json").stdout)
    assert (told["run"], told["identical"]) == (file, True)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["replay", "past/steps.json", "--target", "no_such_module"], 125, "LS401 no_such_module cannot be imported"),
        (["replay", "past/steps.json", "--target", "kitchen_sink:Edges"], 125, "LS402"),
        (["replay", "past/steps.json"], 125, "LS401"),
        (["replay", "past/broken.json", "--target", "kitchen_sink"], 2, "LS214 past/broken.json: not a history"),
        (["replay", "past", "--target", "kitchen_sink"], 2, "✗ past/broken.json  LS214"),
        (["replay", "empty", "--target", "kitchen_sink"], 2, "LS201 no file in empty is one"),
        (["replay", "past/notes.txt", "--target", "kitchen_sink"], 2, "LS201"),
        (["import", "past/notes.txt"], 2, "LS201 not a tape: past/notes.txt"),
        (["import", "past/broken.json"], 2, "LS214 past/broken.json: not a history that can be imported"),
        (["import", "past/absent.json"], 2, "LS201 cannot read past/absent.json: No such file or directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_says_why_and_with_which_status(
    words: Sequence[str], status: int, told: str, run: Run, tmp_path: Path
) -> None:
    written(tmp_path / "past", "steps")
    (tmp_path / "past" / "broken.json").write_text(committed("steps")[:2000])
    (tmp_path / "past" / "notes.txt").write_text("remember the milk")
    (tmp_path / "empty").mkdir()
    assert told in run(*words, status=status).stderr


async def two_runs(work: Work) -> str:
    handle = await work.start(kitchen_sink.Edges.run, 1)
    await handle.result()
    return handle.id


@pytest.fixture(scope="module")
def pulled_id(temporal_server: Server) -> str:
    """A workflow that continued as new, whose payloads are encrypted."""
    return worked(
        temporal_server, two_runs, workflows=kitchen_sink.WORKFLOWS, activities=kitchen_sink.ACTIVITIES,
        data_converter=hidden.converter,
    )  # fmt: skip


def test_an_execution_is_taken_from_its_server(
    run: Run, pulled_id: str, temporal_server: Server, tmp_path: Path
) -> None:
    server = ("--address", temporal_server.address)
    told = json.loads(run("temporal", "pull", "-w", pulled_id, *server, "--json").stdout)
    assert (told["run"], len(told["run_ids"])) == (f"temporal/{pulled_id}", 2)
    assert run("temporal", "pull", "-w", pulled_id, *server, "--output", "past").stderr.count("● written past/") == 2
    assert run("replay", "past", "--target", "hidden:workers").stderr.endswith("2 of 2 files identical\n")
    assert "LS402" in run("replay", "past", "--target", "hidden:strangers", status=125).stderr
    assert "LS402" in run("replay", "past", "--target", "kitchen_sink", status=125).stderr
    missing = run("temporal", "pull", "-w", "nobody", *server, status=2).stderr
    assert f"LS205 the server at {temporal_server.address} has no workflow nobody in namespace default" in missing


def test_what_was_encrypted_is_not_written_in_clear(
    run: Run, pulled_id: str, temporal_server: Server, tmp_path: Path
) -> None:
    server = ("--address", temporal_server.address)
    run("temporal", "pull", "-w", pulled_id, *server, "--data-converter", "hidden:converter")
    run("temporal", "pull", "-w", pulled_id, *server, "--run", "blind")
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("store.db*") if file.is_file())
    for secret in (b"approved by", b"Ada", b"swallows", b"packed for"):
        assert secret not in stored
    replayed = lockstep.replay(f"temporal/{pulled_id}", hidden.workers, store=str(tmp_path / "store.db"))
    assert replayed.identical
    with open_store(str(tmp_path / "store.db")) as store:
        keys = [Recorded(store.run(name)).effects for name in (f"temporal/{pulled_id}", "blind")]
    with_codec, without = ([effect.begin.key for effect in effects if effect.kind == "activity"] for effects in keys)
    # With the codec the same call of both executions has one key; without, that of what was encrypted.
    assert with_codec[0] == with_codec[len(with_codec) // 2]
    assert len(with_codec) == len(without)


def test_no_server_at_all_is_told(run: Run) -> None:
    told = run("temporal", "pull", "-w", "order-7", "--address", "127.0.0.1:9", status=125).stderr
    assert "LS401 no Temporal server can be reached at 127.0.0.1:9" in told
