"""Which tests run again in an environment of other versions: those of what another version may do otherwise."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
# Adapters have their own folders, all of whose tests name a framework: the Makefile says which run again.
OF_ADAPTERS = ("langgraph", "temporal", "playwright", "autogen", "ag2", "crewai")
# Names by which a package is imported, where it is not its own.
IMPORTED = {"pydantic-core": "pydantic_core", "time-machine": "time_machine", "uuid-utils": "uuid_utils"}
# By environment: the Makefile's list of the tests that run there, and tests that name a package which is another one
# there and yet do not run, with the reason.
_CLIENTS = "the clients' taps are those of tests/taps/http"
AGAIN = {"oldest": "VERSIONED", "openai2": "SDKS"}
NOT_AGAIN = {
    "oldest": {
        "tests/adapter": "structs of ours, read with msgspec as in all tests of the log",
        "tests/bisecting": "the same",
        "tests/children": _CLIENTS,
        "tests/conformance": "structs of ours",
        "tests/debugger": "looks at records, which are alike whoever made them",
        "tests/edits": "what is served is edited before a tap gets it",
        "tests/log/test_branches.py": "the same work as `test_native` and `test_reader`: in `make stress`",
        "tests/log/test_branches_random.py": "the same",
        "tests/log/test_exchange.py": "the same",
        "tests/log/test_hostile.py": "the same",
        "tests/log/test_seal.py": "the same",
        "tests/log/test_verify.py": "the same",
        "tests/replay": _CLIENTS,
        "tests/secrets": _CLIENTS,
        "tests/stress": "structs of ours",
        "tests/test_docs.py": "typer makes the help that the pages show: of the newest",
        "tests/uncovered": "clients that the oldest environment does not have",
    },
    "openai2": {
        "tests/children": _CLIENTS,
        "tests/edits/test_models.py": "gives the SDKs a client of httpx2, which those refuse",
        "tests/replay": _CLIENTS,
        "tests/taps/test_entropy.py": "uuid-utils is tested at both ends elsewhere",
    },
}


def pins(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


@cache
def differing(environment: str) -> frozenset[str]:
    """Modules of packages of which an environment has another version."""
    newest, there = pins("constraints.txt"), pins(f"constraints-{environment}.txt")
    # Tools of ours are in no test's way: what is tested is what a program would import.
    names = {name for name, version in there.items() if newest.get(name) != version} - {"pytest", "hatchling", "uv"}
    return frozenset(IMPORTED.get(name, name) for name in names)


def again(environment: str) -> tuple[Path, ...]:
    """The tests that the Makefile says run there."""
    makefile = (ROOT / "Makefile").read_text()
    listed = rf"^{AGAIN[environment]} = \$\(addprefix tests/, (.+?)\)$"
    said = re.search(listed, makefile, re.MULTILINE | re.DOTALL)
    assert said is not None
    return tuple(TESTS / word for word in said[1].replace("\\", " ").split())


@cache
def imported(file: Path) -> frozenset[str]:
    """What a file imports, by itself or by files of its folder: those that it imports, and programs that it names."""
    text = file.read_text()
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    names = {name.partition(".")[0] for name in found}
    beside = [*file.parent.glob("*.py"), *file.parent.glob("programs/*.py"), *file.parent.glob("agents/*.py")]
    for other in {*beside, *(TESTS.parent / f"{name.replace('.', '/')}.py" for name in found)} - {file}:
        named = (
            other.name in text
            or other.stem in names
            or ".".join(other.relative_to(ROOT).with_suffix("").parts) in found
        )
        if named and other.exists() and other.name != "conftest.py" and not other.name.startswith("test_"):
            names |= imported(other)
    return frozenset(names)


def depending(environment: str) -> list[Path]:
    """Test files that name a module of which an environment has another version."""
    files = [file for file in TESTS.rglob("test_*.py") if file.relative_to(TESTS).parts[0] not in OF_ADAPTERS]
    return sorted(file for file in files if imported(file) & differing(environment))


@pytest.mark.parametrize("environment", AGAIN)
def test_tests_that_depend_on_a_version_run_with_another_one_too(environment: str) -> None:
    inside = [*again(environment), *(ROOT / name for name in NOT_AGAIN[environment])]
    missing = [file for file in depending(environment) if not any(file.is_relative_to(place) for place in inside)]
    assert missing == [], f"name them in {AGAIN[environment]} of the Makefile, or above with the reason"


@pytest.mark.parametrize("environment", AGAIN)
def test_each_reason_is_still_needed_and_each_place_still_there(environment: str) -> None:
    files = depending(environment)
    for name in NOT_AGAIN[environment]:
        assert any(file.is_relative_to(ROOT / name) for file in files), name
        assert not any((ROOT / name).is_relative_to(place) for place in again(environment)), name
    assert [place for place in again(environment) if not place.exists()] == []


def test_what_a_test_imports_is_found_through_its_helpers_and_programs() -> None:
    assert "time_machine" in imported(TESTS / "taps" / "test_clock.py")
    assert "kinds" in imported(TESTS / "secrets" / "test_everywhere.py")
    assert "httpx" in imported(TESTS / "taps" / "http" / "test_held.py")
