"""Which calls a pattern means: of a rule in pyproject.toml, or of `--live`.

    issue_refund                      a tool, activity, process … by its name, as `lockstep log` has it
    issue_*                           `*`, `?` and `[…]` as in a shell, upper and lower case apart
    tool issue_refund                 of this kind only
    POST https://api.stripe.com/*     an HTTP request; a method alone is `POST *`
    api.stripe.com/v1/charges         any method and scheme; the query counts where the pattern has one
    gpt-4o                            a model by its name
    git push *                        a process by its words, quoted as a shell would
    sh -c *                           one that a shell is asked to run
    *                                 everything

A `*` for the host, or a part of it, never reaches into the path: `https://*.example.com/*` is not
`https://elsewhere/x.example.com/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache

from lockstep.log.model import Value

type _Matcher = Callable[[str], object]

_METHOD = re.compile(r"[A-Z]+")
_EXCHANGES = frozenset({"http", "model"})


class Named:
    """A call as patterns see it. Taken apart once, however many patterns there are."""

    def __init__(self, kind: str, name: str, request: Value) -> None:
        self.kind = kind
        self.name = name
        self._asked = request if isinstance(request, dict) else {}
        self._exchange = kind in _EXCHANGES and "url" in self._asked

    def matches(self, pattern: str) -> bool:
        """Whether it is one that the pattern means."""
        if pattern in ("*", self.name):
            return True
        first, _, rest = pattern.partition(" ")
        if first == self.kind and rest and self.matches(rest):
            return True
        if self._exchange:
            wanted = _parts(pattern)
            if wanted is not None and self._at(*wanted):
                return True
            return bool(self._called and _glob(pattern)(self._called))
        if _glob(pattern)(self.name):
            return True
        return self.kind == "process" and bool(_glob(pattern)(self._command))

    def _at(self, method: _Matcher, scheme: _Matcher, host: _Matcher, target: _Matcher) -> bool:
        asked = self._address
        return bool(
            method(asked[0]) and scheme(asked[1]) and host(asked[2]) and (target(asked[3]) or target(asked[4]))
        )  # fmt: skip

    @cached_property
    def _address(self) -> tuple[str, str, str, str, str]:
        """Method, scheme, host, the rest, and that without its query."""
        scheme, _, rest = _text(self._asked["url"]).partition("://")
        cut = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
        host, target = rest[:cut].rpartition("@")[2].lower(), rest[cut:].partition("#")[0]
        if not target.startswith("/"):
            target = f"/{target}"
        return str(self._asked.get("method")), scheme.lower(), host, target, target.partition("?")[0]

    @cached_property
    def _called(self) -> str:
        """The model that is asked, or the tool of an MCP server."""
        from lockstep.session import inference, mcp  # here, as below: a program without rules needs none of it

        return inference.model(self._asked) if self.kind == "model" else mcp.tool(self._asked)

    @cached_property
    def _command(self) -> str:
        """The words of a process, the program by its base name: `git push origin`, `sh -c 'git push | tee log'`."""
        import shlex

        script = self._asked.get("shell")
        if script is not None:
            given: list[Value] = script if isinstance(script, list) else [script]
            return shlex.join(["sh", "-c", *map(_text, given)])
        words = self._asked.get("argv")
        return shlex.join([self.name, *map(_text, words[1:])]) if isinstance(words, list) else self.name


def matches(pattern: str, kind: str, name: str, request: Value) -> bool:
    """Whether a call is one that the pattern means."""
    return Named(kind, name, request).matches(pattern)


@lru_cache(512)
def _parts(pattern: str) -> tuple[_Matcher, _Matcher, _Matcher, _Matcher] | None:
    """Matchers of method, scheme, host and the rest; None for a pattern that means no request."""
    first, _, rest = pattern.partition(" ")
    method = first if rest and _METHOD.fullmatch(first) else "*"
    where = rest.strip() if method != "*" else pattern
    if where == "*":
        return _glob(method), _glob("*"), _glob("*"), _glob("*")
    scheme, mark, after = where.partition("://")
    host, slash, target = (after if mark else where).partition("/")
    if not host or " " in host or not (mark or slash or method != "*"):
        return None
    return _glob(method), _glob(scheme.lower() if mark else "*"), _glob(host.lower()), _glob(f"/{target}")


@lru_cache(512)
def _glob(pattern: str) -> _Matcher:
    from fnmatch import translate

    return re.compile(translate(pattern)).match


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
