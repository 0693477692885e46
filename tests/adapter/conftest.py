"""Adapters that are installed for a test: real distributions, with their metadata, in a directory on the path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockstep.adapter import registry

ADAPTER = """
from lockstep.adapter import Adapter, Later, Steps, Target, Versions, Way

def attach(module):
    module.attached = getattr(module, "attached", 0) + 1

def program(target, given):
    return target.run

adapter = Adapter(
    name="{name}", title="Toy", distribution="toykit", modules=("toykit",), tested=Versions("1.2", "1.4"),
    instrument=attach, steps=Steps(kind="toy", what="each toy"),
    restore=Way(exact=False, reason="too lossy"), re_execute=Way(exact=True),
    target=Target(what="a toy", inputs="recorded", accepts=lambda target: hasattr(target, "toy"), program=program),
    subject="lockstep_{name}:subject",
)
"""

type Install = Callable[..., None]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of installed packages, on this process's path and on that of its children."""
    place = tmp_path / "packages"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=":")
    registry.found.cache_clear()
    yield place
    registry.found.cache_clear()
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(str(place)):
            del sys.modules[name]


@pytest.fixture
def install(packages: Path) -> Install:
    """Installs a distribution: its modules, and its entry points in our group."""

    def install(distribution: str, version: str = "1.0", entries: str = "", **modules: str) -> None:
        for name, source in modules.items():
            (packages / f"{name}.py").write_text(source)
        information = packages / f"{distribution.replace('-', '_')}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        if entries:
            (information / "entry_points.txt").write_text(f"[lockstep.adapters]\n{entries}\n")

    return install


@pytest.fixture
def toy(install: Install) -> Callable[..., None]:
    """Installs an adapter by name; fields that a test wants otherwise are replaced in its source."""

    def make(name: str = "toy", *, old: str = "", new: str = "", distribution: str = "") -> None:
        source = ADAPTER.format(name=name)
        assert old in source
        module = f"lockstep_{name}"
        install(
            distribution or f"lockstep-{name}", entries=f"{name} = {module}:adapter",
            **{module: source.replace(old, new) if old else source},
        )  # fmt: skip

    return make
