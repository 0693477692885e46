"""The HTTP responses that exceptions of providers' clients hold, as data and back.

LangChain tells its callbacks of them, and programs look at their status, headers and body.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from lockstep.log.model import Value

_DEEP = 8  # causes of an exception that are looked at
_CLIENTS = ("httpx", "httpx2", "requests")


def of(error: BaseException) -> Value:
    """The response that an exception or one of its causes holds; None where none does."""
    each: BaseException | None = error
    for _ in range(_DEEP):
        if each is None:
            return None
        response = getattr(each, "response", None)
        if _client(type(response)) and isinstance(getattr(response, "status_code", None), int):
            return _told(response)
        each = each.__cause__ or each.__context__
    return None


def _client(cls: type) -> str:
    name = cls.__module__.partition(".")[0]
    return name if name in _CLIENTS else ""


def _told(response: Any) -> Value:
    request = getattr(response, "_request", None) or getattr(response, "request", None)
    found: dict[str, Value] = {
        "class": _name(type(response)),
        "status": response.status_code,
        "headers": [[str(name), str(value)] for name, value in _pairs(response.headers)],
        "body": _body(response),
    }
    if request is not None:
        found["request"] = {
            "class": _name(type(request)), "method": str(request.method), "url": str(request.url),
        }  # fmt: skip
    return found


def _pairs(headers: Any) -> Any:
    return headers.multi_items() if hasattr(headers, "multi_items") else headers.items()


def _body(response: Any) -> bytes:
    """What was read of it: an exception may hold one whose body nobody has read."""
    content = getattr(response, "_content", b"")
    return content if isinstance(content, bytes) else b""


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def made(told: Value) -> Mapping[str, object]:
    """A response with its request, by the names of their classes. Empty where their client is not loaded here."""
    if not isinstance(told, dict):
        return {}
    asked: Any = told.get("request")
    request = _request(asked) if isinstance(asked, dict) else None
    found: dict[str, object] = {}
    if request is not None:
        found[str(asked["class"])] = request
    make = _MAKERS.get(str(told["class"]).partition(".")[0])
    module = _loaded(told)
    if make is not None and module is not None:
        found[str(told["class"])] = make(module, told, request)
    return found


def _loaded(told: dict[str, Any]) -> Any:
    name = str(told["class"]).partition(".")[0]
    return sys.modules.get(name) if name in _CLIENTS else None


def _request(asked: dict[str, Any]) -> Any:
    module = _loaded(asked)
    if module is None:
        return None
    if module.__name__ == "requests":
        return module.Request(asked["method"], asked["url"]).prepare()
    return module.Request(asked["method"], asked["url"])


def _of_httpx(module: Any, told: dict[str, Any], request: Any) -> object:
    headers = [(str(name), str(value)) for name, value in told["headers"]]
    response = module.Response(told["status"], headers=headers, request=request)
    response._content = bytes(told["body"])  # as it was read: decoded already, whatever the headers say
    return response


def _of_requests(module: Any, told: dict[str, Any], request: Any) -> object:
    response = module.Response()
    response.status_code = told["status"]
    response.headers.update({str(name): str(value) for name, value in told["headers"]})
    response._content = bytes(told["body"])
    response.request = request
    response.url = request.url if request is not None else ""
    return response


_MAKERS: dict[str, Callable[[Any, dict[str, Any], Any], object]] = {
    "httpx": _of_httpx, "httpx2": _of_httpx, "requests": _of_requests,
}  # fmt: skip
