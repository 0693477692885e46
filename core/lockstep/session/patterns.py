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
from functools import lru_cache

from lockstep.log.model import Value
from lockstep.session import inference, mcp

type _Matcher = Callable[[str], object]

_METHOD = re.compile(r"[A-Z]+")
_EXCHANGES = frozenset({"http", "model"})


def matches(pattern: str, kind: str, name: str, request: Value) -> bool:
    """Whether a call is one that the pattern means."""
    if pattern in ("*", name):
        return True
    first, _, rest = pattern.partition(" ")
    if first == kind and rest and matches(rest, kind, name, request):
        return True
    asked = request if isinstance(request, dict) else {}
    if kind in _EXCHANGES and "url" in asked:
        if _address(pattern, str(asked.get("method")), _text(asked["url"])):
            return True
        called = inference.model(asked) if kind == "model" else mcp.tool(asked)
        return bool(called) and bool(_glob(pattern)(called))
    if _glob(pattern)(name):
        return True
    return kind == "process" and bool(_glob(pattern)(_command(name, asked)))


def _address(pattern: str, method: str, url: str) -> bool:
    """Whether a pattern of a method and a URL means this request."""
    wanted = _parts(pattern)
    if wanted is None:
        return False
    for_method, for_scheme, for_host, for_target = wanted
    scheme, _, rest = url.partition("://")
    cut = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    host, target = rest[:cut].rpartition("@")[2].lower(), rest[cut:].partition("#")[0]
    if not target.startswith("/"):
        target = f"/{target}"
    return bool(
        for_method(method)
        and for_scheme(scheme.lower())
        and for_host(host)
        and (for_target(target) or for_target(target.partition("?")[0]))
    )


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
    # Here, as below: a program without rules needs neither.
    from fnmatch import translate

    return re.compile(translate(pattern)).match


def _command(name: str, asked: dict[str, Value]) -> str:
    """The words of a process, the program by its base name: `git push origin`, `sh -c 'git push | tee log'`."""
    import shlex

    script = asked.get("shell")
    if script is not None:
        given: list[Value] = script if isinstance(script, list) else [script]
        return shlex.join(["sh", "-c", *map(_text, given)])
    words = asked.get("argv")
    return shlex.join([name, *map(_text, words[1:])]) if isinstance(words, list) else name


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
