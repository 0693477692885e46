"""Which adapters are installed: found by entry point, checked, and none of their frameworks imported.

Reading a store asks nobody here: what an adapter recorded is inert data, and shown as such.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.adapter import python, versions
from lockstep.adapter.contract import Adapter
from lockstep.errors import AdapterError, Code, TargetError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "lockstep.adapters"
_HERE = "lockstep-replay"


class Found(msgspec.Struct, frozen=True):
    """One registered adapter. `adapter` is None where it cannot be used, for the `problem`. `source`: the distribution
    that it came in."""

    name: str
    source: str
    adapter: Adapter | None
    problem: AdapterError | None = None


@functools.cache
def found() -> tuple[Found, ...]:
    """All that are registered, by name, as of the first call."""
    from importlib.metadata import entry_points

    from lockstep.adapter import validation

    # Plain Python is there also where Lockstep runs from a checkout that was not installed.
    rows = {python.adapter.name: Found(python.adapter.name, _HERE, python.adapter)}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        source = _source(entry)
        known = rows.get(entry.name)
        try:
            adapter = load(entry, source)
        except AdapterError as error:
            rows.setdefault(entry.name, Found(entry.name, source, None, error))
            continue
        if known is not None and known.adapter is not None and known.adapter is not adapter:
            # Not one of the two, by chance of the order on disk.
            twice = validation.invalid(entry.name, source, [f"{known.source} has one of that name too"])
            rows[entry.name] = Found(entry.name, f"{known.source}, {source}", None, twice)
            continue
        rows[entry.name] = Found(entry.name, source, adapter)
    return tuple(rows[name] for name in sorted(rows))


def installed() -> tuple[Adapter, ...]:
    """The adapters that can be used, by name. Their frameworks may be missing: `require` tells."""
    return tuple(row.adapter for row in found() if row.adapter is not None)


def get(name: str) -> Adapter:
    """The adapter of that name. Raises AdapterError LS407 where it cannot be used, LS408 where there is none."""
    for row in found():
        if row.name == name:
            if row.problem is not None:
                raise row.problem
            assert row.adapter is not None
            return row.adapter
    known = ", ".join(row.name for row in found())
    raise AdapterError(Code.NO_ADAPTER, f"there is no adapter {name}. Installed are: {known}")


def of(target: Any) -> Adapter:
    """The adapter whose target an object is. Raises TargetError LS402 where it is none of any."""
    # A function is never a framework's object, and most targets are functions: nothing needs to be looked for.
    if isinstance(target, (FunctionType, MethodType, functools.partial)):
        return python.adapter
    for adapter in installed():
        if adapter is not python.adapter and adapter.target.accepts(target):
            return adapter
    if python.adapter.target.accepts(target):
        return python.adapter
    known = "; ".join(f"{adapter.title}: {adapter.target.what}" for adapter in installed())
    raise TargetError(Code.BAD_TARGET, f"the target is a {type(target).__name__}, which nothing can run. {known}")


def load(entry: EntryPoint, source: str) -> Adapter:
    """Imports what an entry point names and checks it. Raises AdapterError LS407."""
    from lockstep.adapter import validation  # imports `inspect`

    before = set(sys.modules)
    try:
        given = entry.load()
    except Exception as error:
        told = f"{type(error).__name__} while it was loaded: {error}"
        raise validation.invalid(entry.name, source, [told]) from error
    adapter = validation.checked(given, entry.name, source)
    brought = sorted(module for module in adapter.modules if module in sys.modules and module not in before)
    if brought:
        # Every `lockstep record` would pay for it, of whatever program.
        told = f"it imports {', '.join(brought)} when it is loaded, which only what uses the framework may do"
        raise validation.invalid(entry.name, source, [told])
    return adapter


def require(adapter: Adapter) -> str:
    """The installed version of an adapter's framework. Raises TargetError LS404 where it is missing."""
    place = adapter.distribution, tuple(sys.path)
    # To read a distribution's metadata takes longer than all else that a fork begins with.
    version = _found.get(place) or installed_version(adapter)
    if version is None:
        what = f'"{_HERE}[{adapter.extra}]"' if adapter.extra else adapter.distribution
        raise TargetError(
            Code.MISSING_FRAMEWORK,
            f"{adapter.title} is not installed here ({sys.executable}). Install it: "
            f"{sys.executable} -m pip install {what}",
        )
    _found[place] = version
    return version


_found: dict[tuple[str, tuple[str, ...]], str] = {}


def installed_version(adapter: Adapter) -> str | None:
    """The version of its framework here, None where it is not installed. Imports nothing of it."""
    if not adapter.distribution:
        import platform

        return platform.python_version()
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(adapter.distribution)
    except PackageNotFoundError:
        return None


class Row(msgspec.Struct, frozen=True):
    """One row of `lockstep adapters --json`.

    installed           the framework's version, None where it is missing or the adapter can't be used
    tested              oldest and newest version that the adapter is tested with
    verdict             tested, older or newer than tested, not installed, or unusable
    attaches            whether `lockstep record` attaches to the framework by itself
    restore, re_execute "exact", or why not
    problem             what is wrong with the adapter, "" if nothing
    """

    name: str
    title: str
    source: str
    distribution: str
    installed: str | None
    tested: tuple[str, str] | None
    verdict: str
    attaches: bool
    steps: str
    restore: str
    re_execute: str
    target: str
    inputs: str
    problem: str = ""


def listing() -> Iterator[Row]:
    """What `lockstep adapters` says."""
    for row in found():
        adapter = row.adapter
        if adapter is None:
            problem = str(row.problem)
            yield Row(row.name, "", row.source, "", None, None, "unusable", False, "", "", "", "", "", problem)
            continue
        version = installed_version(adapter)
        yield Row(
            name=adapter.name,
            title=adapter.title,
            source=row.source,
            distribution=adapter.distribution,
            installed=version,
            tested=(adapter.tested.oldest, adapter.tested.newest),
            verdict="not installed" if version is None else versions.verdict(version, adapter.tested),
            attaches=adapter.instrument is not None or not adapter.distribution,
            steps=adapter.steps.what,
            restore="exact" if adapter.restore.exact else adapter.restore.reason,
            re_execute="exact" if adapter.re_execute.exact else adapter.re_execute.reason,
            target=adapter.target.what,
            inputs=adapter.target.inputs,
        )


def _source(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
