"""When two live runs did the same, though no two live runs are equal: what counts as a difference and what does not.

The rule: what was asked, and what the program got that says something, must be equal. Four sorts of things say
nothing and differ between any two live runs; they are counted and told, and are no difference:

* ids made anew, where both runs have the same one: an id that a model's provider made for its answer, or a server for
  what it was asked to create, or that the program drew from its own entropy. They are renamed one to one over the
  whole of both runs: an id that is used at another place than its partner is a difference.
* the time that it was, and durations that the run measured (`lockstep.debugger.moments`)
* headers that tell of the transport and of one request's handling, and what a provider adds for itself
* how far an answer had come when the program itself stopped reading it

Everything else is a difference. `exact` makes these differences too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.debugger.drawn import Drawn
from lockstep.debugger.moments import Moments, Span
from lockstep.log.model import Value

ID, TIME, HEADER, PROVIDER, ARRIVED = "id", "time", "header", "provider's own", "not read to its end"

# Headers of answers: how it was sent, when, by whom, and what is left of a quota.
_TRANSPORT = frozenset({
    "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "date", "age", "expires",
    "via", "server", "server-timing", "alt-svc", "nel", "report-to", "x-served-by", "x-cache", "x-timer", "x-runtime",
    "x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-amzn-trace-id", "x-amz-cf-id",
    "x-amz-cf-pop", "x-goog-request-id", "traceparent", "tracestate", "cf-ray", "cf-cache-status", "apim-request-id",
    "x-ms-request-id", "x-ms-client-request-id", "x-vercel-id", "fly-request-id", "set-cookie",
    "x-envoy-upstream-service-time", "openai-processing-ms", "x-ms-region", "x-compute-time", "x-generation-id",
})  # fmt: skip
_TRANSPORT_FAMILIES = ("x-ratelimit-", "anthropic-ratelimit-", "ratelimit-", "x-envoy-", "cf-", "x-b3-", "x-datadog-")
# Fields of a model's answer that its provider makes for itself.
_OPAQUE = frozenset({
    "system_fingerprint", "obfuscation", "encrypted_content", "signature", "thoughtSignature", "thought_signature", "p",
})  # fmt: skip
_TIMES = frozenset({
    "created", "created_at", "createTime", "completed_at", "expires_at", "total_duration", "load_duration",
    "prompt_eval_duration", "eval_duration", "latencyMs", "processing_ms",
})  # fmt: skip
_ID = re.compile(r"(?:.*_)?id|.*[a-z]Id|call_id")

_WORDS = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\s?(?:Z|[+-]\d\d:?\d\d)\b)?)?"
    r"|(?:[A-Z][a-z]{2,8},? )?(?:\d{1,2}[ -][A-Z][a-z]{2,8}|[A-Z][a-z]{2,8} +\d{1,2}),?"
    r"(?: \d\d:\d\d(?::\d\d)?)?[ -]\d{4}(?: \d\d:\d\d(?::\d\d)?)?(?: GMT| UTC)?"
    r"|\b\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\b|\b\d{10}\.\d+\b|\b\d{10}(?:\d{3}|\d{6}|\d{9})?\b)"
    r"|(?P<took>(?<![\w-])\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds|min|minutes)(?![\w-]))"
    r"|(?P<place>\b0x[0-9a-fA-F]{6,}\b)"
    r"|(?P<word>[A-Za-z0-9_\-]{6,})"
)
# What a generated id looks like: maybe a word before it, then letters and digits without a meaning.
_GENERATED = re.compile(
    r"(?P<kind>(?:[A-Za-z]{1,16}[_-])*)"
    r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12,}|[0-9a-f]{16,})",
    re.IGNORECASE,
)


class Where(msgspec.Struct, frozen=True):
    """What the two values that are compared are part of.

    lane     whose it is, in the one run and in the other
    answer   an HTTP answer, `model` that of a model's provider, `headers` its headers
    made     an answer of something that may have made what it answers with (a POST, a mutating tool)
    cut      an answer that neither program read to its end
    span     when it was answered, in the one run and in the other
    """

    lane: tuple[str, str] = ("", "")
    answer: bool = False
    model: bool = False
    made: bool = False
    headers: bool = False
    cut: bool = False
    span: tuple[Span | None, Span | None] = (None, None)


class LeftOut(msgspec.Struct, frozen=True):
    """Things that differ and say nothing: `count` of one sort at one path, and the first of them.

    what   id, time, header, provider's own, not read to its end
    """

    what: str
    path: str
    count: int
    address_a: str
    address_b: str
    a: str
    b: str


class Sameness:
    """Judges the values of two runs, and remembers which id of the one is which of the other."""

    def __init__(self, drawn: tuple[Drawn, Drawn], moments: tuple[Moments, Moments], *, exact: bool) -> None:
        self.exact = exact
        self._drawn = drawn
        self._moments = moments
        self._partner: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._times: set[tuple[Any, Any]] = set()  # what was the time in both: it may be carried on

    def reason(self, a: Value, b: Value, name: str, where: Where) -> str:
        """Why two values that differ say the same; "" where they do not. `name`: the field's."""
        if self.exact:
            return ""
        if where.headers and _transport(name):
            return HEADER
        if where.model:
            told = self._providers(a, b, name)
            if told:
                return told
        if isinstance(a, str) and isinstance(b, str):
            told = self._texts(a, b, where)
            if not told and where.cut and (a.startswith(b) or b.startswith(a)):
                return ARRIVED
            return told
        if isinstance(a, bytes) and isinstance(b, bytes) and where.cut and (a.startswith(b) or b.startswith(a)):
            return ARRIVED
        if _is_number(a) and _is_number(b):
            return self._numbers(a, b, where)
        return ""

    def absent(self, name: str, where: Where) -> str:
        """Why it says nothing that only one of two has a field of this name."""
        if self.exact:
            return ""
        if where.headers and _transport(name):
            return HEADER
        if where.model and (name in _OPAQUE or name in _TIMES):
            return PROVIDER
        return ARRIVED if where.cut else ""

    def _providers(self, a: Value, b: Value, name: str) -> str:
        if name in _OPAQUE or (_is_number(a) and "cach" in name):  # tokens that were in its cache
            return PROVIDER
        if name in _TIMES:
            return TIME
        if _ID.fullmatch(name) and isinstance(a, str) and isinstance(b, str):
            return ID if self._bind(a, b) else ""
        return ""

    def _texts(self, a: str, b: str, where: Where) -> str:
        if self._partner.get(a) == b:
            return ID
        told = ""
        end_a = end_b = 0
        words_b = _WORDS.finditer(b)
        for word_a in _WORDS.finditer(a):
            word_b = next(words_b, None)
            if word_b is None or a[end_a : word_a.start()] != b[end_b : word_b.start()]:
                return ""
            if word_a[0] != word_b[0]:
                reason = self._words(word_a, word_b, where)
                if not reason:
                    return ""
                told = told or reason
            end_a, end_b = word_a.end(), word_b.end()
        return told if next(words_b, None) is None and a[end_a:] == b[end_b:] else ""

    def _words(self, a: re.Match[str], b: re.Match[str], where: Where) -> str:
        # An id of digits alone may look like a time.
        sort = a.lastgroup if a.lastgroup == b.lastgroup else "word"
        one, other = a[0], b[0]
        told = False
        if sort == "time":
            told = all(m.told(w, span) for m, w, span in zip(self._moments, (one, other), where.span, strict=True))
        elif sort == "took":
            told = all(m.measured(w, lane) for m, w, lane in zip(self._moments, (one, other), where.lane, strict=True))
        elif sort == "place":
            return ID  # an address in memory
        if self._timed(one, other, told=told):
            return TIME
        if self._partner.get(one) == other or self._bound_by_draw(one, other):
            return ID
        if where.made and _form(one) is not None and _form(one) == _form(other) and self._bind(one, other):
            return ID
        return ""

    def _timed(self, a: Any, b: Any, *, told: bool) -> str:
        if told:
            self._times.add((a, b))
        return TIME if told or (a, b) in self._times else ""

    def _numbers(self, a: Any, b: Any, where: Where) -> str:
        values = a, b
        told = all(
            moments.number(value, span, 1.0 if isinstance(value, int) else _precision(value))
            for moments, value, span in zip(self._moments, values, where.span, strict=True)
        )
        if told or not isinstance(a, float) or not isinstance(b, float):
            return self._timed(a, b, told=told)
        # A measured time as a number: in seconds or milliseconds, with as many digits as it is given.
        measured = all(
            any(
                moments.elapsed(value * scale, scale * _precision(value), lane)
                for scale in (1.0, 1e-3)
                if _precision(value) <= abs(value) / 100
            )
            for moments, value, lane in zip(self._moments, values, where.lane, strict=True)
        )
        return self._timed(a, b, told=measured)

    def _bound_by_draw(self, a: str, b: str) -> bool:
        draw = self._drawn[0].find(a)
        return draw is not None and draw == self._drawn[1].find(b) and self._bind(a, b)

    def _bind(self, a: str, b: str) -> bool:
        """Takes two ids for partners, unless one of them has another partner."""
        if self._partner.get(a, b) != b or self._back.get(b, a) != a:
            return False
        self._partner[a], self._back[b] = b, a
        return True


def _transport(name: str) -> bool:
    return name in _TRANSPORT or name.startswith(_TRANSPORT_FAMILIES)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _precision(value: float) -> float:
    digits = repr(value).partition(".")[2]
    return 10.0 ** -len(digits) if "e" not in digits else abs(value) * 1e-9


def _form(word: str) -> tuple[str, int] | None:
    match = _GENERATED.fullmatch(word)
    return (match["kind"], len(word)) if match is not None else None


def loose(text: str) -> str:
    """A text in which everything that may be an id or a time stands for its sort: to find what belongs together."""
    return _WORDS.sub(_sort, text)


def _sort(match: re.Match[str]) -> str:
    sort = match.lastgroup or ""
    if sort != "word":
        return f"<{sort}>"
    return "<id>" if _GENERATED.fullmatch(match[0]) else match[0]


def loosened(value: Value, text: Callable[[str], str] = loose) -> Value:
    """The same for a whole value."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return text(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, list):
        return [loosened(item, text) for item in value]
    if isinstance(value, dict):
        return {name: loosened(item, text) for name, item in value.items()}
    return value
