"""Known model endpoints: tells an inference call from any other HTTP request.

The kind matters beyond display: past a fork point inference may run live, and an unknown POST may
not. So the end of a path alone is never enough (OpenAI's `/v1/threads/{id}/messages` ends like
Anthropic's endpoint): each shape also needs a sign that confirms it, a known host, a header that
the provider's SDK sends, or the keys of the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MODEL = "model"
HTTP = "http"

_PEEK = 4096  # bytes looked at on each end of a body: SDKs put the keys that count first or last

_HOSTS = (
    "api.openai.com",
    "openai.azure.com",
    "services.ai.azure.com",
    "cognitiveservices.azure.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "api.mistral.ai",
    "api.groq.com",
    "openrouter.ai",
    "api.together.xyz",
    "api.together.ai",
    "api.deepseek.com",
    "api.x.ai",
    "api.fireworks.ai",
    "api.perplexity.ai",
    "api.cerebras.ai",
    "api.moonshot.ai",
    "api.z.ai",
    "api.cohere.com",
    "api.cohere.ai",
    "api.voyageai.com",
    "integrate.api.nvidia.com",
    "router.huggingface.co",
    "models.github.ai",
    "models.inference.ai.azure.com",
    "ollama.com",
)
# A dash joins a region to Google's host name.
_KNOWN_HOST = re.compile(
    r"(?:^|[.-])(?:" + "|".join(map(re.escape, _HOSTS)) + r")$"
    r"|^bedrock-(?:runtime|mantle)[-.][a-z0-9.-]*(?:amazonaws\.com(?:\.cn)?|api\.aws)$"
)


class _Asked:
    """One request whose path looks like a model call, with the signs that may confirm it."""

    __slots__ = ("_body", "_headers", "path", "url")

    def __init__(self, url: str, path: str, headers: Sequence[Sequence[str]], body: bytes | None) -> None:
        self.url = url
        self.path = path
        self._headers = headers
        self._body = body

    def host(self) -> bool:
        authority = self.url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        return _KNOWN_HOST.search(authority.partition(":")[0].lower()) is not None

    def header(self, *names: str) -> bool:
        return any(pair[0].lower() in names for pair in self._headers)

    def keys(self, *names: bytes) -> bool:
        body = self._body
        if not body:
            return False
        ends = body if len(body) <= 2 * _PEEK else body[:_PEEK] + body[-_PEEK:]
        return all(b'"' + name + b'"' in ends for name in names)

    def under(self, *folders: str) -> bool:
        """Whether the path goes through one of these folders."""
        return any(f"/{folder}/" in self.path for folder in folders)


def _chat(asked: _Asked) -> bool:
    if asked.path.endswith("/chat/completions"):
        # the cheapest sign first: 1 µs where the others take 5
        return asked.keys(b"messages") or asked.host() or asked.header("x-stainless-lang")
    # the legacy text completion
    return asked.keys(b"prompt") and (asked.host() or asked.header("x-stainless-lang") or asked.keys(b"model"))


def _responses(asked: _Asked) -> bool:
    return asked.keys(b"model", b"input") or (asked.host() and not asked.under("threads", "assistants"))


def _embeddings(asked: _Asked) -> bool:
    # Ollama's own endpoint of this name takes a prompt
    return asked.keys(b"model", b"input") or asked.keys(b"model", b"prompt") or asked.host()


def _messages(asked: _Asked) -> bool:
    if asked.under("threads", "conversations"):
        return False
    if asked.header("anthropic-version") or asked.keys(b"model", b"messages", b"max_tokens"):
        return True
    return asked.path.endswith("/v1/messages") and asked.host() and asked.keys(b"messages")


def _chat_native(asked: _Asked) -> bool:
    return asked.keys(b"model", b"messages") and (asked.path.endswith("/api/chat") or asked.host())


def _generate_native(asked: _Asked) -> bool:
    return asked.path.endswith("/api/generate") and asked.keys(b"model")


def _embed_native(asked: _Asked) -> bool:
    return asked.keys(b"model") and (asked.path.endswith("/api/embed") or asked.host())


def _bedrock(asked: _Asked) -> bool:
    if not asked.under("model"):
        return False
    return asked.host() or asked.header("amz-sdk-invocation-id", "x-stainless-lang", "x-amz-date")


def _gemini(asked: _Asked) -> bool:
    if not asked.under("models", "tunedModels", "endpoints"):
        return False
    if asked.host() or asked.header("x-goog-api-key", "x-goog-api-client"):
        return True
    return asked.keys(b"contents") or asked.keys(b"content") or asked.keys(b"requests")


def _vertex(asked: _Asked) -> bool:
    """Models of other publishers on Vertex, in their own format."""
    return asked.under("publishers") and (asked.host() or asked.header("x-goog-api-client", "x-stainless-lang"))


def _media(asked: _Asked) -> bool:
    return asked.host() or asked.header("x-stainless-lang")


def _speech(asked: _Asked) -> bool:
    return asked.under("audio") and _media(asked)


def _images(asked: _Asked) -> bool:
    return asked.under("images") and _media(asked)


_TAILS: dict[str, Callable[[_Asked], bool]] = {
    "completions": _chat,
    "responses": _responses,
    "embeddings": _embeddings,
    "messages": _messages,
    "chat": _chat_native,
    "generate": _generate_native,
    "embed": _embed_native,
    "converse": _bedrock,
    "converse-stream": _bedrock,
    "invoke": _bedrock,
    "invoke-with-response-stream": _bedrock,
    "speech": _speech,
    "transcriptions": _speech,
    "translations": _speech,
    "generations": _images,
    "edits": _images,
    "moderations": _media,
    "rerank": _media,
}
_VERBS: dict[str, Callable[[_Asked], bool]] = {
    "generateContent": _gemini,
    "streamGenerateContent": _gemini,
    "embedContent": _gemini,
    "batchEmbedContents": _gemini,
    "countTokens": _gemini,
    "rawPredict": _vertex,
    "streamRawPredict": _vertex,
    "predict": _vertex,
}


def classify(method: str, url: str, headers: Sequence[Sequence[str]], body: bytes | None) -> str:
    """Whether a request is an inference call: "model", else "http".

    Runs in the agent's call, so it looks at the path first (all that most requests cost) and never
    parses a body. `headers` are (name, value) pairs in any case; `body` None where it is not known yet.
    """
    if method != "POST":
        return HTTP
    path = url.partition("?")[0].rstrip("/")
    tail = path[path.rfind("/") + 1 :]
    confirm = _TAILS.get(tail)
    if confirm is None:
        colon = tail.rfind(":")
        if colon < 0:
            return HTTP
        confirm = _VERBS.get(tail[colon + 1 :])
        if confirm is None:
            return HTTP
    return MODEL if confirm(_Asked(url, path, headers, body)) else HTTP
