"""Exceptions as inert data: what a caller can see of one, without its traceback.

An exception is rebuilt without running anything of the program: its class must be loaded already
(nothing is imported but what HTTP clients load when they first connect, a list of our own), the instance
is made by the built-in base's `__new__`, and `args`, attributes, C-level members (`errno`, `filename`, …),
cause and context are put back. A constructor could not be used anyway: many take other arguments than
their `args` say (`RemoteDisconnected`, `IncompleteRead`, urllib3's and aiohttp's errors).

Form: {"module", "name", "args", "members", "state", "cause", "context", "suppress", "validation"}. In `args`,
`members` and `state` a value is a scalar, or a one-entry dict that says what it is: {"tuple": […]},
{"list": […]}, {"dict": [[k, v], …]}, {"exception": form}, {"same": n} for the n-th exception met
(counted from the outermost, 0), {"enum": [module, class, member]}, and {"live": [class, str, repr]} for
an object that only existed then. An argument of the exception is part of its text, so its own texts are
kept; elsewhere they are None.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any, NoReturn

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Value
from lockstep.session import current, lanes, validation

# What anyio calls the cancellation of a scope, now and earlier; the scope's address is behind it.
_SCOPE = ("Cancelled via cancel scope ", "Cancelled by cancel scope ")
_DEPTH = 24  # of nesting; deeper causes and containers are left out
_VALUES = 20_000  # in one exception: `AttributeError.obj` may be the program's whole data
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not one of the interpreter's own static classes
_TEXT = 10_000  # characters of an object's text; a longer one is not known to a replay
# What HTTP clients import when they first connect, which a replay never does. The names are ours, not the record's.
_LATE = {"anyio": "anyio", "trio": "trio", "h2": "h2.exceptions", "hpack": "hpack.exceptions"}
_SCALARS = (bool, int, float, str, bytes)
_CONTAINERS = (tuple, list, dict)
_put = object.__setattr__  # a class's own `__setattr__` is the program's code
# Set from `args` by the group's own `__new__`, and read-only.
_GROUP_MEMBERS = frozenset({"message", "exceptions"})


class Absent:
    """Stands for a live object (a connection, a response) that a recorded exception held.

    Its class is known, and its texts if they are part of the exception's. In a replay, anything else
    asked of it is a divergence and not a made-up answer.
    """

    __slots__ = ("_class", "_repr", "_str")

    def __init__(self, name: str, text: str | None = None, representation: str | None = None) -> None:
        self._class = name
        self._str = text
        self._repr = representation

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("__"):
            self._unknown(f".{name}")
        raise AttributeError(name)

    def __str__(self) -> str:
        if self._str is None:
            self._unknown("its text")
        return self._str or repr(self)

    def __repr__(self) -> str:
        if self._repr is None:
            self._unknown("its text")
        return self._repr or f"<{self._class} of the recorded run>"

    def _unknown(self, what: str) -> None:
        session = current.session
        if session is not None and not session.recording:
            session.diverge(Code.UNSERVABLE, f"a recorded exception held a live {self._class}; {what} is not known")


def encode(error: BaseException) -> Value:
    """The exception as data. Never raises for what an exception may hold; live objects become markers."""
    return _Encoder().exception(error, 0)


def decode(value: Value, live: Mapping[str, object] | None = None) -> BaseException:
    """Rebuilds an encoded exception, without a traceback.

    `live` gives present objects for markers, by class (`aiohttp.client_reqrep.ConnectionKey`).
    Raises LockstepError LS110 where the class is not loaded here or cannot be made.
    """
    return _Decoder(live or {}).exception(value)


def revive(value: Value, call: Any = None, live: Mapping[str, object] | None = None) -> BaseException:
    """`decode` for taps in a replay: what cannot be rebuilt is the divergence LS110 of the call's session."""
    try:
        return decode(value, live)
    except LockstepError as problem:
        session: Any = current.session or getattr(call, "session", None)
        if session is None:
            raise
        session.diverge(problem.code, problem.message, call=call)
        raise AssertionError("unreachable") from None


class _Encoder:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[BaseException] = []  # so that no id is used twice
        self._left = _VALUES

    def exception(self, error: BaseException, depth: int) -> Value:
        self._seen[id(error)] = len(self._seen)
        self._kept.append(error)
        cls = type(error)
        form: dict[str, Value] = {"module": cls.__module__, "name": cls.__qualname__}
        form["args"] = [self.value(item, depth + 1, text=True) for item in error.args]
        if validation.is_one(cls):
            form["validation"] = self.value(validation.parts(error), depth + 1, text=True)
        members = {name: self.value(item, depth + 1) for name, item in _members(error)}
        if members:
            form["members"] = members
        state = {str(name): self.value(item, depth + 1) for name, item in vars(error).items()}
        if state:
            form["state"] = state
        for name, other in (("cause", error.__cause__), ("context", error.__context__)):
            if other is not None and depth < _DEPTH:
                form[name] = self.value(other, depth + 1)
        if error.__suppress_context__:
            form["suppress"] = True
        return form

    def value(self, item: object, depth: int, text: bool = False) -> Value:
        """`text`: the item is part of what the exception prints."""
        if item is None or type(item) in _SCALARS:
            return item  # type: ignore[return-value]
        if isinstance(item, BaseException):
            known = self._seen.get(id(item))
            if known is not None:
                return {"same": known}
            if depth < _DEPTH:
                return {"exception": self.exception(item, depth)}
        elif depth < _DEPTH and type(item) in _CONTAINERS and len(item) < self._left:  # type: ignore[arg-type]
            self._left -= len(item)  # type: ignore[arg-type]
            if type(item) is tuple:
                return {"tuple": [self.value(inner, depth + 1, text) for inner in item]}
            if type(item) is list:
                return {"list": [self.value(inner, depth + 1, text) for inner in item]}
            if type(item) is dict:
                pairs = item.items()
                return {"dict": [[self.value(k, depth + 1, text), self.value(v, depth + 1, text)] for k, v in pairs]}
        return _special(item, text)


def _special(item: object, text: bool) -> Value:
    cls: Any = type(item)
    if isinstance(item, enum.Enum) and item.name in cls.__members__:
        return {"enum": [cls.__module__, cls.__qualname__, item.name]}
    shown, represented = _texts(item) if text else (None, None)
    for scalar in _SCALARS:
        # A subclass is kept as what it is made of, unless it prints as something else.
        if isinstance(item, scalar):
            plain: Value = scalar(item)  # type: ignore[arg-type]
            if not text or (str(plain), repr(plain)) == (shown, represented):
                return plain
    return {"live": [f"{cls.__module__}.{cls.__qualname__}", shown, represented]}


def _texts(item: object) -> tuple[str | None, str | None]:
    """What an object prints as: its own code says that, so it may raise, and must not count as the program's."""
    found: list[str | None] = []
    for show in (str, repr):
        try:
            text = lanes.ours(show)(item)
        except Exception:
            text = None
        found.append(text if text is not None and len(text) <= _TEXT else None)
    return found[0], found[1]


class _Decoder:
    def __init__(self, live: Mapping[str, object]) -> None:
        self._live = live
        self._made: list[BaseException] = []

    def exception(self, form: Any) -> BaseException:
        if not isinstance(form, dict):
            raise LockstepError(Code.UNSERVABLE, "the recorded exception is damaged")
        cls = _class(form["module"], form["name"])
        number = len(self._made)
        if issubclass(cls, BaseExceptionGroup):
            error = self._group(cls, form, number)
        elif "validation" in form:
            error = self._validation(cls, form, number)
        else:
            error = _blank(cls)
            self._made.append(error)
            _put(error, "args", tuple(self.value(item) for item in form["args"]))
        for name, item in form.get("members", {}).items():
            try:
                _put(error, name, self.value(item))
            except (AttributeError, TypeError) as problem:
                raise LockstepError(Code.UNSERVABLE, f"{_named(form)}.{name} cannot be put back: {problem}") from None
        for name, item in form.get("state", {}).items():
            error.__dict__[name] = self.value(item)
        cause, context = self.value(form.get("cause")), self.value(form.get("context"))
        _put(error, "__cause__", cause if isinstance(cause, BaseException) else None)
        _put(error, "__context__", context if isinstance(context, BaseException) else None)
        _put(error, "__suppress_context__", bool(form.get("suppress")))
        return error

    def _group(self, cls: type[BaseExceptionGroup[Any]], form: dict[str, Any], number: int) -> BaseException:
        # A group is made from its members, which therefore come first; it holds its number meanwhile.
        self._made.append(BaseException())
        message, inner = (self.value(item) for item in form["args"])
        error = BaseExceptionGroup.__new__(cls, message, inner)
        self._made[number] = error
        return error

    def _validation(self, cls: type[BaseException], form: dict[str, Any], number: int) -> BaseException:
        self._made.append(BaseException())
        error = self._made[number] = validation.make(cls, self.value(form["validation"]))
        return error

    def value(self, item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        ((what, inner),) = item.items()
        match what:
            case "tuple":
                return tuple(self.value(each) for each in inner)
            case "list":
                return [self.value(each) for each in inner]
            case "dict":
                return {self.value(key): self.value(each) for key, each in inner}
            case "exception":
                return self.exception(inner)
            case "same":
                return self._made[inner]
            case "enum":
                return _member(*inner)
            case _:
                name = inner[0]
                return self._live[name] if name in self._live else Absent(*inner)


def _members(error: BaseException) -> Iterator[tuple[str, object]]:
    """C-level fields and slots that are set: `errno`, `filename`, `code`, `value`, `start`, …"""
    group = isinstance(error, BaseExceptionGroup)
    seen: set[str] = set()
    for cls in type(error).__mro__:
        for name, field in vars(cls).items():
            if type(field) is not MemberDescriptorType or name.startswith("__") or name in seen:
                continue
            seen.add(name)
            if group and name in _GROUP_MEMBERS:
                continue
            try:
                found = field.__get__(error)
            except AttributeError:
                continue
            if found is not None:
                yield name, found


def _blank(cls: type[BaseException]) -> BaseException:
    """An instance that no code of the program has touched."""
    for base in cls.__mro__:
        if "__new__" in vars(base) and not base.__flags__ & _HEAP_TYPE:
            try:
                made: BaseException = base.__new__(cls)  # type: ignore[call-overload]
            except TypeError as problem:
                raise LockstepError(
                    Code.UNSERVABLE, f"{cls.__module__}.{cls.__qualname__} cannot be rebuilt: {problem}"
                ) from None
            return made
    raise LockstepError(Code.UNSERVABLE, f"{cls.__module__}.{cls.__qualname__} has no built-in base")


def _loaded(module: str, name: str) -> Any:
    """What is loaded under that name, None if nothing is."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found


def _member(module: str, name: str, member: str) -> Any:
    cls = _loaded(module, name)
    members: dict[str, Any] = dict(cls.__members__) if isinstance(cls, enum.EnumType) else {}
    if member not in members:
        raise LockstepError(Code.UNSERVABLE, f"{module}.{name}.{member} in a recorded exception is not loaded here")
    return members[member]


def _class(module: str, name: str) -> type[BaseException]:
    late = _LATE.get(module.partition(".")[0])
    if late is not None:
        with suppress(ImportError):
            # anyio makes what it exports when it is asked for.
            getattr(lanes.ours(importlib.import_module)(late), name, None)
    found = _loaded(module, name)
    if _is(found, module, name):
        return found  # type: ignore[no-any-return]
    # Not reachable by its name (made in a function, renamed by its package): among all that are loaded. anyio
    # gives a class its public module only when the program first asks for it there.
    every = _subclasses(BaseException)
    loaded = [cls for cls in every if _is(cls, module, name)]
    if not loaded:
        loaded = [cls for cls in every if cls.__qualname__ == name and cls.__module__.startswith(f"{module}.")]
    if len(loaded) != 1:
        why = "is not loaded here" if not loaded else "is ambiguous: several classes have this name"
        raise LockstepError(Code.UNSERVABLE, f"the recorded exception {module}.{name} {why}")
    return loaded[0]


def _is(found: object, module: str, name: str) -> bool:
    return (
        isinstance(found, type)
        and issubclass(found, BaseException)
        and found.__module__ == module
        and found.__qualname__ == name
    )


def _subclasses(cls: type[BaseException]) -> set[type[BaseException]]:
    found = {cls}
    for child in type.__subclasses__(cls):
        if child not in found:
            found |= _subclasses(child)
    return found


def _named(form: dict[str, Any]) -> str:
    return f"{form.get('module')}.{form.get('name')}"


def scope_message(error: Any) -> str | None:
    """The message of a cancellation that went through a cancel scope of the live client, which put its own in
    the place of the program's; None for any other."""
    message = error.args[0] if isinstance(error, BaseException) and error.args else error
    return message if isinstance(message, str) and message.startswith(_SCOPE) else None
