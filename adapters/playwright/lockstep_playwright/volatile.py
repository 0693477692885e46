"""Values that are other ones in each run: where they stand in what a page asks, by the rules of the user.

    rules = rules_of(meta, {"GET */search": ["query.ts"], "POST */orders": ["body.id"]})
    places(key)                     # [("path[0]", "search"), ("query.q", "tea"), ("query.ts", "1767225600123")]
    rules.declared(kind, key)       # the places that may differ in this request

A rule is a pattern of calls, as `--live` takes it, and places in them:

    query.ts      a value in the address; `query` for all of them
    path[1]       a piece of the address, from 0
    body.order.id a field of a body that is JSON, or a form's; `body.items[].id` of all items, `body` for all of it
    headers.range a header, of those that are compared
    frame.id      of a WebSocket: a field of what the page says on it; `frame` for all of it
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus, urljoin, urlsplit

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.session import rules as project
from lockstep.session.patterns import Named
from lockstep.session.rules import Volatile

type Places = list[tuple[str, Value]]

_PLACE = re.compile(r"(query|body|headers|frame)(?![\w-])|path\[\d+\]$")
_PARTS = ("query.ts", "path[1]", "body.order.id", "body.items[].id", "headers.range", "frame.id")
_INDEX = re.compile(r"\[\d+\]")
_BOUNDARY = b"--boundary"  # as `lockstep.taps.http` has it in what is compared
_PART = re.compile(rb'content-disposition:[^\r\n]*?;\s*name="([^"]*)"', re.IGNORECASE)


class Rules(msgspec.Struct, frozen=True):
    """By pattern, the places in a call's request that may differ from the record."""

    rules: Volatile = ()

    def declared(self, method: str, url: str) -> tuple[str, ...]:
        """The places that may differ in a request; of a WebSocket, in its address and frames."""
        named = Named("http", url, {"method": method, "url": url})
        return tuple(place for pattern, places in self.rules if named.matches(pattern) for place in places)

    def same_address(self, recorded: str, now: str, base: str = "") -> bool:
        """Whether two addresses of pages differ in nothing but places that may. `base`: of those that are relative."""
        if not self.rules or recorded == now:
            return recorded == now
        was, is_ = (urljoin(base, each) for each in (recorded, now))
        return _masked(was, self.declared("GET", was)) == _masked(is_, self.declared("GET", is_))


def rules_of(meta: Mapping[str, Any], own: Volatile) -> Rules:
    """The rules of a replay: its own, the project's, and those that were the project's when it was recorded. Raises
    TargetError LS402 for one that makes no sense."""
    every = dict.fromkeys((*own, *project.here().volatile, *project.volatile(meta.get("rules"))))
    return Rules(checked(tuple(every)))


def checked(rules: Volatile) -> Volatile:
    """Raises TargetError LS402 for a place that there cannot be."""
    for pattern, places in rules:
        strange = next((each for each in places if not _PLACE.match(each)), None)
        if strange is not None:
            raise TargetError(
                Code.BAD_TARGET,
                f'volatile: "{pattern}" has no place {strange!r}. Places are such as {", ".join(_PARTS)}',
            )
    return rules


def given(told: Any) -> Volatile:
    """The rules as `volatile=` has them. Raises TargetError LS402."""
    fits = isinstance(told, Mapping) and all(
        isinstance(pattern, str) and isinstance(places, list | tuple) and all(isinstance(each, str) for each in places)
        for pattern, places in told.items()
    )
    if not fits:
        raise TargetError(Code.BAD_TARGET, f'volatile= is as {{"GET */search": ["query.ts"]}}, not {told!r}')
    return checked(tuple((pattern, tuple(places)) for pattern, places in told.items()))


def within(path: str, declared: Sequence[str]) -> bool:
    """Whether a place is one of these, or part of one."""
    return any(
        whole == each or whole.startswith((f"{each}.", f"{each}["))
        for whole in (path, general(path))
        for each in declared
    )


def general(path: str) -> str:
    """The place for all items of a list alike; the pieces of an address are none."""
    return path if path.startswith("path[") else _INDEX.sub("[]", path)


# What stands where in a request, from its match key (`lockstep_playwright.network.requests`).


def address(key: Any) -> tuple[str, str]:
    """Method and URL."""
    if "url" in key:
        return "GET", str(key["url"])
    query = "" if key["query"] is None else f"?{key['query']}"
    return str(key["method"]), f"{key['origin']}{key['path']}{query}"


def places(key: Any) -> Places:
    """Every value of a request, with its place, in order."""
    method, url = address(key)
    found = [("method", method), *of_url(url)]
    if "url" in key:
        return [*found, ("protocols", list(key["protocols"]))]
    headers = key["headers"]
    found += [(f"headers.{name}", value) for name, value in headers]
    kind = next((str(value) for name, value in headers if name == "content-type"), "")
    return [*found, *_of_body(key["body"], kind)]


def of_frame(frame: Mapping[str, Any]) -> Places:
    """The same of what was said on a WebSocket."""
    if "text" not in frame:
        return [("frame", frame.get("base64"))]
    opened = _json(str(frame["text"]).encode("utf-8", "surrogatepass"))
    return [("frame", frame["text"])] if opened is None else list(_leaves(opened[0], "frame"))


def _masked(url: str, declared: Sequence[str]) -> Places:
    return [(path, None if within(path, declared) else value) for path, value in of_url(url)]


def differing(was: Places, is_: Places) -> list[tuple[str, Value, Value]]:
    """Every place where the two are not the same, with its values."""
    before, after = dict(was), dict(is_)
    gone: Any = "(absent)"
    return [
        (path, before.get(path, gone), after.get(path, gone))
        for path in (*before, *(path for path in after if path not in before))
        if before.get(path, gone) != after.get(path, gone)
    ]


def of_url(url: str) -> Places:
    """The places of an address alone."""
    parts = urlsplit(url)
    found: Places = [("origin", f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}")]
    found += [(f"path[{number}]", each) for number, each in enumerate(parts.path.split("/")[1:])]
    fields = [each.partition("=") for each in parts.query.split("&")] if parts.query else []
    found += _named(
        "query", [(unquote_plus(name), unquote_plus(value) if mark else None) for name, mark, value in fields]
    )
    return [*found, ("fragment", parts.fragment)] if parts.fragment else found


def _named(of: str, fields: Sequence[tuple[str, Value]]) -> Iterator[tuple[str, Value]]:
    """Fields by their names, numbered where one stands there more than once."""
    names = [name for name, _ in fields]
    seen: dict[str, int] = {}
    for name, value in fields:
        number = seen[name] = seen.get(name, -1) + 1
        yield f"{of}.{name}" + (f"[{number}]" if names.count(name) > 1 else ""), value


def _of_body(body: bytes, kind: str) -> Iterator[tuple[str, Value]]:
    if not body:
        return
    opened = _json(body)
    if opened is not None:
        yield from _leaves(opened[0], "body")
    elif kind.startswith("application/x-www-form-urlencoded"):
        fields = [each.partition("=") for each in body.decode("utf-8", "surrogateescape").split("&")]
        yield from _named("body", [(unquote_plus(name), unquote_plus(value)) for name, _, value in fields])
    elif kind.startswith("multipart/form-data") and body.startswith(_BOUNDARY):
        parts = [each.partition(b"\r\n\r\n") for each in body.split(_BOUNDARY)[1:]]
        named = [(_PART.search(head), head, content) for head, _, content in parts]
        yield from _named("body", [
            (found[1].decode("utf-8", "replace") if found else "", content if found else head)
            for found, head, content in named
        ])  # fmt: skip
        yield "parts", [_PART.sub(b"", head) for found, head, _ in named if found]
    else:
        yield "body", body


def _json(text: bytes) -> tuple[Value] | None:
    if text[:1] not in (b"{", b"["):
        return None
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Value, path: str) -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value
