"""Makes objects of stored values, for `lockstep_langgraph.values`: the allowed ones, and what stands for others."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

import pydantic_core

from lockstep.errors import Code, LockstepError
from lockstep.log.canonical import LEAVES
from lockstep.log.model import Value
from lockstep.session import builtin_values, shapes, snapshot
from lockstep.session.snapshot import TAG, At
from lockstep_langgraph import allowed, inert, losses, messages, typed
from lockstep_langgraph.inert import Inert, InertError

_DEPTH = 220  # what a log holds is at most 200 deep
_CONSTANTS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_SECRETS = frozenset(f"pydantic.types:{name}" for name in ("Secret", "SecretStr", "SecretBytes"))
_URLS: dict[str, Any] = {shapes.name_of(cls): cls for cls in (pydantic_core.Url, pydantic_core.MultiHostUrl)}

# What says that the whole cannot be read: no part of it may be made up.
_LOUD = frozenset({Code.DAMAGED, Code.UNSTORABLE, Code.NO_KEY})


class _Unmade(Exception):
    """Why a value stays inert."""


class Maker:
    """Makes objects of one value."""

    def __init__(self, listed: allowed.Allowed, serde: typed.Typed | None, path: str) -> None:
        self._allowed = listed
        self._typed_by = serde
        self._path = path
        self.lost: list[tuple[At, str, str]] = []

    def value(self, value: Any, at: At, depth: int) -> Any:
        kind = type(value)
        if kind is list:
            if depth > _DEPTH:
                raise self._too_deep(at)
            return [
                item if type(item) in LEAVES else self.value(item, (at, f"[{number}]"), depth + 1)
                for number, item in enumerate(value)
            ]
        if kind is not dict:
            return value
        if TAG not in value:
            if depth > _DEPTH:
                raise self._too_deep(at)
            return {
                name: item if type(item) in LEAVES else self.value(item, (at, snapshot.step(name)), depth + 1)
                for name, item in value.items()
            }
        tag = value[TAG]
        if tag == messages.TAG:
            try:
                return messages.load(value, lambda item, name: self.value(item, (at, f".{name}"), depth + 1))
            except (KeyError, TypeError, ValueError) as problem:
                return self._inert(value, at, depth, f"it is damaged: {problem!r}")
        return self._tagged(tag if isinstance(tag, str) else "", value, at, depth)

    def _tagged(self, tag: str, form: dict[str, Any], at: At, depth: int) -> Any:
        try:
            make = _MAKES.get(tag)
            if make is not None:
                return make(self, form, at, depth)
            if tag in builtin_values.KINDS:
                return self._builtin(builtin_values.KINDS[tag], form, at, depth)
            if tag in shapes.SHAPES:
                return self._shaped(shapes.SHAPES[tag], form, at, depth)
        except _Unmade as why:
            return self._inert(form, at, depth, str(why))
        except LockstepError as problem:
            if problem.code in _LOUD:
                raise
            return self._inert(form, at, depth, problem.message)
        except RecursionError:
            raise
        except Exception as problem:
            # Whatever a forged record makes the built-in bases say.
            return self._inert(form, at, depth, f"it can't be made: {problem!r}")
        return self._inert(form, at, depth, "this version does not know it")

    def _too_deep(self, at: At) -> LockstepError:
        where = f"{self._path}{snapshot.path(at)}"
        return LockstepError(Code.DAMAGED, f"a stored value nests too deep, at {where[:100]}…")

    def _inert(self, form: dict[str, Any], at: At, depth: int, why: str) -> Any:
        self.lost.append((at, losses.shown(form.get("$class", form.get(TAG))), why))
        if form.get(TAG) == "exception":
            return InertError(form, losses.text_of(form.get("$value")), why)
        return Inert(form, self.value(inert.content(form), at, depth), why)

    def _class(self, form: dict[str, Any]) -> type:
        found = self._allowed.find(form["$class"])
        if isinstance(found, str):
            raise _Unmade(found)
        return found

    def _builtin(self, kind: builtin_values.Kind, form: dict[str, Any], at: At, depth: int) -> Any:
        cls = None
        if "$class" in form:
            cls = self._class(form)
            if builtin_values.kind_of(cls) is not kind:
                raise _Unmade(f"it was stored as a {kind.tag} and is none here")
        parts = {}
        for name, part in form.items():
            if name in (TAG, "$class", "$more"):
                continue
            parts[name] = part if type(part) in LEAVES else self._part(part, (at, ""), depth)
        if kind.tag == "defaultdict" and parts["$factory"] is not None and not self._is_factory(parts["$factory"]):
            raise _Unmade("its factory is not allowed")
        made = kind.make(cls, parts)
        if "$more" in form:
            shapes.put_back(made, self.value(form["$more"], at, depth + 1))
        return made

    def _part(self, part: Any, at: At, depth: int) -> Any:
        """A part of a form is one level with it: the items of a tuple are at `[0]`, as those of a list."""
        return self.value(part, at, depth + 1)

    def _is_factory(self, made: Any) -> bool:
        return isinstance(made, type) and self._allowed.is_factory(made)

    def _shaped(self, shape: shapes.Shape, form: dict[str, Any], at: At, depth: int) -> Any:
        cls = self._class(form)
        if not shape.fits(cls):
            raise _Unmade(f"it was stored as a {shape.name} and is none here")
        fields: dict[str, Any] = {}
        hidden: dict[str, Any] = {}
        for name, part in form.items():
            if not name.startswith(TAG):
                fields[name] = part if type(part) in LEAVES else self.value(part, (at, snapshot.step(name)), depth + 1)
            elif name not in (TAG, "$class"):
                hidden[name[1:]] = self.value(part, at, depth + 1)
        return shape.make(cls, shapes.Parts(hidden.pop("fields", fields), hidden))

    def _of_class(self, form: dict[str, Any], at: At, depth: int) -> Any:
        name = form["$class"]
        cls = allowed.loaded(name)
        if cls is not None and self._allowed.is_factory(cls):
            return cls
        return self._class(form)

    def _enum(self, form: dict[str, Any], at: At, depth: int) -> Any:
        cls: Any = self._class(form)
        if not isinstance(cls, enum.EnumType):
            raise _Unmade("it was stored as an enum and is none here")
        if "$name" in form:
            member = shapes.in_class(cls, "_member_map_").get(form["$name"])
            if member is None:
                raise _Unmade(f"the enum has no member {form['$name']} here")
            return member
        missing = shapes.in_class(cls, "_missing_")
        if not issubclass(cls, enum.Flag) or missing is not vars(enum.Flag)["_missing_"]:
            raise _Unmade("it is no member of the enum here")
        return cls(form["$value"])

    def _constant(self, form: dict[str, Any], at: At, depth: int) -> Any:
        return _CONSTANTS[form["$value"]]

    def _exception(self, form: dict[str, Any], at: At, depth: int) -> Any:
        self._check_error(form["$value"], 0)
        from lockstep.session import exceptions

        return exceptions.decode(form["$value"])

    def _check_error(self, form: Any, depth: int) -> None:
        """Raises where an encoded exception holds what is not allowed, at any depth."""
        if depth > _DEPTH:
            raise _Unmade("it nests too deep")
        if isinstance(form, list):
            for item in form:
                self._check_error(item, depth + 1)
        if not isinstance(form, dict):
            return
        if "enum" in form and len(form) == 1:
            self._error_class(form["enum"][0], form["enum"][1])
        elif "module" in form and "args" in form:
            cls = self._error_class(form["module"], form["name"])
            if not issubclass(cls, BaseException):
                raise _Unmade("it was stored as an exception and is none here")
            for name in form.get("members", ()):
                if not any(type(vars(base).get(name)) is MemberDescriptorType for base in cls.__mro__):
                    raise _Unmade(f"it has no {name} here")
        for item in form.values():
            self._check_error(item, depth + 1)

    def _error_class(self, module: object, name: object) -> type:
        full = f"{module}:{name}"
        cls = allowed.loaded(full)
        if cls is not None and issubclass(cls, BaseException) and allowed.is_error(cls):
            return cls
        found = self._allowed.find(full)
        if isinstance(found, str):
            raise _Unmade(found)
        return found

    def _secret(self, form: dict[str, Any], at: At, depth: int) -> Any:
        name = form["$class"]
        cls = allowed.loaded(name) if name in _SECRETS else self._class(form)
        if cls is None or not losses.is_secret(cls):
            raise _Unmade("it was stored as a secret and is none here")
        made = shapes.blank(cls)
        shapes.put_back(made, {"_secret_value": self.value(form["password"], at, depth + 1)})
        return made

    def _url(self, form: dict[str, Any], at: At, depth: int) -> Any:
        if form["$class"] not in _URLS:
            raise _Unmade("it was stored as a URL and is none here")
        return _URLS[form["$class"]](form["$value"])

    def _typed(self, form: dict[str, Any], at: At, depth: int) -> Any:
        if self._typed_by is None:
            raise _Unmade("it was stored by a serializer of the program: give the checkpointer the same serde=")
        return self._typed_by.load(form, self._path + snapshot.path(at), lambda value: self._within(value, at, depth))

    def _within(self, value: Value, at: At, depth: int) -> Any:
        """What an encrypted value holds, which is not another encrypted one."""
        inner = Maker(self._allowed, None, self._path)
        inner.lost = self.lost
        return inner.value(value, at, depth)


_MAKES: dict[str, Callable[[Maker, dict[str, Any], At, int], Any]] = {
    "class": Maker._of_class,
    "enum": Maker._enum,
    "constant": Maker._constant,
    "exception": Maker._exception,
    "secret": Maker._secret,
    "url": Maker._url,
    "typed": Maker._typed,
}
