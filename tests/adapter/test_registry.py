"""Adapters are found by entry point, checked when they register, and listed with what they can do."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from lockstep import adapter as adapters
from lockstep.adapter import registry, versions
from lockstep.adapter.contract import Versions
from lockstep.errors import AdapterError, Code, TargetError

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][registry.GROUP])


def _lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lockstep", *words], capture_output=True, text=True, check=False)


def test_plain_python_is_registered_by_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = project["entry-points"][registry.GROUP]
    assert EntryPoint("python", entries["python"], registry.GROUP).load() is adapters.get("python")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_adapter_of_this_distribution_can_be_used_without_its_framework(name: str) -> None:
    loaded = "import sys; from lockstep import adapter; found = adapter.get(sys.argv[1]); "
    loaded += "print(found.name, [module for module in found.modules if module in sys.modules])"
    told = subprocess.run([sys.executable, "-c", loaded, name], capture_output=True, text=True, check=False)
    assert told.stdout == f"{name} []\n", told.stderr


def test_an_installed_adapter_is_found_with_its_source(toy: Callable[..., None]) -> None:
    toy()
    assert [found.name for found in adapters.installed()] == sorted([*SHIPPED, "toy"])
    row = next(row for row in registry.found() if row.name == "toy")
    assert row.source == "lockstep-toy 1.0"
    assert adapters.get("toy").title == "Toy"
    assert "toykit" not in sys.modules


def test_an_unknown_adapter_is_told_which_there_are() -> None:
    with pytest.raises(AdapterError, match=r"LS408 there is no adapter langchian\. Installed are: .*python"):
        adapters.get("langchian")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('name="toy"', 'name="joy"', "its entry point is called toy, and the adapter joy"),
        ('title="Toy"', "title=1", "title is a int, not a text"),
        ('title="Toy"', 'title=""', "title is empty"),
        ('modules=("toykit",)', "modules=()", "modules names no package of the framework"),
        ('modules=("toykit",)', 'modules=["toykit"]', "modules is not a tuple of module names"),
        ('"1.2", "1.4"', '"1.4", "1.2"', "tested ends with 1.2, before it begins with 1.4"),
        ('"1.2", "1.4"', '"1.2", "2.x"', "tested has '2.x', which is no version"),
        ('tested=Versions("1.2", "1.4")', 'tested="1.2"', "tested is a str, not a Versions"),
        ("instrument=attach", "instrument=lambda: None", "instrument cannot be called with 1 argument"),
        ("program=program", 'program="text"', "target.program is a str, not a function"),
        (
            "program=program",
            'program=Later("toykit")',
            "target.program is to come from 'toykit', which is not module:attribute",
        ),
        ('Way(exact=False, reason="too lossy")', "Way(exact=False)", "restore is not exact and gives no reason"),
        ('Way(exact=False, reason="too lossy")', "Way(exact=True)", "restore is exact and has no begin"),
        ("re_execute=Way(exact=True)", 're_execute=Way(exact=False, reason="no")', "no step could be continued from"),
        ("program=program", "program=attach", "target.program cannot be called with 2 arguments"),
        ("instrument=attach", "instrument=attach, reads=bool", "reads and imports go together: one of them is missing"),
        ("instrument=attach", "instrument=attach, reads=bool, imports=attach", "imports cannot be called with 3"),
        ("instrument=attach", 'instrument=attach, exports={"x": program}', "exports['x'] cannot be called with 1"),
        ("instrument=attach", 'instrument=attach, commands="toykit"', "commands is 'toykit', not module:attribute"),
        ('"lockstep_toy:subject"', '"lockstep_toy"', "subject 'lockstep_toy' is not module:attribute"),
    ],
)
def test_a_mistake_in_an_adapter_is_told_with_its_name(toy: Callable[..., None], old: str, new: str, told: str) -> None:
    toy(old=old, new=new)
    with pytest.raises(AdapterError) as raised:
        adapters.get("toy")
    assert raised.value.code is Code.BAD_ADAPTER
    assert raised.value.message.startswith("the adapter toy of lockstep-toy 1.0 cannot be used: ")
    assert told in raised.value.message
    assert [found.name for found in adapters.installed()] == SHIPPED


def test_all_mistakes_are_told_at_once(toy: Callable[..., None]) -> None:
    toy(old='title="Toy", distribution="toykit"', new="title=1, distribution=2")
    with pytest.raises(AdapterError, match="title is a int, not a text; distribution is a int"):
        adapters.get("toy")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("adapter = 'toy'", "it is a str, not a lockstep.adapter.Adapter"),
        ("", "AttributeError while it was loaded"),
        ("import no_such_module_of_mine", "ModuleNotFoundError while it was loaded"),
        ("1 / 0", "ZeroDivisionError while it was loaded"),
    ],
)
def test_what_is_no_adapter_is_told_and_keeps_no_other_away(
    source: str, told: str, toy: Callable[..., None], install: Callable[..., None]
) -> None:
    toy()
    install("lockstep-other", entries="other = lockstep_other_one:adapter", lockstep_other_one=source)
    with pytest.raises(AdapterError) as raised:
        adapters.get("other")
    assert told in raised.value.message
    assert [found.name for found in adapters.installed()] == sorted([*SHIPPED, "toy"])


def test_an_adapter_that_imports_its_framework_is_refused(
    toy: Callable[..., None], install: Callable[..., None]
) -> None:
    install("toykit", "1.3", toykit="")
    toy("eager", old="from lockstep", new="import toykit\nfrom lockstep")
    with pytest.raises(AdapterError, match="it imports toykit when it is loaded"):
        adapters.get("eager")


def test_two_adapters_of_one_name_are_refused_both(toy: Callable[..., None], install: Callable[..., None]) -> None:
    toy()
    (again := Path(sys.path[0]) / "lockstep_again.py").write_text((again.parent / "lockstep_toy.py").read_text())
    install("lockstep-again", entries="toy = lockstep_again:adapter")
    with pytest.raises(
        AdapterError,
        match=r"the adapter toy of lockstep-\w+ 1\.0 cannot be used: lockstep-\w+ 1\.0 has one of that name too",
    ):
        adapters.get("toy")


def test_a_missing_framework_is_told_with_the_command_that_brings_it(
    toy: Callable[..., None], install: Callable[..., None]
) -> None:
    toy()
    with pytest.raises(TargetError) as raised:
        adapters.require(adapters.get("toy"))
    assert raised.value.code is Code.MISSING_FRAMEWORK
    assert f"{sys.executable} -m pip install toykit" in raised.value.message
    extra = msgspec.structs.replace(adapters.get("toy"), extra="toy")
    with pytest.raises(TargetError, match=r'pip install "lockstep-replay\[toy\]"'):
        adapters.require(extra)
    install("toykit", "1.3", toykit="")
    assert adapters.require(adapters.get("toy")) == "1.3"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("1.1.9", versions.OLDER), ("1.2", versions.TESTED), ("1.2.0", versions.TESTED), ("1.3rc1", versions.TESTED),
        ("1.4", versions.TESTED), ("1.4.99", versions.TESTED), ("1.5", versions.NEWER), ("2", versions.NEWER),
        ("1", versions.OLDER), ("1.10", versions.NEWER),
    ],
)  # fmt: skip
def test_versions_are_compared_as_far_as_the_bounds_go(version: str, verdict: str) -> None:
    assert versions.verdict(version, Versions("1.2", "1.4")) == verdict


# Targets.


class Toy:
    toy = True

    def run(self) -> int:
        return 7


def test_a_target_finds_its_adapter(toy: Callable[..., None]) -> None:
    toy()
    found = adapters.of(Toy())
    assert found.name == "toy"
    assert found.target.program(Toy(), None)() == 7
    for function in (lambda: 1, functools.partial(int, "3"), Toy().run, Toy):
        assert adapters.of(function).name == ("toy" if function is Toy else "python")


def test_what_nobody_can_run_is_told_what_can_be(toy: Callable[..., None]) -> None:
    toy()
    with pytest.raises(TargetError, match=r"LS402 .*target is a int.*Python: callable .*; Toy: a toy"):
        adapters.of(7)


# The command.


def test_the_command_lists_adapters_with_versions_and_ways(
    toy: Callable[..., None], install: Callable[..., None]
) -> None:
    toy()
    install("toykit", "1.9", toykit="raise SystemExit('imported')")
    listed = _lockstep("adapters", "--json")
    assert listed.returncode == 0, listed.stderr
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["toy"]["installed"] == "1.9"
    assert rows["toy"]["verdict"] == "newer than tested"
    assert rows["toy"]["restore"] == "too lossy"
    assert rows["toy"]["re_execute"] == "exact"
    assert rows["python"]["verdict"] == "tested"
    plain = _lockstep("adapters")
    assert plain.returncode == 0
    assert "Toy 1.9, newer than tested" in plain.stdout


def test_the_command_tells_of_an_adapter_that_cannot_be_used(toy: Callable[..., None]) -> None:
    toy(old='title="Toy"', new="title=1")
    listed = _lockstep("adapters")
    assert listed.returncode == 1
    assert "LS407 the adapter toy of lockstep-toy 1.0 cannot be used: title is a int" in listed.stderr
    assert "python" in listed.stdout
