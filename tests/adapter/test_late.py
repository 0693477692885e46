"""An adapter's package is loaded to be listed, and what it has is loaded when it is asked for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lockstep import adapter as adapters
from lockstep.adapter import Later, validation
from lockstep.errors import TargetError

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][adapters.GROUP])
PACKAGES = sorted(found.name for found in ROOT.glob("adapters/*/lockstep_*"))
# Not all frameworks can be in one environment: AutoGen's has tests of its own, this file among them.
HERE = [name for name in PACKAGES if find_spec(import_module(name).adapter.modules[0]) is not None]


@pytest.mark.parametrize("name", HERE)
def test_all_public_names_are_there(name: str) -> None:
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is vars(package)[public]


@pytest.mark.parametrize("name", PACKAGES)
def test_who_looks_at_every_attribute_of_every_module_loads_no_framework(name: str) -> None:
    program = f"""
import sys
import {name} as package
for module in list(sys.modules.values()):
    for attribute in dir(module):
        getattr(module, attribute, None)
framework = package.adapter.modules[0]
print([module for module in sys.modules if module.partition(".")[0] == framework])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.stdout == "[]\n", told.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there_is_told_as_that_of_any_module(name: str) -> None:
    package = import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'recorder'"):
        _ = package.recorder
    with pytest.raises(ImportError, match=f"cannot import name 'recorder' from '{name}'"):
        exec(f"from {name} import recorder")


def _at_once(given: Any) -> Any:
    """A struct with the functions themselves in place of those that come later."""
    if isinstance(given, Later):
        return given.function()
    if not isinstance(given, msgspec.Struct):
        return given
    fields = {field: _at_once(getattr(given, field)) for field in given.__struct_fields__}
    return msgspec.structs.replace(given, **fields)


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name == "python" or f"lockstep_{name}" in HERE])
def test_the_functions_that_come_later_are_there_and_take_what_they_are_given(name: str) -> None:
    found = adapters.get(name)
    assert validation.checked(_at_once(found), name, "this distribution")


def test_a_function_that_comes_later_is_imported_when_it_is_called(install: Callable[..., None]) -> None:
    install("toykit", "1.3", toykit="def times(number, *, by=2):\n    return number * by\n")
    times = Later("toykit:times")
    assert "toykit" not in sys.modules
    assert (times(4), times(4, by=5)) == (8, 20)


@pytest.fixture
def crew(packages: Path, toy: Callable[..., None]) -> Path:
    """A package whose `tap` is in a module that imports the toy's framework and something else."""
    toy()
    package = packages / "lockstep_crew"
    package.mkdir()
    (package / "tapping.py").write_text("import toykit, toybox\n\ndef tap(): ...\n")
    (package / "__init__.py").write_text(
        "from lockstep.adapter import late_names\n"
        "from lockstep_toy import adapter\n"
        '__getattr__ = late_names(adapter, globals(), tap="tapping")\n'
    )
    return package


@pytest.mark.usefixtures("crew")
def test_where_the_framework_is_missing_a_name_says_how_to_install_it() -> None:
    with pytest.raises(TargetError, match=r"LS404 Toy is not installed here .* -m pip install toykit"):
        _ = import_module("lockstep_crew").tap


@pytest.mark.usefixtures("crew")
def test_where_something_else_is_missing_that_is_told(install: Callable[..., None]) -> None:
    install("toykit", "1.3", toykit="")
    package = import_module("lockstep_crew")
    with pytest.raises(ModuleNotFoundError, match="No module named 'toybox'"):
        _ = package.tap
    install("toybox", toybox="")
    assert package.tap is vars(package)["tap"]
