"""Finds credentials in text: pure functions, no state.

A credential is known by its own shape (`lockstep.log.tokens`), by where it stands (the password of a URL, a
private key's block) or by the name before it (`lockstep.log.names`), whatever the syntax around: JSON at any
level of escaping, Python, headers, URLs, forms, YAML, dotenv files, command lines, XML, multipart bodies.

Works on bytes. One pass in C for each stem of a name that may say so, and a closer look where one stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from lockstep.log import tokens
from lockstep.log.names import Judge, Says


class Hit(msgspec.Struct, frozen=True):
    """A credential in a text: data[start:end]. `open`: it may go on where the text was cut off."""

    start: int
    end: int
    kind: str
    open: bool = False


_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_BACKSLASH = 92
_EQUALS = 61
_SPACE = b" \t"
_QUOTES = b"\"'"
_MOST_NAME = 80
_LONG = 4096
_STEP = 32
_MOST_VALUE = 1 << 16

# What must follow the stem of a name that gives something a value.
_FOLLOWED = re.compile(rb"(?<==)|[A-Za-z0-9_.-]*(?:(?:\\*[\"'])?\]?[ \t]*[:=]|>|\"\r\n\r\n)")
_SPACED = re.compile(rb"[A-Za-z0-9_.-]*[ \t]+[^\s]")
_QUOTED_NAME = re.compile(rb"[A-Za-z0-9_.-]*\"")
_NAME_REST = re.compile(rb"[A-Za-z0-9_.-]{1,80}")
_UNQUOTED = re.compile(rb"[^\s&;,\"'<>\\)\]}|`#]+")
_LINE = re.compile(rb"[^\r\n\"'\\]+")
_SCHEME = re.compile(
    rb"(?i)(bearer|basic|token|digest|apikey|api-key|negotiate|ntlm|aws4-[a-z0-9-]+|key|bot)[ =]+(?=[^\s])"
)
_TO_LINE_END = re.compile(rb"(?i)digest|aws4-")
_PAIR = re.compile(rb"\s*([^=;\s]+)=\"?([^;\"]*)")
# Of other names, shorter values are settings: theme=dark.
_SHORT_COOKIE = 8
_SESSION = re.compile(rb"(?i)sid|sess|auth|token|key|secret|pass|id$")
_TEMPLATE = re.compile(rb"(?:\$\{|\{\{|<|%\(|\$\(|\$[A-Z_]+$|\*+$|x{3,}$|X{3,}$|\.{3}|your[-_ ]|YOUR[-_ ])")
_CONSTANT = frozenset(
    (b"true", b"false", b"null", b"none", b"undefined", b"nil", b"str", b"string", b"int", b"bool", b"self")
)
_URL_USER = re.compile(rb"://([^\s/:@\"'<>\\?#]*):([^\s/@\"'<>\\]+)@")
_URL_BEGUN = re.compile(rb"://[^\s/:@\"'<>\\?#]*:([^\s/@\"'<>\\]+)\Z")
_WEBHOOKS = (
    (
        b"hooks.slack.com/",
        "slack-webhook",
        re.compile(rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{10,})"),
    ),
    (b"/api/webhooks/", "discord-webhook", re.compile(rb"/api/webhooks/[0-9]{6,}/([A-Za-z0-9_-]{20,})")),
    (b"webhook.office.com/", "teams-webhook", re.compile(rb"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{20,})")),
)
_PEM = b"-----BEGIN"
_PEM_BLOCK = re.compile(
    rb"-----BEGIN(?: |\+|%20)(?:[A-Z0-9]+(?: |\+|%20))*PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)?-----"
    rb"(?:(?!-----END)[\s\S])*(-----END[A-Z0-9 +%]*-----)?"
)
_AWS_PAIR = re.compile(rb"[^A-Za-z0-9/+]{1,5}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")


def scan(data: bytes, judge: Judge, partial: bool = False) -> list[Hit]:
    """Every credential in a text, in order, none inside another. `partial`: more of the text may follow."""
    found: list[Hit] = []
    for start, end, kind in tokens.find(data):
        found.append(Hit(start, end, kind, partial and end == len(data)))
        if kind == "aws-key-id" and (pair := _AWS_PAIR.match(data, end)):
            found.append(Hit(pair.start(1), pair.end(1), "aws-secret-key"))
    if b"://" in data:
        for url in _URL_USER.finditer(data):
            if not _TEMPLATE.match(url[2]):
                found.append(Hit(url.start(2), url.end(2), "url-password"))
        started = _URL_BEGUN.search(data, max(0, len(data) - _MOST_NAME)) if partial else None
        if started is not None and not started[1].isdigit():
            found.append(Hit(started.start(1), len(data), "url-password", True))
        for literal, kind, pattern in _WEBHOOKS:
            if literal in data:
                found += [
                    Hit(*hook.span(1), kind, partial and hook.end() == len(data)) for hook in pattern.finditer(data)
                ]
    if _PEM in data:
        for block in _PEM_BLOCK.finditer(data):
            found.append(Hit(*block.span(), "private-key", block[1] is None and block.end() == len(data)))
    lower = data.lower()
    for stem in _stems(lower, judge):
        at = lower.find(stem)
        while at >= 0:
            end = at + len(stem)
            # JSON of many rows has the same few names again and again.
            if (quoted := _QUOTED_NAME.match(data, end)) and data[
                data.rfind(b'"', at - 60 if at > 60 else 0, at) + 1 : quoted.end() - 1
            ] in judge.harmless:
                at = lower.find(stem, quoted.end())
                continue
            if _FOLLOWED.match(data, end) or _after_space(data, at, end, stem):
                end = _named(data, at, end, judge, partial, found)
            at = lower.find(stem, end)
    if partial and (begun := tokens.begun(data)) is not None:
        found.append(Hit(begun, len(data), "token", True))
    if partial:  # whatever ends with the text may go on
        size = len(data)
        found = [
            Hit(hit.start, hit.end, hit.kind, True) if hit.end == size and hit.kind != "private-key" else hit
            for hit in found
        ]
    return settle(found) if len(found) > 1 else found


def quiet(data: bytes) -> bool:
    """Whether a text in which nothing was found, and no name that says something, may be taken as searched where
    another one begins with it: not where a block may have begun that only its end makes a secret."""
    return _PEM not in data


def shared(before: bytes, data: bytes) -> int:
    """About how many bytes two texts have in common at their beginning, rather less than more."""
    low, high = 0, min(len(before), len(data))
    while high - low > _STEP:
        middle = (low + high + 1) // 2
        if before[low:middle] == data[low:middle]:
            low = middle
        else:
            high = middle - 1
    return high if before[low:high] == data[low:high] else low


def _stems(lower: bytes, judge: Judge) -> tuple[bytes, ...]:
    """The stems to look for. A long text with few signs that give something a value is judged by what stands
    before these first: a search for one stem takes 0.6 µs per kB."""
    if len(lower) < _LONG:
        return judge.stems
    pieces = lower.replace(b"=", b":").replace(b">", b":").split(b":")
    if len(pieces) * 96 > len(lower) or b"bearer " in lower or b" --" in lower:
        return judge.stems
    before = b"\n".join([piece[-48:] for piece in pieces])
    return tuple(stem for stem in judge.stems if stem.rstrip(b"=") in before)


def settle(found: Iterable[Hit]) -> list[Hit]:
    """Overlapping hits: the one that begins first, of these the longest, of equal ones the one found first (a
    shape says more than a name)."""
    kept: list[Hit] = []
    for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
        if not kept or hit.start >= kept[-1].end:
            kept.append(hit)
        elif hit.end > kept[-1].end:  # it goes on where the other one ends
            kept.append(Hit(kept[-1].end, hit.end, hit.kind, hit.open))
    return kept


def value(data: bytes, says: Says, kind: str) -> list[Hit]:
    """The credentials in the value of a header, field or parameter, of whose name `says` tells."""
    size = len(data)
    if says is Says.SECRET:
        return [] if not data or _TEMPLATE.match(data) else [Hit(0, size, kind)]
    if says is Says.AUTHORIZATION:
        start, end = _credential(data, 0, size)
        return [Hit(start, end, kind)] if end > start else []
    if says in (Says.COOKIES, Says.SET_COOKIE):
        return list(_cookies(data, 0, size, says is Says.SET_COOKIE))
    if says is Says.MAYBE and looks_secret(data):
        return [Hit(0, size, kind)]
    return []


def looks_secret(data: bytes) -> bool:
    """Whether a text looks like a credential and not like a word, a number or a sentence."""
    if len(data) < 12 or b" " in data or b"\n" in data:
        return False
    letters = any(65 <= (byte & 0xDF) <= 90 for byte in data)
    return letters and (len(data) >= 24 or any(48 <= byte <= 57 for byte in data))


# What follows a name.


def _named(data: bytes, stem: int, stem_end: int, judge: Judge, partial: bool, found: list[Hit]) -> int:
    """Looks at the name around a stem and at what follows it. Returns where to go on looking for stems."""
    end = stem_end - 1 if data[stem_end - 1] == _EQUALS else stem_end
    rest = _NAME_REST.match(data, end)
    end = end if rest is None else rest.end()
    size = len(data)
    if end >= size:
        return stem_end
    least = max(0, stem - _MOST_NAME)
    start = least + len(data[least:stem].rstrip(_NAME))
    said, name = judge.heard(data[start:end])
    if said is Says.NOTHING:
        return max(end, stem_end)
    judge.said += 1
    for hit in _after(data, start, end, said, name, partial):
        if not _TEMPLATE.match(data, hit.start, hit.end):
            found.append(hit)
        end = max(end, hit.end)
    return max(end, stem_end)


def _after_space(data: bytes, stem: int, end: int, word: bytes) -> bool:
    """Whether what follows a name may follow without a sign: `--api-key X`, `Bearer X`."""
    if word == b"bearer":
        return _SPACED.match(data, end) is not None
    return data.rfind(b"--", max(0, stem - 30), stem) >= 0 and _SPACED.match(data, end) is not None


def _after(data: bytes, start: int, end: int, says: Says, kind: str, partial: bool) -> Iterator[Hit]:
    """The credentials that follow a name at data[start:end]."""
    size = len(data)
    at = _past_quote(data, end)
    quoted = at > end
    if quoted and data[at : at + 1] == b"]":
        at += 1  # environ["NAME"] = "value"
    if quoted and data[at : at + 4] == b"\r\n\r\n" and data[max(0, start - 6) : start].endswith(b'name="'):
        stop = data.find(b"\r\n--", at + 4)
        yield Hit(at + 4, size if stop < 0 else stop, kind, partial and stop < 0)
        return
    gap = at
    while at < size and data[at] in _SPACE and at < gap + 16:
        at += 1
    sign = data[at : at + 1]
    option = data[start : start + 2] == b"--" or data[max(0, start - 2) : start] == b"--"
    if sign in (b":", b"=") and sign:
        at += 1
        if data[at : at + 1] in (b">", b"="):
            at += 1
    elif sign == b">" and at == end and data[start - 1 : start] == b"<":
        stop = data.find(b"<", at)
        yield Hit(at + 1, size if stop < 0 else stop, kind, partial and stop < 0)
        return
    elif not (at > end and not quoted and (option or kind.lower() == "bearer")):
        return
    spaced = at
    while at < size and data[at] in _SPACE and at < spaced + 8:
        at += 1
    if data[at : at + 1] in (b"b", b"f", b"r", b"u") and data[at + 1 : at + 2] in (b'"', b"'"):
        at += 1
    opened = _past_quote(data, at)
    if opened > at:
        yield from _quoted(data, at, opened, says, kind, partial)
        return
    if at >= size:
        return
    tight = sign == b"=" and spaced == at
    yield from _bare(data, start, at, says, kind, partial, tight or option)


def _past_quote(data: bytes, at: int) -> int:
    """Past a quotation mark with the backslashes before it; `at` where there is none."""
    end = at
    while data[end : end + 1] == b"\\":
        end += 1
    return end + 1 if end < len(data) and data[end] in _QUOTES else at


def _quoted(data: bytes, at: int, opened: int, says: Says, kind: str, partial: bool) -> Iterator[Hit]:
    mark, size = data[opened - 1 : opened], len(data)
    # How many backslashes the closing mark has before it: 0, 1, 3, … by the level of JSON within JSON; with more,
    # it is a part of the text.
    level = opened - 1 - at
    stop = opened
    while (stop := data.find(mark, stop, opened + _MOST_VALUE)) >= 0:
        before = stop
        while before > opened and data[before - 1] == _BACKSLASH:
            before -= 1
        if (stop - before) % (2 * level + 2) == level:
            stop = before + (stop - before) - level
            break
        stop += 1
    cut = stop < 0
    if cut:
        stop = size if partial else min(size, opened + _MOST_VALUE)
    if says is Says.AUTHORIZATION:
        start, stop_ = _credential(data, opened, stop)
        if stop_ > start:
            yield Hit(start, stop_, kind, cut and partial)
    elif says in (Says.COOKIES, Says.SET_COOKIE):
        yield from _cookies(data, opened, stop, says is Says.SET_COOKIE)
    elif says is Says.SECRET:
        if stop > opened and not _TEMPLATE.match(data, opened, stop):
            yield Hit(opened, stop, kind, cut and partial)
    elif says is Says.MAYBE and looks_secret(data[opened:stop]):
        yield Hit(opened, stop, kind, cut and partial)


def _bare(data: bytes, start: int, at: int, says: Says, kind: str, partial: bool, tight: bool) -> Iterator[Hit]:
    """A value without quotation marks: in a URL, a form, a header, a dotenv file, a log line, prose or code."""
    size = len(data)
    if says is Says.AUTHORIZATION:
        line = _LINE.match(data, at)
        if line is not None:
            first, stop = _credential(data, at, line.end())
            if stop > first and (stop - first >= 8 or first > at):
                yield Hit(first, stop, kind, partial and stop == size)
        return
    if says in (Says.COOKIES, Says.SET_COOKIE):
        line = _LINE.match(data, at)
        if line is not None:
            yield from _cookies(data, at, line.end(), says is Says.SET_COOKIE)
        return
    found = _UNQUOTED.match(data, at)
    if found is None or _TEMPLATE.match(found[0]):
        return
    text, end = found[0], found.end()
    before = data[start - 1 : start]
    parameter = tight and (before in (b"?", b"&") or data[end : end + 1] == b"&" or start == 0)
    if says is Says.QUERY:
        if parameter:
            yield Hit(at, end, kind, partial and end == size)
        return
    if not parameter:
        text = text.rstrip(b".:")
        end = at + len(text)
        if data[end : end + 1] in (b"(", b"[") or b"(" in text or b"[" in text or text.lower() in _CONSTANT:
            return
    if says is Says.MAYBE:
        accepted = parameter or looks_secret(text)
    else:
        named = data[start:at].rstrip(b" =:")
        loud = named.isupper() or b"-" in named or before in (b"", b"\n", b"\r", b"-")
        strange = not text.isalpha() and not text.isdigit() and not _IDENTIFIER.fullmatch(text)
        accepted = (
            parameter
            or (tight and (loud or len(text) >= 5))
            or (loud and len(text) >= 4)
            or (strange and len(text) >= 6)
        )
        if tight and not parameter and not loud and _IDENTIFIER.fullmatch(text) and _is_code(text, named):
            accepted = False
    if partial and end == size and says is Says.SECRET:
        accepted = True  # how it goes on decides, which comes too late
    if accepted and text:
        yield Hit(at, end, kind, partial and end == size)


_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*")


def _is_code(text: bytes, name: bytes) -> bool:
    """`password=password`, `api_key=self.key`: a variable, not a value."""
    return b"." in text or b"_" in text or text.lower() == name.lower()


def _credential(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the credential of an Authorization header is, past its scheme."""
    while start < end and data[start] in _SPACE:
        start += 1
    scheme = _SCHEME.match(data, start, end)
    if scheme is None:
        return start, end
    rest = scheme.end()
    if _TO_LINE_END.match(scheme[1]):
        return rest, end
    stop = rest
    while stop < end and data[stop] not in b" \t\r\n,;":
        stop += 1
    return rest, stop


def _cookies(data: bytes, start: int, end: int, first: bool) -> Iterator[Hit]:
    at = start
    while at < end:
        pair = _PAIR.match(data, at, end)
        if pair is None:
            return
        if len(pair[2]) >= _SHORT_COOKIE or (pair[2] and _SESSION.search(pair[1])):
            yield Hit(pair.start(2), pair.end(2), "cookie")
        if first:
            return
        stop = data.find(b";", pair.end(), end)
        if stop < 0:
            return
        at = stop + 1
