"""The distribution: what its wheel holds, what it brings along, and that it works where nothing else is."""

import json
import os
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMED = {"msgspec", "typer", "zstandard"}
PACKAGES = [ROOT / "core/lockstep", *(ROOT / "adapters").glob("*/lockstep_*")]


def run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=ROOT)
    (built,) = place.glob("*.whl")
    return built


def environment(place: Path, asked: str | Path) -> None:
    """A new environment with what is asked for, as tested."""
    run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, place)
    run(sys.executable, "-m", "uv", "pip", "install", "-p", place, "-c", ROOT / "constraints.txt", asked)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` directory of a new environment with the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    environment(place, wheel)
    return place / "bin"


def clean_environment(tmp_path: Path) -> dict[str, str]:
    """Without this checkout on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOCKSTEP", "VIRTUAL"))}
    return kept | {"LOCKSTEP_STORE": str(tmp_path / "store.db")}


def packages(bin_directory: Path) -> dict[str, set[str]]:
    """The installed distributions, each with the names that it requires without an extra."""
    listing = """
import importlib.metadata, json, re
print(json.dumps({
    re.sub("[-_.]+", "-", found.name).lower(): [
        re.split("[^A-Za-z0-9_.-]", line)[0].lower() for line in found.requires or () if "extra ==" not in line
    ]
    for found in importlib.metadata.distributions()
}))
"""
    return {name: set(needs) for name, needs in json.loads(run(bin_directory / "python", "-c", listing).stdout).items()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {path.relative_to(package.parent).as_posix() for package in PACKAGES for path in package.rglob("*.py")}
    assert sources <= names
    assert {"lockstep/py.typed", "lockstep/boot/sitecustomize.py", "lockstep/cli/troubleshooting.md"} <= names
    assert {name.split("/")[0] for name in names} == {
        *(package.name for package in PACKAGES),
        "lockstep_replay-0.1.0.dist-info",
    }
    assert "lockstep_replay-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_installed_command_explains_a_code(installed: Path, tmp_path: Path):
    told = run(installed / "lockstep", "explain", "LS210", cwd=tmp_path, env=clean_environment(tmp_path)).stdout
    assert told.startswith("LS210  Not covered.")


def test_plain_python_is_an_installed_adapter_that_passes(installed: Path, tmp_path: Path):
    """Found by its entry point, and tested without pytest, a framework or an SDK."""
    options = {"cwd": tmp_path, "env": clean_environment(tmp_path)}
    rows = {row["name"]: row for row in json.loads(run(installed / "lockstep", "adapters", "--json", **options).stdout)}
    assert (rows["python"]["source"], rows["python"]["verdict"]) == ("lockstep-replay 0.1.0", "tested")
    for name in ("langgraph", "temporal"):
        assert (rows[name]["source"], rows[name]["verdict"]) == ("lockstep-replay 0.1.0", "not installed")
    capability = "replays_identical_offline"
    tried = run(installed / "lockstep", "conformance", "python", "--only", capability, "--json", **options)
    assert json.loads(tried.stdout)["capabilities"] == {capability: "passed"}


@pytest.mark.parametrize(
    ("extra", "title", "name"),
    [("langgraph", "LangGraph", "LockstepCheckpointer"), ("temporal", "Temporal", "LockstepPlugin")],
)
def test_a_missing_framework_is_told_with_the_command_that_brings_it(
    extra: str, title: str, name: str, installed: Path, tmp_path: Path
):
    code = f"""
try:
    from lockstep_{extra} import {name}
except Exception as error:
    print(error)
"""
    told = run(installed / "python", "-c", code, cwd=tmp_path, env=clean_environment(tmp_path)).stdout
    assert told.startswith(f"LS404 {title} is not installed here")
    assert f'{installed / "python"} -m pip install "lockstep-replay[{extra}]"' in told


THREAD = """
from typing import TypedDict

from langgraph.graph import START, StateGraph
from lockstep_langgraph import LockstepCheckpointer

builder = StateGraph(TypedDict("State", {"count": int}))
builder.add_node("add", lambda state: {"count": state["count"] + 1})
builder.add_edge(START, "add")
graph = builder.compile(checkpointer=LockstepCheckpointer())
if __name__ == "__main__":
    print(graph.invoke({"count": 6}, {"configurable": {"thread_id": "t-1"}}))
"""


def test_the_extra_brings_langgraph_whose_threads_are_recorded_and_replayed(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
):
    place = tmp_path_factory.mktemp("extra") / "venv"
    environment(place, f"{wheel}[langgraph]")
    (tmp_path / "counting.py").write_text(THREAD)
    options = {"cwd": tmp_path, "env": clean_environment(tmp_path)}
    assert run(place / "bin/python", "counting.py", **options).stdout == "{'count': 7}\n"
    replayed = run(place / "bin/lockstep", "replay", "langgraph/t-1", "--target", "counting:graph", **options)
    assert "identical" in replayed.stderr
    (row,) = (
        row
        for row in json.loads(run(place / "bin/lockstep", "adapters", "--json", **options).stdout)
        if row["name"] == "langgraph"
    )
    assert (row["verdict"], row["attaches"]) == ("tested", True)


COUNTING = """
from temporalio import workflow


@workflow.defn
class Counting:
    @workflow.run
    async def run(self, given: int) -> int:
        return given + 1
"""


def test_the_extra_brings_temporal_whose_histories_are_replayed(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
):
    place = tmp_path_factory.mktemp("extra") / "venv"
    environment(place, f"{wheel}[temporal]")
    (tmp_path / "counting.py").write_text(COUNTING)
    options = {"cwd": tmp_path, "env": clean_environment(tmp_path)}
    history = ROOT / "examples" / "temporal_refund" / "overpaid.json"
    assert "imported temporal/ticket-4712" in run(place / "bin/lockstep", "import", history, **options).stderr
    words = ("replay", "temporal/ticket-4712", "--target", "counting")
    other = subprocess.run([place / "bin/lockstep", *words], capture_output=True, text=True, check=False, **options)
    assert "the recorded workflow is Refund" in other.stderr and "it has Counting" in other.stderr
    rows = json.loads(run(place / "bin/lockstep", "adapters", "--json", **options).stdout)
    (row,) = (row for row in rows if row["name"] == "temporal")
    assert (row["verdict"], row["attaches"]) == ("tested", True)


def test_it_asks_for_the_named_dependencies_only(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        metadata = HeaderParser().parsestr(archive.read("lockstep_replay-0.1.0.dist-info/METADATA").decode())
    asked = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.split(">=")[0] for line in asked} == NAMED


def test_a_new_environment_has_nothing_but_the_named_dependencies_and_theirs(installed: Path):
    found = packages(installed)
    reached, left = set(), set(NAMED)
    while left:
        name = left.pop()
        reached.add(name)
        left |= (found[name] & found.keys()) - reached
    assert found.keys() == reached | {"lockstep-replay"}
    assert "rich" in found


def test_the_installed_command_records_and_replays(installed: Path, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import random, time, uuid\nprint(random.random(), time.time(), uuid.uuid4())\n")
    options = {"cwd": tmp_path, "env": clean_environment(tmp_path)}
    lockstep, python = installed / "lockstep", installed / "python"
    recorded = run(lockstep, "record", "--run", "small", "--", python, program, **options)
    replayed = run(lockstep, "replay", "small", **options)
    assert recorded.stdout
    assert replayed.stdout == recorded.stdout
    assert "identical" in replayed.stderr
    assert json.loads(run(lockstep, "runs", "--json", **options).stdout)


def test_importing_it_loads_no_framework_and_no_heavy_module(installed: Path, tmp_path: Path):
    heavy = "{'asyncio', 'typer', 'rich', 'inspect', 'importlib.metadata', 'http.client', 'ssl', 'sqlite3'}"
    loaded = run(
        installed / "python",
        "-c",
        f"import sys, lockstep; print(sorted({heavy} & sys.modules.keys()))",
        env=clean_environment(tmp_path),
    )
    assert loaded.stdout.strip() == "[]"


def find_python(*versions: str, path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the project's search for an interpreter answers with only `path` and the system's own commands."""
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(path)} | variables
    command = (ROOT / ".ci/python", *versions)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def executable(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_search_for_python_passes_over_what_does_not_run(tmp_path: Path):
    """As pyenv's shims of versions that are not selected."""
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    executable(tmp_path / "python3.14", "echo not selected >&2; exit 127")
    executable(tmp_path / f"python{version}", f'exec "{real}" "$@"')
    found = find_python("3.14", version, path=tmp_path)
    assert (found.returncode, found.stdout.strip()) == (0, real)


def test_without_a_usable_python_it_says_what_is_missing(tmp_path: Path):
    found = find_python("3.99", path=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert "Needed is CPython 3.12 or newer" in found.stderr
    assert "make PYTHON=" in found.stderr


def test_a_named_python_that_does_not_run_is_an_error(tmp_path: Path):
    found = find_python("any", path=tmp_path, PYTHON=str(tmp_path / "nowhere"))
    assert (found.returncode, found.stdout) == (1, "")
    assert str(tmp_path / "nowhere") in found.stderr


def test_no_committed_file_names_an_index_or_a_place_of_one_machine():
    files = run("git", "ls-files", cwd=ROOT).stdout.splitlines()
    telling = ("pypi" + ".org", "/" + "root/", "/opt/" + "pypi", "--index" + "-url")
    for name in files:
        text = (ROOT / name).read_text(errors="replace") if (ROOT / name).is_file() else ""
        assert not [words for words in telling if words in text], name
