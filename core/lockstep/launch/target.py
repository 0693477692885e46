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
