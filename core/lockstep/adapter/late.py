"""What of an adapter's package is imported when it is first used, since adapters are loaded only to be listed.

    Native(replay=Later("lockstep_crew.replaying:replay"), …)            # in `adapter.py`
    __getattr__ = late_names(adapter, globals(), CrewTap="tap")          # in `__init__.py`

`Later` is a function of the `Adapter` struct that is in a module of its own; `late_names` gives the package its public
names.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from lockstep.adapter.contract import Adapter


class Later(msgspec.Struct, frozen=True):
    """A function that is imported when it is called.

    place   `module:attribute` of it
    """

    place: str

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function()(*given, **named)

    def function(self) -> Callable[..., Any]:
        """The function itself. Raises what the import of its module does."""
        module, _, attribute = self.place.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), attribute)
        return function


def late_names(adapter: Adapter, package: dict[str, Any], **homes: str) -> Callable[[str], Any]:
    """`__getattr__` of an adapter's package whose public names are loaded when they are asked for.

    package  the package's `globals()`
    homes    name -> module of the package that it is in

    Type checkers and editors do not follow a table: let the package import the same names under `TYPE_CHECKING`, and
    call this in the `else`. Where the framework is missing, who asks for a name gets TargetError LS404, which says how
    to install it.

    `dir()` of the package has no name before it is loaded: a program under `lockstep record` has the package too, and
    some look at every attribute of every module, as freezegun does with its clock stopped: that imports no framework.
    """
    name = package["__name__"]

    def getting(wanted: str) -> Any:
        home = homes.get(wanted)
        if home is None:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        try:
            module = import_module(f"{name}.{home}")
        except ModuleNotFoundError:
            from lockstep.adapter.registry import require

            require(adapter)  # raises, unless something else than the framework is missing
            raise
        found = package[wanted] = getattr(module, wanted)
        return found

    return getting
