"""CrewAI's classes get methods that ask who answers them. They are put there once, for all instances, those of later
subclasses too, and do what they did before where nobody asks (`current`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

_PLAIN = "lockstep_plain"

type Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def wrap(cls: type, name: str, make: Make) -> None:
    """Puts `make(method)` in the place of a class's own method, once. Nothing where it has none of its own, since the
    one that it inherits is wrapped where it is defined."""
    found = vars(cls).get(name)
    if found is None or is_wrapped(found):
        return
    static = isinstance(found, staticmethod)
    plain = found.__func__ if static else found
    made: Any = make(plain)
    setattr(made, _PLAIN, plain)
    setattr(cls, name, staticmethod(made) if static else made)


def wrap_function(module: Any, name: str, make: Make) -> None:
    """The same with a function of a module, which is looked up there each time."""
    plain = vars(module)[name]
    if not is_wrapped(plain):
        made: Any = make(plain)
        setattr(made, _PLAIN, plain)
        setattr(module, name, made)


def there(place: str) -> Any:
    """A class or function, as "module:name", or a module; None where this version of CrewAI has no such."""
    module, _, name = place.partition(":")
    try:
        found = import_module(module)
    except ModuleNotFoundError:
        return None
    return getattr(found, name, None) if name else found


def is_wrapped(found: Any) -> bool:
    """Whether a method has been put there by `wrap`."""
    return hasattr(found.__func__ if isinstance(found, staticmethod) else found, _PLAIN)


def plain(found: Any) -> Any:
    """The method that was there before; what nobody wrapped, itself."""
    return getattr(found, _PLAIN, found)


def family(cls: type) -> Iterator[type]:
    """A class and all of its subclasses that there are."""
    waiting, seen = [cls], {cls}
    while waiting:
        found = waiting.pop()
        yield found
        children: list[type] = type.__subclasses__(found)
        for child in children:
            if child not in seen:
                seen.add(child)
                waiting.append(child)


def each(base: type, see: Callable[[type], None]) -> None:
    """Calls `see` with a class, all of its subclasses, and each later one when it is made."""
    seeing = _seeing.get(base)
    if seeing is None:
        seeing = _seeing[base] = []
        own: Any = vars(base).get("__init_subclass__")

        def __init_subclass__(cls: type, **options: Any) -> None:
            if own is not None:
                own.__func__(cls, **options)
            else:
                super(base, cls).__init_subclass__(**options)  # type: ignore[arg-type]
            for each in _seeing[base]:
                each(cls)

        base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment, arg-type]
    if see not in seeing:
        seeing.append(see)
    for cls in family(base):
        see(cls)


_seeing: dict[type, list[Callable[[type], None]]] = {}
