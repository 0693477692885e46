"""Meets native clients where Python enters them: puts a look in front of the ways in that `clients` lists.

What is wrapped stays what it is: same results, same exceptions, classes still classes (those of C that
can't be changed give way to a subclass). Without a session a wrapper only calls through.
"""

from __future__ import annotations

import gc
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from lockstep.session import current
from lockstep.taps.guard import events, symbols, uncovered
from lockstep.taps.guard.clients import FAR, NAME, OWN, Client, Way
from lockstep.taps.patches import disguise

type Look = Callable[[tuple[Any, ...], dict[str, Any]], None]

_CURL_URL = 0x100000 + 1  # CURLINFO_EFFECTIVE_URL
_COROUTINE = 0x80  # inspect.CO_COROUTINE

late = False
"""True while those are attached that were loaded before us: what they have opened so far nobody saw."""

_loaded: dict[str, Client] = {}  # by module
_missing: dict[str, str] = {}  # by module: which way in it does not have
_early: dict[str, set[type]] = {}  # by source: classes whose objects may have been made before the session
_used: set[str] = set()
_taken: set[tuple[int, str]] = set()
"""Threads on a way into a client: one way may lead through another (`get` through `request`)."""


def attach(client: Client) -> Callable[[ModuleType], None]:
    """What to do when a client's module is there."""

    def install(module: ModuleType) -> None:
        _loaded[client.module] = client
        lost = [f"{way.owner}.{name}".lstrip(".") for way in client.ways for name in _put(module, client, way)]
        if lost:
            _missing[client.module] = f"{_version(client.module)} has no {', '.join(lost)}"
        session = current.session
        if session is not None:
            _judge(session, client)

    return install


def began() -> None:
    """A session begins: names the clients that can't be watched, and connections that are open already."""
    session = current.session
    _used.clear()
    for client in tuple(_loaded.values()):
        _judge(session, client)
    classes = {kind: source for source, kinds in _early.items() for kind in kinds}
    if classes and _living(classes):
        gc.collect()  # what nobody holds any more is no client
        for kind in _living(classes):
            session.note(classes[kind], f"{kind.__qualname__} (made before the session began)")  # type: ignore[union-attr]


def _living(classes: dict[type, str]) -> list[type]:
    """Those of these classes that have objects."""
    return list(dict.fromkeys(kind for kind in map(type, gc.get_objects()) if kind in classes))


def unused() -> list[str]:
    """The clients that are loaded, can be watched, and were not used in this session."""
    loaded = {client.source for client in _loaded.values() if client.ways and client.module not in _missing}
    return sorted(loaded - _used)


def _judge(session: Any, client: Client) -> None:
    if not client.ways:
        session.note(client.source, "loaded: it makes connections of its own, which nobody sees")
    elif client.module in _missing:
        session.note(client.source, f"{_missing[client.module]}: its use cannot be seen")


def _look(client: Client, way: Way, bound: bool) -> Look:
    """What happens when the program takes this way in. `bound`: the first argument is the object or class."""

    def look(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        session = current.session
        if session is None or events.covered():
            return
        try:
            what = _told(way, args, args[1:] if bound else args, kwargs)
            if (way.how == FAR and "://" not in what) or (way.how == OWN and not symbols.by_the_program()):
                return
            _used.add(client.source)
            if client.source in session.elsewhere:
                if session.recording:
                    return
                what = f"({session.elsewhere[client.source]})"
        except Exception as error:
            session.fault(f"guard, {client.source}", error)
            what = ""
        if way.how in (NAME, OWN):
            uncovered.name(client.source, what)
        else:
            uncovered.refuse(client.source, what)

    return look


def _told(way: Way, args: tuple[Any, ...], given: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The other end, without the credentials that an address may hold."""
    if way.owner in ("Curl", "CurlMulti", "AsyncCurl"):
        curl = args[-1]
        url = curl.getinfo(_CURL_URL)
        return bare(url.decode("utf-8", "replace") if isinstance(url, bytes) else str(url or ""))
    host, port = kwargs.get("host", kwargs.get("server")), kwargs.get("port")
    if way.address is not None:
        place, name = way.address
        found = kwargs.get(name, given[place] if place < len(given) else None)
        if name == "host" and port is None and place + 1 < len(given):
            port = given[place + 1]
        host = found if found not in (None, "") else host
    if isinstance(host, (list, tuple)) and host:
        host, port = (host[0], host[1]) if len(host) > 1 else (host[0], port)
    text = os.fsdecode(host) if isinstance(host, (str, bytes, os.PathLike)) else ""
    return bare(text) + (f":{port}" if text and isinstance(port, (int, str)) and port else "")


def bare(address: str) -> str:
    """An address without user, password and query; of a list of settings (`host=… password=…`) where it leads."""
    scheme, found, rest = address.partition("://")
    if found:
        return f"{scheme}://{rest.partition('?')[0].partition('#')[0].rpartition('@')[2]}"
    if "=" in address:
        pairs = (word.partition("=") for word in address.replace(";", " ").split())
        told = {name.lower(): value for name, _, value in pairs}
        host = told.get("host") or told.get("hostaddr") or told.get("hostname") or told.get("server") or ""
        return f"{host}:{told['port']}" if host and told.get("port") else host
    return address


# Putting it there.


def _put(module: ModuleType, client: Client, way: Way) -> Iterator[str]:
    """Wraps each name of a way; yields those that are not there."""
    owner: Any = module if not way.owner else getattr(module, way.owner, None)
    changed: dict[str, Any] = {}
    for name in way.names.split():
        original = getattr(owner, name, None)
        if original is None:
            yield name
            continue
        bound = bool(way.owner) and not isinstance(vars(owner).get(name), staticmethod)
        changed[name] = _wrapped(owner, name, original, _look(client, way, bound), client)
    if late and isinstance(owner, type):
        _early.setdefault(client.source, set()).add(owner)
    try:
        for name, wrapper in changed.items():
            setattr(owner, name, wrapper)
    except TypeError:
        # A class of C, which can't be changed.
        namespace = {"__slots__": (), "__module__": owner.__module__, "__doc__": owner.__doc__, **changed}
        heir = type(owner)(owner.__name__, (owner,), namespace)
        setattr(module, way.owner, heir)


def _wrapped(owner: Any, name: str, original: Any, look: Look, client: Client) -> Any:
    kept = vars(owner).get(name)
    function = kept.__func__ if isinstance(kept, (classmethod, staticmethod)) else original
    is_class = isinstance(kept, classmethod)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        here = (get_ident(), client.source)
        if here in _taken:
            return function(*args, **kwargs)
        look(args, kwargs)
        _taken.add(here)
        try:
            found = function(*args, **kwargs)
        finally:
            _taken.discard(here)
        if current.session is None and not isinstance(owner, type) and found is not None:
            _early.setdefault(client.source, set()).add(type(found))
        return found

    # A function pickles by the module that it is found in.
    home = getattr(function, "__module__", None) if isinstance(owner, type) else owner.__name__
    disguise(wrapper, function, home or owner.__module__, name)
    wrapper.__wrapped__ = function  # type: ignore[attr-defined]
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _COROUTINE:
        from inspect import markcoroutinefunction

        markcoroutinefunction(wrapper)
    if is_class:
        return classmethod(wrapper)
    return staticmethod(wrapper) if isinstance(kept, staticmethod) else wrapper


def _version(module: str) -> str:
    package = sys.modules.get(module.partition(".")[0])
    return str(getattr(package, "__version__", "this version"))
