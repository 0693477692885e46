"""Credentials that are known by their shape, wherever they stand: API keys of the big providers and the like.

A pattern is tried where a long run of letters has its beginning: text without such runs costs two passes in C.
 Sources:
the providers' own documentation and the rule lists of gitleaks and detect-secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

# kind, literal beginnings, pattern. Those with no long run of letters, digits, "-" and "_" are below.
_TABLE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("anthropic-key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", ("sk-",), r"sk-(?:proj-|svcacct-|admin-|or-v1-|lf-)?(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"),
    ("stripe-key", ("sk_live", "sk_test", "rk_live", "rk_test"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("webhook-secret", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("aws-key-id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"A[KSBC][IC]A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google-key", ("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    ("google-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{16,}"),
    ("google-token", ("ya29.",), r"ya29\.[A-Za-z0-9_.-]{16,}"),
    ("hf-token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{20,}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9_]{20,}"),
    ("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    ("gitlab-token", ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"), r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_.-]{16,}"),
    ("slack-token", ("xox", "xapp-"), r"(?:xox[abeoprsc]|xapp)-[A-Za-z0-9-]{10,}"),
    ("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    (
        "jwt",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ),
    ("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-token", ("pypi-",), r"pypi-[A-Za-z0-9_-]{40,}"),
    ("sendgrid-key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun-key", ("key-",), r"key-[0-9a-f]{32}(?![0-9a-zA-Z])"),
    ("twilio-key", ("SK",), r"SK[0-9a-f]{32}(?![0-9a-zA-Z])"),
    ("groq-key", ("gsk_",), r"gsk_[A-Za-z0-9]{30,}"),
    ("xai-key", ("xai-",), r"xai-[A-Za-z0-9]{30,}"),
    ("perplexity-key", ("pplx-",), r"pplx-[A-Za-z0-9]{30,}"),
    ("replicate-token", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    ("tavily-key", ("tvly-",), r"tvly-[A-Za-z0-9_-]{16,}"),
    ("pinecone-key", ("pcsk_",), r"pcsk_[A-Za-z0-9_]{30,}"),
    ("langsmith-key", ("lsv2_",), r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}"),
    ("vault-token", ("hvs.", "hvb."), r"hv[sb]\.[A-Za-z0-9_-]{20,}"),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[0-9a-f]{40,}"),
    ("databricks-token", ("dapi",), r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("linear-key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{30,}"),
    ("notion-token", ("ntn_",), r"ntn_[A-Za-z0-9]{30,}"),
    ("atlassian-token", ("ATATT3",), r"ATATT3[A-Za-z0-9_=-]{50,}"),
    ("sentry-token", ("sntrys_", "sntryu_"), r"sntry[su]_[A-Za-z0-9+/=_-]{30,}"),
    ("grafana-token", ("glsa_", "glc_"), r"gl(?:sa|c)_[A-Za-z0-9+/=_-]{30,}"),
    ("postman-key", ("PMAK-",), r"PMAK-[0-9a-f-]{30,}"),
    ("docker-token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    ("newrelic-key", ("NRAK-",), r"NRAK-[A-Z0-9]{20,}"),
    ("rubygems-key", ("rubygems_",), r"rubygems_[0-9a-f]{40,}"),
    ("planetscale-token", ("pscale_",), r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.-]{30,}"),
    ("supabase-token", ("sbp_",), r"sbp_[0-9a-f]{40}"),
    ("age-key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("brevo-key", ("xkeysib-",), r"xkeysib-[0-9a-f]{40,}[A-Za-z0-9-]*"),
    ("onepassword-token", ("ops_eyJ",), r"ops_eyJ[A-Za-z0-9_-]{40,}"),
    ("discord-token", (), r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_-])"),
    ("telegram-token", (), r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
)

# A run of a token's alphabet as long as this is in every token above; prose and most JSON has none.
RUN = 20
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_TRANSLATION = bytes(97 if byte in _ALPHABET else 32 for byte in range(256))
_LONG = b"a" * RUN
_FIRST = 3
_WINDOW = 2000

# By their first three characters. Compiled when one is met: all of them would take 4 ms at the program's start.
_BEGINNING: dict[bytes, list[tuple[str, bytes]]] = {}
for _kind, _starts, _pattern in _TABLE:
    for _start in _starts:
        # A literal of two characters: any third.
        for _third in ("",) if len(_start) >= _FIRST else "0123456789abcdef":
            _BEGINNING.setdefault((_start + _third)[:_FIRST].encode(), []).append((_kind, _pattern.encode()))
# Their long run comes after a dot or colon that is a part of them, or they have no beginning of their own.
_BEHIND = {
    start: [(kind, pattern.encode()) for kind, starts, pattern in _TABLE if start.decode() in starts]
    for start in (b"SG.", b"ya29.", b"hvs.", b"hvb.")
}
_PATTERNS = {kind: pattern.encode() for kind, _, pattern in _TABLE}

_IN_TOKENS = _ALPHABET + b"."
_STARTS: dict[bytes, list[bytes]] = {}
for _, _starts, _ in _TABLE:
    for _start in _starts:
        if len(_start) >= _FIRST:
            _STARTS.setdefault(_start[:_FIRST].encode(), []).append(_start.encode())
_BACKSLASH, _PERCENT, _COLON, _DOT = b"\\%:."
_BEFORE = frozenset((_BACKSLASH, _PERCENT, _COLON, _DOT))


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def find(data: bytes) -> Iterator[tuple[int, int, str]]:
    """(start, end, kind) of each token, in order."""
    spread = data.translate(_TRANSLATION)
    at, size = 0, len(data)
    while at < size:
        # In windows: for a long text each search would first prepare its tables again.
        run = spread.find(_LONG, at, at + _WINDOW)
        if run < 0:
            at += _WINDOW - RUN + 1
            continue
        end = spread.find(b" ", run)
        if end < 0:
            end = size
        found = _token(data, run, end)
        if found is not None:
            yield found
            end = max(end, found[1])
        at = end


def _token(data: bytes, at: int, end: int) -> tuple[int, int, str] | None:
    """The token of the run of letters at `at`, if it is one or a part of one."""
    candidates = _BEGINNING.get(data[at : at + _FIRST])
    if candidates is not None:
        for kind, pattern in candidates:
            if found := _compiled(pattern).match(data, at):
                return at, found.end(), kind
    before = data[at - 1] if at else 0
    if before in _BEFORE:
        return _behind(data, at, end, before)
    if (
        end < len(data)
        and data[end] == _DOT
        and data[at] in b"MNO"
        and (found := _compiled(_PATTERNS["discord-token"]).match(data, at))
    ):
        return at, found.end(), "discord-token"
    return None


def _behind(data: bytes, at: int, end: int, before: int) -> tuple[int, int, str] | None:
    """The token that begins a little before or behind the begin of a run."""
    if before == _BACKSLASH:  # an escape in a JSON or Python string: \n, \u0026
        return (_token(data, at + 1, end) or _token(data, at + 5, end)) if end - at > RUN else None
    if before == _PERCENT:
        return _token(data, at + 2, end)
    if before == _COLON:
        found = (
            _compiled(rb"(?<![0-9])" + _PATTERNS["telegram-token"]).search(data, max(0, at - 11), end)
            if data[at : at + 2] == b"AA"
            else None
        )
        return (found.start(), found.end(), "telegram-token") if found is not None else None
    for start, candidates in _BEHIND.items():
        if data.endswith(start, 0, at):
            for kind, pattern in candidates:
                if found := _compiled(pattern).match(data, at - len(start)):
                    return found.start(), found.end(), kind
    return None


def begun(data: bytes) -> int | None:
    """Where a token begins that the end of this text may have cut off, told by its literal beginning and two
    characters more; None if there is none."""
    start = len(data.rstrip(_IN_TOKENS))
    tail = data[start : start + 40]
    starts = _STARTS.get(tail[:_FIRST])
    if starts is not None and any(tail.startswith(each) and len(tail) >= len(each) + 2 for each in starts):
        return start
    return None
