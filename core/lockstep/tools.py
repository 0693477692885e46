"""By hand: `@lockstep.tool` makes an effect of any function, `lockstep.step` marks a step, `lockstep.mark` says what
any tool may do to the outside.

They do nothing without a session.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, cast, overload

from lockstep.errors import Code, LockstepError, TargetError
from lockstep.log import canonical
from lockstep.log.model import Status, Value
from lockstep.session import current, declarations, exceptions, sites, snapshot
from lockstep.session.call import failed
from lockstep.session.policy import CLASSES, Declared, EffectClass


@overload
def tool[F: Callable[..., Any]](function: F, /) -> F: ...
@overload
def tool[F: Callable[..., Any]](*, effect: EffectClass = ..., name: str | None = ...) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, effect: EffectClass = "unknown", name: str | None = None) -> Any:
    """Makes an effect of a function: recorded with its arguments, answered from the record in a replay.

    Functions, coroutine functions, generators and async generators. What it returns must be data, or of
    a class that `lockstep.session.snapshot` can take apart; in a replay the function does not run, so
    what it does to its arguments does not happen.

    effect  what running it means: `inference`, `read`, `mutating` or `unknown`. Past a fork point, calls of the
            first two run for real, others are answered from the record or refused
    name    what it is called in the run; the function's own name by default

    Raises TargetError LS402 for another `effect`.
    """
    _check(effect)
    if function is None:
        return functools.partial(_wrapped, effect=effect, name=name)
    return _wrapped(function, effect, name)


def mark[T](obj: T, /, *, effect: EffectClass) -> T:
    """Declares what running something means, for whoever makes an effect of it: a tool or activity of a framework,
    a function, a method (of this object only), a class (of all its instances). Nothing about `obj` changes, and the
    mark goes when it goes. The last mark counts, also over that of `lockstep.tool`; returns `obj`.

    effect  `inference`, `read`, `mutating` or `unknown`

    Raises TargetError LS402 for another `effect`, or for a value that has no calls: a tool that is only known by its
    name is for `[tool.lockstep.effects]` in pyproject.toml.
    """
    _check(effect)
    if obj is None or isinstance(obj, (str, bytes, int, float)):
        raise TargetError(
            Code.BAD_TARGET,
            f"lockstep.mark wants a tool, function or method, not {obj!r}: what is known by its name only is for"
            " [tool.lockstep.effects] in pyproject.toml",
        )
    declarations.declare(obj, Declared(effect, f"declared in {sites.line(2)}"))
    return obj


def declared(obj: Any) -> Declared | None:
    """What `lockstep.mark` or `lockstep.tool` said of it, for adapters: `call.ask(…, declared=declared(tool))`. None
    where nobody said anything."""
    return declarations.of(obj)


def annotated(annotations: Any) -> Declared | None:
    """The same by the annotations of an MCP tool, a mapping or an object, for adapters: `declared(tool) or
    annotated(tool.annotations)`. None where they say nothing of it. They are the server's own word."""
    from lockstep.session import mcp

    effect = mcp.annotated(annotations)
    return Declared(effect, "by the tool's MCP annotations") if effect is not None else None


def _check(effect: object) -> None:
    if effect not in CLASSES:
        raise TargetError(Code.BAD_TARGET, f"effect is one of {', '.join(CLASSES)}, not {effect!r}")


def step(name: str, state: Any = None) -> None:
    """Ends a step of that name, with a state to look at and compare. Acknowledged when it returns: it
    survives a kill of the process. Raises StoreError LS207 for a state that can't be stored."""
    session = current.session
    if session is not None:
        session.step(name, snapshot.to_value(state))


class _Tool:
    """What a wrapped function is in a run: its name, class and the names of its parameters."""

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.name = name or function.__name__
        # What the program has instead of the function, and may have marked. Weakly: it holds this object.
        self.wrapper: Callable[[], Any] = _nothing
        self._function = function
        self._names: tuple[str, ...] | None = None

    def open(self, session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Asks the session for this call."""
        arguments = self._arguments(args, kwargs)
        call = session.open("tool")
        said = declarations.of_call(self.wrapper(), args)
        request: Value = {"arguments": arguments}
        compared = snapshot.to_key(arguments)
        key: Value = request if compared is arguments else {"arguments": compared}
        call.ask(self.name, request, key, declared=said)
        return call

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
        if self._names is None:
            self._names = _positional(self._function)
        if len(args) <= len(self._names):
            bound: dict[str, Any] = dict(zip(self._names, args, strict=False))
            if kwargs.keys().isdisjoint(bound):
                bound.update(kwargs)
                return {
                    name: value if type(value) in canonical.LEAVES else snapshot.taken(value)
                    for name, value in bound.items()
                }
        # More than there are names for, or a name given twice: the call itself will say if that is wrong.
        return {
            "args": snapshot.taken(list(args)),
            "kwargs": {name: snapshot.taken(value) for name, value in kwargs.items()},
        }


def _nothing() -> None:
    return None


def _positional(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters that can be given by place."""
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(name for name, found in inspect.signature(function).parameters.items() if found.kind in kinds)


def _kept(call: Any, name: str, value: Any) -> Value:
    try:
        return snapshot.to_value(value)
    except LockstepError as error:
        # The program has its result; only the recording is the poorer, and says so.
        call.session.fault(f"result of tool {name}", error)
        return {"$": "unstorable", "why": str(error)}


def _given(call: Any, name: str, value: Value) -> Any:
    if isinstance(value, dict) and value.get("$") == "unstorable":
        call.session.diverge(
            Code.UNSERVABLE, f"the result of {name} could not be recorded: {value.get('why')!s}", call=call
        )
    try:
        return snapshot.from_value(value)
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)


def _answer(call: Any, name: str, piece: Any) -> Any:
    if piece.status is Status.ERROR:
        raise exceptions.revive(piece.value, call)
    if piece.status is None:
        call.session.diverge(Code.UNSERVABLE, f"{name} is no generator, and is given the items of one", call=call)
    return _given(call, name, piece.value)


async def _dropped(call: Any) -> None:
    """The recorded task got no answer before it was dropped: neither does this one."""
    from lockstep.session import suspend, ticks

    here = ticks.here()
    if here is not None:
        await suspend.forever(call, here)


def _wrapped(function: Any, effect: EffectClass, name: str | None) -> Any:
    import inspect

    about = _Tool(function, name)
    if inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, about)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, about)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, about)
    else:
        wrapper = _plain(function, about)
    wrapped = functools.wraps(function)(wrapper)
    about.wrapper = weakref.ref(wrapped)
    if effect != "unknown":  # which is what a tool is of which nobody said anything
        code = getattr(inspect.unwrap(function), "__code__", None)
        where = sites.defined(code) if code is not None else sites.line(2)
        declarations.declare(wrapped, Declared(effect, f"declared in {where}"))
    return wrapped


def _plain(function: Any, about: _Tool) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        session = current.session
        if session is None:
            return function(*args, **kwargs)
        call = about.open(session, args, kwargs)
        if call.held:
            call.ready()
        if not call.live:
            return _answer(call, about.name, call.take())
        try:
            with call.inside():
                result = function(*args, **kwargs)
        except BaseException as error:
            failed(call, error)
            raise
        call.end(Status.OK, _kept(call, about.name, result))
        return result

    return run


def _coroutine(function: Any, about: _Tool) -> Any:
    async def run(*args: Any, **kwargs: Any) -> Any:
        session = current.session
        if session is None:
            return await function(*args, **kwargs)
        call = about.open(session, args, kwargs)
        if call.held:
            await call.aready()
        if not call.live:
            piece = await call.atake()
            if piece.status is Status.CLOSED:
                await _dropped(call)
            return _answer(call, about.name, piece)
        try:
            with call.inside():
                result = await function(*args, **kwargs)
        except BaseException as error:
            failed(call, error)
            raise
        call.end(Status.OK, _kept(call, about.name, result))
        return result

    return run


def _generator(function: Any, about: _Tool) -> Any:
    def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        session = current.session
        if session is None:
            return (yield from function(*args, **kwargs))
        call = about.open(session, args, kwargs)
        if call.held:
            call.ready()
        if not call.live:
            while (piece := call.take()).status is None:
                yield _given(call, about.name, cast("dict[str, Value]", piece.value)["item"])
            if piece.status is Status.CLOSED:
                call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)
            return _answer(call, about.name, piece)
        inner = function(*args, **kwargs)
        try:
            while True:
                try:
                    with call.inside():
                        item = next(inner)
                except StopIteration as stop:
                    call.end(Status.OK, _kept(call, about.name, stop.value))
                    return stop.value
                except BaseException as error:
                    failed(call, error)
                    raise
                call.part({"item": _kept(call, about.name, item)})
                yield item
        finally:
            call.end(Status.CLOSED)
            with call.inside():
                inner.close()

    return run


def _async_generator(function: Any, about: _Tool) -> Any:
    async def run(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        session = current.session
        if session is None:
            async for item in function(*args, **kwargs):
                yield item
            return
        call = about.open(session, args, kwargs)
        if call.held:
            await call.aready()
        if not call.live:
            while (piece := await call.atake()).status is None:
                yield _given(call, about.name, cast("dict[str, Value]", piece.value)["item"])
            if piece.status is Status.CLOSED:
                call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)
            _answer(call, about.name, piece)
            return
        inner = function(*args, **kwargs)
        try:
            while True:
                try:
                    with call.inside():
                        item = await anext(inner)
                except StopAsyncIteration:
                    call.end(Status.OK)
                    return
                except BaseException as error:
                    failed(call, error)
                    raise
                call.part({"item": _kept(call, about.name, item)})
                yield item
        finally:
            call.end(Status.CLOSED)
            with call.inside():
                await inner.aclose()

    return run
