import os
from pathlib import Path

import pytest

from lockstep.errors import Code, TargetError
from lockstep_playwright.browsers import COMMANDS, VARIABLE, find_chromium


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is all of the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    return folder


def command(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_what_is_said_comes_before_what_is_set_and_that_before_what_is_found(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = command(installed / "chromium")
    assert find_chromium() == on_path
    bundled = command(installed / "bundled")
    assert find_chromium(bundled=bundled) == bundled
    variable = command(installed / "set")
    monkeypatch.setenv(VARIABLE, variable)
    assert find_chromium(bundled=bundled) == variable
    said = command(installed / "said")
    assert find_chromium(said, bundled) == said


def test_a_browser_that_playwright_would_have_loaded_but_has_not_is_not_taken(installed: Path) -> None:
    on_path = command(installed / "chromium")
    assert find_chromium(bundled=str(installed / "not-loaded")) == on_path


@pytest.mark.parametrize("name", COMMANDS)
def test_each_name_that_systems_give_it_is_known(installed: Path, name: str) -> None:
    path = command(installed / name)
    assert find_chromium() == path


def test_without_one_the_error_names_three_ways_out(installed: Path) -> None:
    with pytest.raises(TargetError) as raised:
        find_chromium(bundled=str(installed / "not-loaded"))
    assert raised.value.code is Code.NO_BROWSER
    for way in ("playwright install chromium", "apt install chromium", VARIABLE):
        assert way in str(raised.value)


def test_what_is_said_and_is_not_there_is_an_error_and_nothing_else_is_taken(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(installed / "chromium")
    with pytest.raises(TargetError, match="executable= says '/nowhere/chrome'"):
        find_chromium("/nowhere/chrome")
    monkeypatch.setenv(VARIABLE, os.path.join(installed, "gone"))
    with pytest.raises(TargetError, match=VARIABLE):
        find_chromium()
