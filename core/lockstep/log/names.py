"""Names that say that a credential follows: of headers, fields, variables, options and parameters.

Judged by their words, so that `apiKey`, `API-Key`, `x_api_key` and `OPENAI_API_KEY` are one rule. The lists
follow what detectors look for (detect-secrets' keywords, gitleaks' generic rule, Sentry's scrubber), less
what agents have in every request: `max_tokens`, `next_page_token`, `session_id`, `public_key`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable

import msgspec

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Say it wherever they stand in a name.
_SECRET = _set(
    "password passwords passwd passphrase passcode pwd secret secrets credential credentials creds apikey apikeys"
    " accesskey secretkey privatekey authtoken accesstoken refreshtoken sessiontoken clientsecret jwt"
    " phpsessid jsessionid csrftoken xsrftoken authorization userpwd"
)
# What such a word is only spoken of by.
_ABOUT = _set(
    "length policy name names arn file files path dir type types count url uri field fields label hint expiry expires"
    " expired expiration ttl age enabled required version strength rule rules format regex pattern min max provider"
    " manager id ids limit limits at in on location description title status valid error errors message prompt input"
    " changed algorithm scheme mode rotation store group size usage budget window rate index position ratio sock"
)
_ASKS = _set(
    "has is use uses num max min no allow allows require requires show with enable disable forgot reset change can"
    " supports"
)
# `token` after these is a place in a list or a piece of text.
_NO_TOKEN = _set(
    "next page continuation cursor sync previous prev start end stop eos bos pad unk mask sep cls special max min count"
    " num per first last prompt completion image audio text input output time current total cached string word sub"
    " resume delta watermark pagination marker fencing cancellation cancel change idempotency list batch stream forward"
    " backward skip query by of the reasoning thinking budget"
)
# `key` after these opens something.
_KEY_OF = _set(
    "api access secret private auth account service client encryption encrypt decryption signing sign master storage"
    " shared subscription license ssh function hmac app application consumer integration ingestion admin root deploy"
    " webhook session jwt aes rsa pgp ssl tls pem wallet role server openai anthropic google gemini mistral cohere groq"
    " azure aws huggingface hf pinecone tavily serper langsmith langchain stripe twilio sendgrid deepseek xai"
)
_NO_KEY = _set("public cache primary sort partition foreign idempotency routing")
_PLAIN = _set(
    "otp totp cvv cvc pin pincode codeverifier clientassertion samlresponse auth basicauth proxyauth httpauth xauth"
    " bearer"
)
_SIGNATURES = _set("sig signature xamzsignature xamzcredential xgoogsignature xgoogcredential")
_AUTHORIZATION = frozenset(["authorization", "proxyauthorization"])
_COOKIES = frozenset(["cookie", "cookies", "cookie2"])


# Without the few that are said by fields of data only, such as `otp`: text is not searched for these.
STEMS = (b"pass", b"secret", b"token", b"key", b"auth", b"cookie", b"pwd", b"bearer", b"signature", b"sig=")


class Says(enum.IntEnum):
    """What a name says of the value that follows it."""

    NOTHING = 0
    MAYBE = 1  # a credential if it looks like one: a field called just `token`
    QUERY = 2  # a credential in a URL or form only: `sig`
    SECRET = 3
    AUTHORIZATION = 4  # a scheme and a credential
    COOKIES = 5  # name=value; name=value
    SET_COOKIE = 6  # name=value; attributes


class Rules(msgspec.Struct, frozen=True):
    """What a project adds in `[tool.lockstep]`: names whose values are hidden, and names whose values are kept."""

    hide: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


def joined(name: str) -> str:
    """A name without case and separators."""
    return "".join(_WORDS.findall(name)).lower()


class Judge:
    """Judges names by the general rules and a project's own. Names repeat, so each is judged once."""

    def __init__(self, rules: Rules = Rules()) -> None:  # noqa: B008 - immutable
        self._hide = {joined(name) for name in rules.hide}
        self._keep = {joined(name) for name in rules.keep}
        self._judged: dict[str, Says] = {}
        self._heard: dict[bytes, tuple[Says, str]] = {}
        self.harmless: set[bytes] = set()  # names heard in texts that say nothing
        self.said = 0  # how often one was heard that says something
        # What to look for in lower-case text: every name that says something has one of these in it.
        self.stems = (*STEMS, *(name.lower().encode() for name in rules.hide))

    def says(self, name: str) -> Says:
        """What a header, field, parameter or option of this name says."""
        found = self._judged.get(name)
        if found is None:
            found = self._own(name, _field)
            if len(self._judged) < 4096 and len(name) < 200:
                self._judged[name] = found
        return found

    def heard(self, name: bytes) -> tuple[Says, str]:
        """The same for a name as it stands in a text, with its last part: of `config.api_key` that is `api_key`."""
        found = self._heard.get(name)
        if found is None:
            whole = name.decode("ascii", "replace").strip(".-")
            last = whole.rpartition(".")[2]
            found = self.says(whole) or self.says(last), last
            if len(self._heard) < 4096:
                self._heard[name] = found
                if found[0] is Says.NOTHING:
                    self.harmless.add(name)
        return found

    def variable(self, name: str) -> bool:
        """Whether an environment variable of this name holds a secret."""
        return name not in _DIRECTORIES and self._own(name, _variable) is not Says.NOTHING

    def _own(self, name: str, general: Callable[[list[str]], Says]) -> Says:
        words = [word.lower() for word in _WORDS.findall(name[:200])]
        whole = "".join(words)
        if whole in self._keep:
            return Says.NOTHING
        if whole in self._hide:
            return Says.SECRET
        return general(words)


_DIRECTORIES = ("PWD", "OLDPWD")  # a shell's


def _field(words: list[str]) -> Says:
    whole = "".join(words)
    if whole in _AUTHORIZATION:
        return Says.AUTHORIZATION
    if whole in _COOKIES:
        return Says.COOKIES
    if whole == "setcookie":
        return Says.SET_COOKIE
    if whole in _SIGNATURES:
        return Says.QUERY
    if not words or words[-1] in _ABOUT or words[0] in _ASKS:
        return Says.NOTHING
    if whole in _PLAIN or not _SECRET.isdisjoint(words):
        return Says.SECRET
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    before = words[:-1]
    if words[-1] == "token":
        if not before or before == ["x"]:
            return Says.MAYBE
        return Says.NOTHING if not _NO_TOKEN.isdisjoint(before) else Says.SECRET
    if words[-1] == "pass":
        return Says.SECRET if before else Says.MAYBE
    if words[-1] in ("key", "keys"):
        return Says.SECRET if before and before[-1] in _KEY_OF else Says.NOTHING
    return Says.NOTHING


def _variable(words: list[str]) -> Says:
    if words in (["pwd"], ["oldpwd"]):
        return Says.NOTHING  # the shell's working directory
    found = _field(words)
    if found in (Says.NOTHING, Says.QUERY) and words and words[-1] in ("key", "keys"):
        return Says.SECRET if _NO_KEY.isdisjoint(words) and len(words) > 1 else Says.NOTHING
    if found is Says.MAYBE:
        return Says.SECRET
    return found if found is not Says.QUERY else Says.NOTHING
