"""Values that a serializer of the program's own stores: `LockstepCheckpointer(serde=…)`.

They stand in the log as `{"$": "typed", "type": …, "data": bytes}`. LangGraph's `EncryptedSerializer` over its usual
`JsonPlusSerializer` gives its cipher only: what is encrypted is our own inert form, so that state comes back exactly,
and a forged record, also one that is not encrypted at all, runs nothing. `JsonPlusSerializer` by itself, which every
saver has by default, is no reason to store other than usual. Any other serializer is the program's code, and is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Protocol

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from lockstep.errors import Code, StoreError
from lockstep.log import pack, unpack
from lockstep.log.model import Value
from lockstep.session.snapshot import TAG

_OURS = "lockstep"


class Typed(Protocol):
    """How values become bytes. `take` and `make`: the usual way to the inert form and back."""

    def dump(self, obj: Any, path: str, take: Callable[[Any], Value]) -> Value: ...

    def load(self, form: dict[str, Any], path: str, make: Callable[[Value], Any]) -> Any: ...

    def is_as_stored(self, obj: Any, value: Value, path: str, take: Callable[[Any], Value]) -> bool:
        """Whether it would be stored as something that is read as the same: a cipher gives other bytes each time."""


def of(serde: Any) -> Typed | None:
    """What a `serde=` says; None: values are stored as usual."""
    if serde is None or _is_usual(serde):
        return None
    if type(serde) is EncryptedSerializer and _is_usual(serde.serde):
        return _Sealed(serde.cipher)
    return _Own(serde)


def allowed_by(serde: Any) -> Iterable[Any]:
    """The classes that langgraph's serializer is told to allow."""
    inner = serde.serde if type(serde) is EncryptedSerializer else serde
    names = getattr(inner, "_allowed_msgpack_modules", None)
    return names if isinstance(names, set | frozenset) else ()


def _is_usual(serde: Any) -> bool:
    """Whether it is langgraph's own. Its pickles would run what is stored, and are not needed: ours stores more."""
    return type(serde) is JsonPlusSerializer and not getattr(serde, "_custom_unpack_ext_hook", False)


class _Sealed:
    """Our own form, encrypted."""

    def __init__(self, cipher: Any) -> None:
        self._cipher = cipher

    def dump(self, obj: Any, path: str, take: Callable[[Any], Value]) -> Value:
        value = take(obj)
        try:
            name, data = self._cipher.encrypt(pack.encode_plain(value))
        except StoreError:
            raise
        except Exception as problem:
            raise _unstorable(self._cipher, path, problem) from problem
        return {TAG: "typed", "type": f"{_OURS}+{name}", "data": bytes(data)}

    def load(self, form: dict[str, Any], path: str, make: Callable[[Value], Any]) -> Any:
        return make(unpack.Expander(_Nothing()).expand(self._decrypted(form, path)))

    def is_as_stored(self, obj: Any, value: Value, path: str, take: Callable[[Any], Value]) -> bool:
        if not _is_typed(value):
            return False
        return self._decrypted(value, path) == pack.encode_plain(take(obj))

    def _decrypted(self, form: Any, path: str) -> bytes:
        ours, plus, name = str(form["type"]).partition("+")
        if ours != _OURS or not plus:
            raise StoreError(Code.DAMAGED, f"{path or 'a value'} is not encrypted as this checkpointer does it")
        try:
            return bytes(self._cipher.decrypt(name, form["data"]))
        except Exception as problem:
            raise _unreadable(self._cipher, path, problem) from problem


class _Own:
    """A serializer that is the program's own."""

    def __init__(self, serde: Any) -> None:
        self._serde = serde

    def dump(self, obj: Any, path: str, take: Callable[[Any], Value]) -> Value:
        try:
            name, data = self._serde.dumps_typed(obj)
        except Exception as problem:
            raise _unstorable(self._serde, path, problem) from problem
        return {TAG: "typed", "type": str(name), "data": bytes(data)}

    def load(self, form: dict[str, Any], path: str, make: Callable[[Value], Any]) -> Any:
        if isinstance(self._serde, EncryptedSerializer) and "+" not in form["type"]:
            # It would hand what is not encrypted to the serializer within.
            raise StoreError(Code.DAMAGED, f"{path or 'a value'} is not encrypted as this checkpointer does it")
        try:
            return self._serde.loads_typed((form["type"], form["data"]))
        except Exception as problem:
            raise _unreadable(self._serde, path, problem) from problem

    def is_as_stored(self, obj: Any, value: Value, path: str, take: Callable[[Any], Value]) -> bool:
        return self.dump(obj, path, take) == value


def _is_typed(value: Value) -> bool:
    return isinstance(value, dict) and value.get(TAG) == "typed"


class _Nothing:
    """Where parts of a value are that stand for themselves: nowhere."""

    def blob(self, number: int) -> NoReturn:
        raise unpack.damaged("an encrypted value refers to another")

    big = blob


def _unstorable(by: Any, path: str, problem: Exception) -> StoreError:
    return StoreError(Code.UNSTORABLE, f"{type(by).__name__} can't store {path or 'a value'}: {problem}")


def _unreadable(by: Any, path: str, problem: Exception) -> StoreError:
    what = f"{path or 'a value'} can't be read by {type(by).__name__}: {problem or type(problem).__name__}"
    return StoreError(Code.NO_KEY, what)
