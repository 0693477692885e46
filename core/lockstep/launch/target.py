"""`--target module:name`: a target that is imported, for runs that were recorded in process or by a framework."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from lockstep.errors import Code, TargetError


def load(text: str, *, modules: bool = False) -> Any:
    """What `module:name` names, imported from the working directory or what is installed. `modules`: just `module`
    names the whole of it.

    Raises TargetError LS401 where it cannot be imported.
    """
    module, _, name = text.partition(":")
    if not module or not (name or modules):
        raise TargetError(Code.NO_TARGET, f"not a target: {text!r}. One looks like agent:main")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except Exception as error:
        raise TargetError(Code.NO_TARGET, f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            raise TargetError(Code.NO_TARGET, f"{module} has no {name}")
        found = getattr(found, part)
    return found


def named(target: Any) -> str:
    """The `module:name` under which another process finds a target; a text is taken to be one. Raises TargetError LS402
    where there is none."""
    if isinstance(target, str):
        return target
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and _is(module, name, target):
        return f"{module}:{name}"
    for module, loaded in [*sys.modules.items()] if name is None else ():
        for name, value in [*vars(loaded).items()] if loaded is not None and module != "__main__" else ():
            if value is target:
                return f"{module}:{name}"
    what = f"{module}.{name}" if name is not None else f"a {type(target).__name__}"
    raise TargetError(
        Code.BAD_TARGET,
        f"probes of {what} cannot be made by other processes, which have to import it: define it at the top of a "
        "module that is not the program itself, or name it, 'agent:main'; or leave out jobs=",
    )


def _is(module: str, name: str, target: Any) -> bool:
    found: Any = sys.modules.get(module) if module != "__main__" else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is target
