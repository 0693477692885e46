"""A model provider on loopback with the true wire formats, for tests and demonstrations.

    with Provider(script=["first answer", Answer(calls=(ToolCall("get_order", {"id": 7}),))]) as provider:
        client = OpenAI(base_url=provider.url + "/v1", api_key="any")

It speaks OpenAI's chat completions and responses and Anthropic's messages, plain and streamed, and
answers other paths as `lockstep.testing.web` says. `lockstep.testing.provider` runs one for
programs in other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from lockstep.session import lanes
from lockstep.testing import anthropic_messages, openai_chat, openai_responses, web
from lockstep.testing.answers import (
    Answer,
    Request,
    Script,
    default_answer,
    encode,
    identity,
    paced,
    scripted_answer,
)
from lockstep.testing.server import Raw, Reply, Server


class Provider:
    """The provider, from `start` to `stop`; as a context manager it does both.

    script   answers to model calls, in order of arrival, or a function of the request; what it leaves
             open gets a seeded text with a running number. A function may also answer other paths
    seed     of default texts, ids and jitter
    jitter   bounds of a random delay before each answer, in seconds
    seen     the requests so far
    """

    def __init__(
        self, script: Script = (), *, seed: int = 0, jitter: tuple[float, float] = (0.0, 0.0), port: int = 0
    ) -> None:
        self.script = script
        self.seed = seed
        self.jitter = jitter
        self.seen: list[Request] = []
        self.url = ""
        self._model_calls = 0
        # Ours, also when it is made in the middle of a session that watches the program's locks.
        self._lock = lanes.ours(threading.Lock)()
        self._server = Server(self._respond, port)

    @property
    def requests(self) -> int:
        """How many requests arrived."""
        return len(self.seen)

    @property
    def connections(self) -> int:
        """How many connections were opened."""
        return self._server.connections

    @property
    def environ(self) -> dict[str, str]:
        """The variables that point both SDKs of a child process to this provider."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "lockstep-testing",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "lockstep-testing",
        }

    def start(self) -> Self:
        self.url = f"http://127.0.0.1:{self._server.start()}"
        return self

    def stop(self) -> None:
        """Ends it; raises the first error of the script, if it had one."""
        self._server.stop()
        if self._server.errors:
            raise self._server.errors.pop(0)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception as mistake:
            if error is None:
                raise
            error.add_note(f"the provider's script failed too: {mistake!r}")

    def _respond(self, raw: Raw) -> Reply:
        with self._lock:
            request = Request(len(self.seen) + 1, raw.method, raw.target, raw.headers, raw.body, web.decoded(raw.body))
            self.seen.append(request)
        return self._reply(request)

    def _reply(self, request: Request) -> Reply:
        api = api_of(request)
        with self._lock:
            turn = self._model_calls if api else -1
            self._model_calls += bool(api)
        answer = scripted_answer(self.script, request, turn)
        if api is None and answer is None:
            timed = paced(Answer(), request, self.seed, self.jitter)
            status, headers, body = web.page(request)
            return _timed(timed, timed.status if timed.status != 200 else status, headers, body)
        answer = paced(answer or default_answer(request, self.seed), request, self.seed, self.jitter)
        if answer.body is not None or api is None:
            return _timed(answer, answer.status, answer.headers, answer.body or answer.text.encode())
        headers, body = api(answer, request, self.seed)
        return _timed(answer, answer.status, headers + answer.headers, body)


type Spoken = tuple[tuple[tuple[str, str], ...], bytes | Iterable[bytes]]
type Api = Callable[[Answer, Request, int], Spoken]


def api_of(request: Request) -> Api | None:
    """The model API that a request asks, None for other requests."""
    if request.method != "POST" or not isinstance(request.json, dict):
        return None
    return next((api for tail, api in _APIS.items() if request.path.endswith(tail)), None)


def _chat(answer: Answer, request: Request, seed: int) -> Spoken:
    return _openai(answer, request, seed, openai_chat.completion, openai_chat.stream)


def _responses(answer: Answer, request: Request, seed: int) -> Spoken:
    return _openai(answer, request, seed, openai_responses.response, openai_responses.stream)


def _openai(
    answer: Answer,
    request: Request,
    seed: int,
    plain: Callable[[Answer, Request, int], dict[str, Any]],
    stream: Callable[[Answer, Request, int], Iterable[bytes]],
) -> Spoken:
    named = ("x-request-id", identity("req_", request, seed))
    if answer.status >= 400:
        return (_JSON, named), encode(openai_chat.error(answer))
    if request.json.get("stream"):
        return (("content-type", "text/event-stream; charset=utf-8"), named), stream(answer, request, seed)
    return (_JSON, named), encode(plain(answer, request, seed))


def _messages(answer: Answer, request: Request, seed: int) -> Spoken:
    named = ("request-id", identity("req_", request, seed))
    if answer.status >= 400:
        return (_JSON, named), encode(anthropic_messages.error(answer, request, seed))
    if request.json.get("stream"):
        events = anthropic_messages.stream(answer, request, seed)
        return (("content-type", "text/event-stream; charset=utf-8"), named), events
    return (_JSON, named), encode(anthropic_messages.message(answer, request, seed))


_JSON = ("content-type", "application/json")
_APIS: dict[str, Api] = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}


def _timed(answer: Answer, status: int, headers: tuple[tuple[str, str], ...], body: bytes | Iterable[bytes]) -> Reply:
    return Reply(status, headers, body, answer.delay, answer.lag, answer.gap, answer.cut)
