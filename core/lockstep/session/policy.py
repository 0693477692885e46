"""What a call may do to the outside, and so whether it may run for real past a fork point. Pure functions.

Every outermost effect has a class:

    inference   a model's answer: costs tokens, changes nothing
    read        looks something up
    mutating    changes something
    unknown     nobody said, and nothing shows it: treated as mutating

Who says so, strongest first: a rule of the project (`[tool.lockstep.effects]`), a declaration (`lockstep.tool`,
`lockstep.mark`, an adapter, the annotations of an MCP tool), the request itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.session.patterns import Named

type EffectClass = Literal["inference", "read", "mutating", "unknown"]
type Tail = Literal["", "live", "reuse", "record"]
type Decision = Literal["live", "reuse", "refuse"]

CLASSES: tuple[EffectClass, ...] = get_args(EffectClass.__value__)
TAILS: tuple[Tail, ...] = get_args(Tail.__value__)

# RFC 9110, section 9.2.1: "the client does not request, and does not expect, any state change on the origin server".
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Sections 9.3.4 and 9.3.5, and RFC 5789: they ask for a change. A POST may be a search.
_CHANGING = frozenset({"PUT", "DELETE", "PATCH"})
_HARMLESS = frozenset({"inference", "read"})
_MOST = 1 << 14  # bytes of a body that is looked at for MCP: a request that only looks something up is small


class Declared(msgspec.Struct, frozen=True):
    """A class, and who says so: `declared in agent/tools.py:71`, as it goes on after "it is mutating"."""

    effect: EffectClass
    where: str


class EffectRules(msgspec.Struct, frozen=True):
    """A project's own rules: (pattern, class), of which the first that fits decides. See `lockstep.session.patterns`.
    `where`: the file that they stand in."""

    rules: tuple[tuple[str, EffectClass], ...] = ()
    where: str = ""

    def find(self, kind: str, name: str, request: Value) -> Declared | None:
        """What they say of a call, None if nothing."""
        call = Named(kind, name, request)
        for pattern, effect in self.rules:
            if call.matches(pattern):
                return Declared(effect, f'by the rule "{pattern}" in {self.where or "the run"}')
        return None


class Policy(msgspec.Struct, frozen=True):
    """What may run for real.

    live   patterns of calls that may, whatever else is said
    tail   "": inference and reads run, anything else is answered from the record or refused
           "live": everything runs
           "reuse": a call that equals an unused recorded one is answered from the record, any other as by ""
           "record": the same, and any other is refused
    beside address of another run, whose answers a call gets for which there is no recorded one: see `session.beside`
    """

    live: tuple[str, ...] = ()
    tail: Tail = ""
    rules: EffectRules = EffectRules()
    beside: str = ""

    def lends(self, kind: str, name: str, request: Value = None) -> bool:
        """Whether a call may get another run's answer: not one that is to run whatever there is for it."""
        return bool(self.beside) and self.tail != "live" and not self.allows(kind, name, request)

    def allows(self, kind: str, name: str, request: Value = None) -> bool:
        """Whether the call was named as one that may run."""
        return bool(self.live) and any(map(Named(kind, name, request).matches, self.live))


def given(live: Sequence[str], tail: str, rules: EffectRules) -> Policy:
    """The policy that a user gives. One pattern may stand for a list of one. Raises TargetError LS402 for a tail that
    there is not, and a pattern that means nothing."""
    patterns = (live,) if isinstance(live, str) else tuple(live)
    for pattern in patterns:
        if not isinstance(pattern, str) or not pattern.strip():
            raise TargetError(Code.BAD_TARGET, f"live takes the names of calls that may run, not {pattern!r}")
    found = next((each for each in TAILS if each == tail), None)
    if found is None:
        raise TargetError(Code.BAD_TARGET, f"tail is one of {', '.join(filter(None, TAILS))}, not {tail!r}")
    return Policy(patterns, found, rules)


def judge(kind: str, name: str, request: Value, declared: Declared | None, rules: EffectRules) -> Declared:
    """The class of a call, with who says so. `declared`: by the program, None where it says nothing."""
    if rules.rules:
        found = rules.find(kind, name, request)
        if found is not None:
            return found
    return declared if declared is not None else _BY_KIND.get(kind, _undeclared)(request)


def classify(
    kind: str, name: str, request: Value, declared: Declared | None = None, rules: EffectRules | None = None
) -> EffectClass:
    """The class of a call; see `judge`."""
    return judge(kind, name, request, declared, rules if rules is not None else NO_RULES).effect


def decide(
    policy: Policy, effect_class: str, kind: str, name: str, recorded: bool, request: Value = None
) -> Decision:  # fmt: skip
    """What becomes of a call past a fork point. `recorded`: whether an unused recorded call has its match key.

    What was named runs, whatever the rest says: it is the one thing that was said of this very call.
    """
    if policy.tail == "live" or policy.allows(kind, name, request):
        return "live"
    if policy.tail == "record":
        return "reuse" if recorded else "refuse"
    if recorded and (policy.tail == "reuse" or kind in _ANSWERED_ONCE):
        return "reuse"
    if effect_class in _HARMLESS:
        return "live"
    return "reuse" if recorded else "refuse"


NO_RULES = EffectRules()

# A pipe that has been read cannot be read again, and nobody wants to type once more what has been typed. So what
# stdin gave in the recording goes first, and only what the program wants beyond it is read for real. Nor is a file that
# a framework has written for its user written once more: it may have been changed since.
_ANSWERED_ONCE = frozenset({"human", "write"})

_UNDECLARED = Declared("unknown", "nobody declared it")
_PROCESS = Declared("unknown", "a process may do anything")
_HUMAN = Declared("read", "it only asks a person")
_TIMER = Declared("read", "it only waits")
_GIVEN = Declared("read", "it only came in")
_MODEL = Declared("inference", "it is a call to a model")
_HOSTED = Declared("unknown", "it has the provider run tools, or a job in the background")
_POST = Declared("unknown", "a POST may change something")
_UPGRADE = Declared("unknown", "it opens a connection on which anything may be said")
_METHODS = {
    **{method: Declared("read", f"a {method} only reads") for method in _SAFE},
    **{method: Declared("mutating", f"a {method} changes something") for method in _CHANGING},
    "POST": _POST,
    "CONNECT": Declared("read", "it could not even connect"),
}


def _undeclared(request: Value) -> Declared:
    return _UNDECLARED


def _http(request: Value) -> Declared:
    asked: dict[str, Any] = request if isinstance(request, dict) else {}
    method = asked.get("method")
    found = _METHODS.get(method) if isinstance(method, str) else None
    if found is None:
        return _UNDECLARED
    if found.effect == "read":
        return _UPGRADE if method == "GET" and _upgrades(asked.get("headers")) else found
    body = asked.get("body")
    if method != "DELETE" and not (isinstance(body, bytes) and len(body) <= _MOST and b'"jsonrpc"' in body):
        return found
    # Here, as below: most programs never need it, and all would wait for it.
    from lockstep.session import mcp

    told = mcp.harmless(asked)
    return Declared("read", told) if told else found


def _upgrades(headers: Any) -> bool:
    """Whether a GET asks for a WebSocket, or another protocol in the place of HTTP."""
    return isinstance(headers, list) and any(
        isinstance(pair, list) and pair and isinstance(pair[0], str) and pair[0].lower() == "upgrade"
        for pair in headers
    )


def _model(request: Value) -> Declared:
    from lockstep.session import inference

    body = request.get("body") if isinstance(request, dict) else None
    return _MODEL if not isinstance(body, bytes) or inference.only(body) else _HOSTED


_BY_KIND: dict[str, Callable[[Value], Declared]] = {
    "http": _http,
    "model": _model,
    "human": lambda request: _HUMAN,
    "process": lambda request: _PROCESS,
    "timer": lambda request: _TIMER,
    **dict.fromkeys(("signal", "update", "cancel"), lambda request: _GIVEN),
}
