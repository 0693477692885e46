"""The post-import hook: installs run once the module is there, and the program's import is what it was."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lockstep.taps import imports
from lockstep.taps.imports import during_import, when_imported

MADE = ("ls_late", "ls_loaded", "ls_broken", "ls_reloaded", "ls_swapped", "ls_twice", "ls_unrunnable")


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in MADE:
        (tmp_path / f"{name}.py").write_text("value = 1\nloader_while_running = __spec__.loader\n")
    yield tmp_path
    for name in MADE:
        sys.modules.pop(name, None)
        imports._installs.pop(name, None)


def test_a_module_imported_later_is_installed_after_its_own_code() -> None:
    seen: list[int] = []
    when_imported("ls_late", lambda module: seen.append(module.value))
    assert seen == []
    importlib.import_module("ls_late")
    assert seen == [1]


def test_a_loaded_module_is_installed_at_once() -> None:
    module = importlib.import_module("ls_loaded")
    seen: list[ModuleType] = []
    when_imported("ls_loaded", seen.append)
    assert seen == [module]


def test_the_program_sees_the_real_loader_only() -> None:
    when_imported("ls_late", lambda module: None)
    found = importlib.util.find_spec("ls_late")
    assert found is not None and "value = 1" in found.loader.get_source("ls_late")  # type: ignore[union-attr]
    module = importlib.import_module("ls_late")
    plain = importlib.import_module("ls_loaded")
    for loader in (module.__loader__, module.__spec__.loader, module.loader_while_running):  # type: ignore[union-attr]
        assert type(loader) is type(plain.__loader__)


def test_a_fault_of_an_install_is_kept_and_the_import_and_the_next_install_go_on() -> None:
    seen: list[ModuleType] = []

    def broken(module: ModuleType) -> None:
        raise ValueError("ours")

    before = len(imports.faults)
    when_imported("ls_broken", broken)
    when_imported("ls_broken", seen.append)
    assert importlib.import_module("ls_broken").value == 1
    assert [(where, str(error)) for where, error in imports.faults[before:]] == [("tap of ls_broken", "ours")]
    assert len(seen) == 1


def test_a_reload_is_installed_again() -> None:
    module = importlib.import_module("ls_reloaded")
    when_imported("ls_reloaded", lambda module: setattr(module, "value", module.value + 1))
    assert module.value == 2
    importlib.reload(module)
    assert module.value == 2


def test_a_module_that_replaces_itself_is_installed_as_what_it_became(modules: Path) -> None:
    (modules / "ls_swapped.py").write_text("import sys, types\nsys.modules[__name__] = types.ModuleType('other')\n")
    seen: list[str] = []
    when_imported("ls_swapped", lambda module: seen.append(module.__name__))
    importlib.import_module("ls_swapped")
    assert seen == ["other"]


def test_an_import_that_fails_fails_as_it_would_and_installs_nothing(modules: Path) -> None:
    (modules / "ls_unrunnable.py").write_text("raise RuntimeError('of the module')\n")
    seen: list[ModuleType] = []
    when_imported("ls_unrunnable", seen.append)
    with pytest.raises(RuntimeError, match="of the module"):
        importlib.import_module("ls_unrunnable")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ls_late.missing")
    assert seen == []


def test_the_same_install_given_twice_runs_once() -> None:
    seen: list[ModuleType] = []
    when_imported("ls_twice", seen.append)
    when_imported("ls_twice", seen.append)
    importlib.import_module("ls_twice")
    assert len(seen) == 1


def test_a_module_is_loaded_within_what_surrounds_it_also_where_that_fails(modules: Path) -> None:
    within: list[str] = []

    @contextlib.contextmanager
    def surround() -> Iterator[None]:
        within.append("in")
        try:
            yield
        finally:
            within.append("out")

    for name in ("ls_late", "ls_broken"):
        during_import(name, surround)
    try:
        (modules / "ls_broken.py").write_text("raise OSError('broken')")
        when_imported("ls_late", lambda module: within.append("installed"))
        assert importlib.util.find_spec("ls_late") is not None
        assert within == []
        importlib.import_module("ls_late")
        assert within == ["in", "out", "installed"]
        with pytest.raises(OSError, match="broken"):
            importlib.import_module("ls_broken")
        assert within[3:] == ["in", "out"]
    finally:
        imports._surrounds.clear()
