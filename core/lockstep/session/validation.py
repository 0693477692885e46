"""pydantic's ValidationError, which only its own library can make: taken apart into its lines, and made of them.

What is made must print as the recorded one did, else it is refused: an input that was a live object then prints
as something else now. Tried with pydantic-core 2.50.
"""

from __future__ import annotations

import sys
from typing import Any

from lockstep.errors import Code, LockstepError

_LINE = ("type", "loc", "input", "ctx")


def is_one(cls: type[BaseException]) -> bool:
    """Whether it is that class."""
    return cls.__qualname__ == "ValidationError" and cls.__module__ == "pydantic_core._pydantic_core"


def parts(error: Any) -> dict[str, Any]:
    """What it consists of, and what it prints as."""
    lines = [{"msg": line["msg"], **{name: line[name] for name in _LINE if name in line}} for line in error.errors()]
    return {"title": error.title, "lines": lines, "text": str(error)}


def make(cls: Any, parts: dict[str, Any]) -> BaseException:
    """Raises LockstepError LS110 where it would print as something else."""
    library: Any = sys.modules["pydantic_core"]
    known = {kind["type"] for kind in library._pydantic_core.list_all_errors()}
    lines = []
    for line in parts["lines"]:
        made = {name: line[name] for name in _LINE if name in line}
        if line["type"] not in known:
            made["type"] = library.PydanticCustomError(line["type"], line["msg"], made.pop("ctx", None))
        lines.append(made)
    for mode in ("python", "json"):
        for hidden in (False, True):
            try:
                error: BaseException = cls.from_exception_data(parts["title"], lines, mode, hidden)
            except (TypeError, ValueError, KeyError) as problem:
                raise LockstepError(Code.UNSERVABLE, f"a recorded ValidationError cannot be made: {problem}") from None
            if str(error) == parts["text"]:
                return error
    raise LockstepError(Code.UNSERVABLE, "a recorded ValidationError would print as something else here")
