"""Checks an adapter when it registers: its mistakes are told with its name, and not met in the middle of a run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from lockstep.adapter import versions
from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import AdapterError, Code

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def checked(found: object, name: str, source: str) -> Adapter:
    """The adapter that an entry point called `name` gave. `source` says where that came from, for the error.

    Raises AdapterError LS407 with all that is wrong.
    """
    if not isinstance(found, Adapter):
        raise invalid(name, source, [f"it is a {type(found).__name__}, not a lockstep.adapter.Adapter"])
    wrong = list(_wrong(found, name))
    if wrong:
        raise invalid(name, source, wrong)
    return found


def invalid(name: str, source: str, wrong: list[str]) -> AdapterError:
    """The error for an adapter that cannot be used."""
    told = "; ".join(wrong)
    return AdapterError(Code.BAD_ADAPTER, f"the adapter {name} of {source} cannot be used: {told}")


def _wrong(adapter: Adapter, name: str) -> Iterator[str]:
    # A struct takes what it is given: only a decoder checks the types of fields.
    yield from _texts(adapter, "name", "title", "distribution", "extra", "subject")
    for field, kind in (
        ("tested", Versions),
        ("steps", Steps),
        ("restore", Way),
        ("re_execute", Way),
        ("target", Target),
    ):
        value = getattr(adapter, field)
        if not isinstance(value, kind):
            yield f"{field} is a {type(value).__name__}, not a {kind.__name__}"
            return
    if adapter.name != name:
        yield f"its entry point is called {name}, and the adapter {adapter.name}"
    if not _NAME.fullmatch(str(adapter.name)):
        yield f"the name {adapter.name!r} is not lower-case letters, digits and dashes"
    if not _REFERENCE.fullmatch(str(adapter.subject)):
        yield f"subject {adapter.subject!r} is not module:attribute"
    if not isinstance(adapter.modules, tuple) or not all(_MODULE.fullmatch(str(module)) for module in adapter.modules):
        yield "modules is not a tuple of module names"
    if adapter.distribution and not adapter.modules:
        yield "modules names no package of the framework"
    if adapter.instrument is not None:
        yield from _function("instrument", adapter.instrument, 1)
    if adapter.abrupt is not None:
        yield from _function("abrupt", adapter.abrupt, 0)
    if (adapter.reads is None) != (adapter.imports is None):
        yield "reads and imports go together: one of them is missing"
    if adapter.reads is not None:
        yield from _function("reads", adapter.reads, 1)
    if adapter.imports is not None:
        yield from _function("imports", adapter.imports, 3)
    if adapter.order is not None:
        yield from _function("order", adapter.order, 1)
    for format_, export in adapter.exports.items():
        yield from _function(f"exports[{format_!r}]", export, 1)
    if adapter.commands and not _REFERENCE.fullmatch(adapter.commands):
        yield f"commands is {adapter.commands!r}, not module:attribute"
    for bound in (adapter.tested.oldest, adapter.tested.newest):
        if not versions.is_version(bound):
            yield f"tested has {bound!r}, which is no version"
            return
    if versions.before(adapter.tested.newest, adapter.tested.oldest):
        yield f"tested ends with {adapter.tested.newest}, before it begins with {adapter.tested.oldest}"
    yield from _texts(adapter.steps, "kind", "what", within="steps.")
    yield from _texts(adapter.target, "what", "inputs", within="target.")
    yield from _function("target.accepts", adapter.target.accepts, 1)
    yield from _function("target.program", adapter.target.program, 2)
    yield from _ways(adapter)
    yield from _native(adapter.native)


def _ways(adapter: Adapter) -> Iterator[str]:
    for field, way in (("restore", adapter.restore), ("re_execute", adapter.re_execute)):
        if way.refuses is not None:
            yield from _function(f"{field}.refuses", way.refuses, 1)
        if not way.exact and not way.reason:
            yield f"{field} is not exact and gives no reason"
    if adapter.restore.exact and adapter.restore.begin is None and adapter.native is None:
        yield "restore is exact and has no begin"
    if adapter.restore.begin is not None:
        yield from _function("restore.begin", adapter.restore.begin, 3)
    if adapter.re_execute.begin is not None:
        yield "re_execute has a begin: the target's program is what runs"
    if not adapter.restore.exact and not adapter.re_execute.exact:
        yield "neither restore nor re_execute is exact: no step could be continued from"


def _native(native: Any) -> Iterator[str]:
    if native is None:
        return
    if not isinstance(native, Native):
        yield f"native is a {type(native).__name__}, not a Native"
        return
    for field, arguments in (("replay", 3), ("areplay", 3), ("fork", 4), ("afork", 4)):
        yield from _function(f"native.{field}", getattr(native, field), arguments)
    if native.alike is not None:
        yield from _function("native.alike", native.alike, 2)
    if native.plain is not None:
        yield from _function("native.plain", native.plain, 3)


def _texts(owner: Any, *fields: str, within: str = "") -> Iterator[str]:
    for field in fields:
        value = getattr(owner, field)
        if not isinstance(value, str):
            yield f"{within}{field} is a {type(value).__name__}, not a text"
        elif not value and field not in ("distribution", "extra"):
            yield f"{within}{field} is empty"


def _function(field: str, function: Callable[..., Any] | Any, arguments: int) -> Iterator[str]:
    if not callable(function):
        yield f"{field} is a {type(function).__name__}, not a function"
        return
    if isinstance(function, Later):
        if not _REFERENCE.fullmatch(function.place):
            yield f"{field} is to come from {function.place!r}, which is not module:attribute"
        return
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        yield f"{field} cannot be called with {arguments} argument{'s' * (arguments > 1)}"
    except ValueError:
        return  # a function of C that does not tell
