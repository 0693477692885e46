"""MCP servers: which tools one has is its answer, when an agent is set up. What is served then is what it said; the
tools are made of it here, as they were.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from crewai.mcp.client import MCPClient
from crewai.mcp.tool_resolver import MCPToolResolver
from crewai.utilities.string_utils import sanitize_tool_name

from lockstep.log.model import Value
from lockstep.session import declarations
from lockstep.session.native.answers import Question
from lockstep.session.policy import Declared
from lockstep.tools import annotated
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert
from lockstep_crewai.events import Overheard
from lockstep_crewai.layout import TOOL
from lockstep_crewai.voice import repeat

_LISTS = Declared("read", "it only lists tools")


class _Listing:
    """What is known of a server's tools while they are listed. `served`: they are not asked for."""

    def __init__(self, tools: list[Any] | None = None) -> None:
        self.served = tools is not None
        self.tools: list[Any] = tools or []
        self.annotations: dict[str, Any] = {}


_listing: ContextVar[_Listing | None] = ContextVar("lockstep_crewai_listing", default=None)
# The JSON schema that a class of arguments was made of, with its name.
_schemas: weakref.WeakKeyDictionary[type, tuple[str, Any]] = weakref.WeakKeyDictionary()


def install() -> None:
    """Has those who look for servers' tools ask who answers. Once."""
    classes.wrap(MCPToolResolver, "_resolve_native", _resolving)
    classes.wrap(MCPToolResolver, "_get_mcp_tool_schemas", _looking)
    classes.wrap(MCPToolResolver, "_fetch_amp_mcp_configs", _fetching)
    classes.wrap(MCPToolResolver, "_json_schema_to_pydantic", _noting)
    classes.wrap(MCPClient, "connect", _connecting)
    classes.wrap(MCPClient, "disconnect", _disconnecting)
    classes.wrap(MCPClient, "list_tools", _listing_tools)


def _resolving(plain: Any) -> Any:
    @wraps(plain)
    def resolve(self: Any, mcp_config: Any, *args: Any, **options: Any) -> Any:
        place = current.place()
        if place is None:
            return plain(self, mcp_config, *args, **options)
        really = partial(plain, self, mcp_config, *args, **options)
        listed = _Listing()

        def make(value: Value) -> Any:
            tools: Any = value
            with _known(_Listing([{**each} for each in tools])):
                found = really()
            _declare(found[0], {each["name"]: each.get("annotations") for each in tools})
            return found

        def live() -> Any:
            from mcp import ClientSession  # here, since most crews have no server

            classes.wrap(ClientSession, "list_tools", _annotating)
            with _known(listed):
                found = really()
            _declare(found[0], listed.annotations)
            return found

        def keep(found: Any) -> Value:
            noted = listed.annotations
            return [
                inert({**each, "annotations": noted[each["name"]]} if noted.get(each["name"]) else each)
                for each in listed.tools
            ]

        def question() -> Question:
            request: dict[str, Value] = {"server": _server(mcp_config)}
            return Question(f"{self._create_transport(mcp_config)[1]}.list_tools", request, request, _LISTS)

        leaf = Leaf(keep, make, tell=partial(repeat, self))
        return asking.outside(place, TOOL, question, live, leaf, Overheard)

    return resolve


def _looking(plain: Any) -> Any:
    @wraps(plain)
    def schemas(self: Any, server_params: Any) -> Any:
        place = current.place()
        if place is None:
            return plain(self, server_params)
        request: dict[str, Value] = {"server": {"url": str(server_params.get("url"))}}
        name = f"{self._extract_server_name(server_params['url'])}.list_tools"
        return asking.outside(
            place, TOOL, lambda: Question(name, request, request, _LISTS), lambda: plain(self, server_params),
            Leaf(_taken_apart, _put_together, tell=partial(repeat, self)), Overheard,
        )  # fmt: skip

    return schemas


def _fetching(plain: Any) -> Any:
    @wraps(plain)
    def fetch(self: Any, slugs: Any) -> Any:
        place = current.place()
        if place is None:
            return plain(self, slugs)
        request: dict[str, Value] = {"servers": [str(slug) for slug in slugs]}
        return asking.outside(
            place, TOOL, lambda: Question("mcp_configs", request, request, _LISTS), lambda: plain(self, slugs), Leaf()
        )

    return fetch


def _noting(plain: Any) -> Any:
    @wraps(plain)
    def made(tool_name: str, json_schema: Any) -> Any:
        found = plain(tool_name, json_schema)
        _schemas[found] = (tool_name, json_schema)
        return found

    return made


def _taken_apart(schemas: Mapping[str, Any]) -> Value:
    found: dict[str, Value] = {}
    for name, each in schemas.items():
        made = each.get("args_schema")
        told: dict[str, Value] = {"description": inert(each.get("description"))}
        if made is not None:
            told["title"], told["inputSchema"] = (inert(part) for part in _schemas[made])
        found[name] = told
    return found


def _put_together(value: Value) -> Any:
    if not isinstance(value, dict):
        raise TypeError("a server's tools are an object, by their names")
    tools: Any = value
    return {
        name: {
            "description": each.get("description", ""),
            "args_schema": MCPToolResolver._json_schema_to_pydantic(each.get("title", name), each["inputSchema"])
            if each.get("inputSchema")
            else None,
        }
        for name, each in tools.items()
    }


def _connecting(plain: Any) -> Any:
    @wraps(plain)
    async def connect(self: Any) -> Any:
        listing = _listing.get()
        return self if listing is not None and listing.served else await plain(self)

    return connect


def _disconnecting(plain: Any) -> Any:
    @wraps(plain)
    async def disconnect(self: Any) -> Any:
        listing = _listing.get()
        return None if listing is not None and listing.served else await plain(self)

    return disconnect


def _listing_tools(plain: Any) -> Any:
    @wraps(plain)
    async def list_tools(self: Any, *args: Any, **options: Any) -> Any:
        listing = _listing.get()
        if listing is None:
            return await plain(self, *args, **options)
        if not listing.served:
            listing.tools = await plain(self, *args, **options)
        return listing.tools

    return list_tools


def _annotating(plain: Any) -> Any:
    """CrewAI drops what a server says of its tools' effects when it lists them."""

    @wraps(plain)
    async def list_tools(self: Any, *args: Any, **options: Any) -> Any:
        found = await plain(self, *args, **options)
        listing = _listing.get()
        if listing is not None:
            for tool in found.tools:
                if getattr(tool, "annotations", None) is not None:
                    listing.annotations[sanitize_tool_name(tool.name)] = inert(tool.annotations)
        return found

    return list_tools


@contextmanager
def _known(listing: _Listing) -> Iterator[None]:
    token = _listing.set(listing)
    try:
        yield
    finally:
        _listing.reset(token)


def _declare(tools: list[Any], annotations: Mapping[str, Any]) -> None:
    for tool in tools:
        said = annotations.get(sanitize_tool_name(tool.original_tool_name))
        found = annotated(said) if said else None
        if found is not None:
            declarations.declare(tool, found)


def _server(config: Any) -> Value:
    """Which server it is. Its environment and headers are how it is reached."""
    told: dict[str, Value] = {
        name: inert(getattr(config, name)) for name in ("command", "args", "url") if getattr(config, name, None)
    }
    return {"type": type(config).__name__, **told}
