"""Which classes a stored value may bring back as themselves.

Four sources: data types of the standard library, LangChain's and LangGraph's own, what the program names
(`LockstepCheckpointer(types=[Order])`), and what the schemas of its graphs declare (`lockstep_langgraph.declared`). A
subclass of one of these is one too, since a field that is declared as `Animal` may hold a `Dog`.

Classes are looked up among what is loaded, by names that are compared with the list first. Nothing is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import msgspec

from lockstep.errors import LockstepError
from lockstep.session import shapes
from lockstep_langgraph import declared, losses

type Name = tuple[str, str]  # module and class, as langgraph's own lists have them: without the class it is nested in

_LANGGRAPH = (
    *("Command", "Interrupt", "Overwrite", "PregelTask", "RetryPolicy"),
    *("Send", "StateSnapshot", "StateUpdate", "TimeoutPolicy"),
)
_OWN: frozenset[Name] = frozenset(
    {
        *(("ipaddress", f"IPv{n}{what}") for n in (4, 6) for what in ("Address", "Interface", "Network")),
        ("types", "SimpleNamespace"),
        ("collections", "ChainMap"),
        ("collections", "UserDict"),
        ("collections", "UserList"),
        ("collections", "UserString"),
        ("time", "struct_time"),
        ("os", "stat_result"),
        ("os", "terminal_size"),
        ("uuid", "SafeUUID"),
        ("http", "HTTPStatus"),
        ("http", "HTTPMethod"),
        *(("langgraph.types", name) for name in _LANGGRAPH),
        ("langgraph.checkpoint.serde.types", "_DeltaSnapshot"),
        *(("langgraph.store.base", name) for name in ("GetOp", "Item", "SearchItem")),
        ("langchain_core.documents.base", "Document"),
        ("langchain_core.documents.base", "Blob"),
        ("langchain_core.agents", "AgentAction"),
        ("langchain_core.agents", "AgentActionMessageLog"),
        ("langchain_core.agents", "AgentFinish"),
        ("langchain_core.agents", "AgentStep"),
        ("pydantic_core._pydantic_core", "ValidationError"),
    }
)  # fmt: skip
# Modules of data classes only.
_PACKAGES = ("langchain_core.messages.", "langchain_core.outputs.", "langchain_core.prompt_values.")
_MODULES = frozenset(("langchain_core.prompt_values", "numpy", "pydantic.networks"))
_FACTORIES = frozenset(
    {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset}
)
_NONE = shapes.name_of(type(None))  # which lies in no module
_COLLECTIONS = frozenset({("collections", name) for name in ("Counter", "OrderedDict", "defaultdict", "deque")})


class Allowed(msgspec.Struct, frozen=True):
    """One list. `names`: what is allowed beside what is so everywhere; `classes`: those given as such, by full name."""

    names: frozenset[Name] = frozenset()
    classes: dict[str, type] = {}

    def more(self, extra: Iterable[Any]) -> Allowed:
        """The list with these: classes, `module:Class` or (module, class). Raises TypeError for anything else."""
        names, classes = set(self.names), dict(self.classes)
        for each in extra:
            if isinstance(each, type):
                names.add(_name(each))
                classes[shapes.name_of(each)] = each
            elif isinstance(each, str) and ":" in each:
                module, _, name = each.partition(":")
                names.add((module, name.rpartition(".")[2]))
            elif isinstance(each, tuple) and len(each) >= 2 and all(isinstance(part, str) for part in each):
                # langgraph's lists name methods too, as a third part, which are never called here.
                names.add((each[0], each[1].rpartition(".")[2]))
            else:
                raise TypeError(f"types= takes classes, or names as in 'shop.models:Order'; this is {each!r}")
        return Allowed(frozenset(names), classes)

    def holds(self, cls: type) -> bool:
        """Whether instances of the class come back as themselves."""
        return any(self._lists(base) for base in cls.__mro__)

    def find(self, name: object) -> type | str:
        """The class of that name (`module:qualified.name`), or why a value of it stays inert."""
        if not isinstance(name, str):
            return "its class has no name"
        given = self.classes.get(name)
        if given is not None:
            return given
        module, _, path = name.partition(":")
        key = (module, path.rpartition(".")[2])
        if key in self.names or _is_own(key):
            try:
                return shapes.find(name)
            except LockstepError as problem:
                return problem.message
        known = declared.types().get(key)
        if known is not None and shapes.name_of(known) == name:
            return known
        cls = loaded(name)
        if cls is not None and self.holds(cls):
            return cls
        return losses.NOT_ALLOWED

    def is_factory(self, cls: type) -> bool:
        """Whether a defaultdict may make one: a missing key calls it."""
        return cls in _FACTORIES or _name(cls) in _COLLECTIONS or _name(cls) in self.names

    def _lists(self, cls: type) -> bool:
        name = _name(cls)
        if name in self.names:
            given = self.classes.get(shapes.name_of(cls))
            return given is None or given is cls
        return _is_own(name) or declared.types().get(name) is cls


def loaded(name: object) -> type | None:
    """The class that lies there in the modules that are loaded, if one does."""
    if not isinstance(name, str):
        return None
    if name == _NONE:
        return type(None)
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # `vars` and not getattr: a module's or metaclass's `__getattr__` could import or run anything.
        found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
    return found if isinstance(found, type) and shapes.name_of(found) == name else None


def is_error(cls: type) -> bool:
    """Whether it is an exception of the interpreter, its library or the frameworks."""
    top = cls.__module__.partition(".")[0]
    return top in sys.stdlib_module_names or cls.__module__ in ("langgraph.errors", "langchain_core.exceptions")


def _name(cls: type) -> Name:
    return cls.__module__, cls.__name__


def _is_own(name: Name) -> bool:
    return name in _OWN or name[0] in _MODULES or name[0].startswith(_PACKAGES)
