"""The world outside of the agents under test: a model and tools on loopback, and a list of all that they were asked.

Every answer has a token that was never given before (`w7-amber`), and the model's last word repeats the tokens that
it was told, each behind a `~`. So an agent's output tells which answers it heard: those of a record, new ones, or
edited ones.
"""

from __future__ import annotations

import re
import threading
from types import TracebackType
from typing import Self

import msgspec

from lockstep.conformance.scenario import Call, Says, Scenario
from lockstep.session import lanes
from lockstep.testing import Answer, Provider, Request, ToolCall

# `w`: a tool's answer; `m`: the model's own; `x`: a poisoned one; `e`: an edited one, which the world has never given.
TOKEN = re.compile(r"\b[wmex]\d+-[a-z]+\b")
_WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "kelp", "lotus", "maple")
POISON = "x"
PATIENCE = 2.0  # seconds that a call waits for others to come


class Seen(msgspec.Struct, frozen=True):
    """One request that reached the world. `answer`: the token that it was answered with, "" if it was let down."""

    kind: str
    name: str
    argument: str
    answer: str


def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a text, each once, in order."""
    return tuple(dict.fromkeys(TOKEN.findall(text)))


def heard(text: str) -> tuple[str, ...]:
    """The tokens that the model repeated in its last word: what it was told."""
    return tuple(dict.fromkeys(re.findall(rf"~({TOKEN.pattern})", text)))


def edited(token: str) -> str:
    """Another token of the same length, which the world never gives."""
    return f"e{token[1:]}"


class World:
    """The world of one scenario at a time.

    seen     what it was asked, over all acts
    overlap  how many tool calls were under way at once, at most
    """

    def __init__(self, *, in_ids: bool = False) -> None:
        """`in_ids`: where the model wants tools to be called, its token is in the ids of these calls and not in a text
        beside them."""
        self._in_ids = in_ids
        self.seen: list[Seen] = []
        self.overlap = 0
        self._provider = Provider(self._answer)
        self._lock = lanes.ours(threading.Condition)()
        self._scenario = Scenario("", ())
        self._poisoned = 0
        self._asked: dict[str, int] = {}
        self._met = True  # calls that were to come together did so
        self._number = 0
        self._under_way = 0

    @property
    def url(self) -> str:
        return self._provider.url

    def begin(self, scenario: Scenario, *, same: bool = False, poisoned: int = 0) -> None:
        """A new act: calls are counted from here.

        same      its answers are the ones of other such acts, so that two acts can be compared
        poisoned  the n-th tool call is answered with a token that begins with `x`
        """
        with self._lock:
            self._scenario, self._poisoned = scenario, poisoned
            self._asked = {}
            self._met = True
            self.overlap = 0
            if same:
                self._number = 0

    def stop(self) -> None:
        """From here on nobody answers."""
        self._provider.stop()

    def __enter__(self) -> Self:
        self._provider.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answer(self, request: Request) -> Answer:
        if request.path.startswith("/tools/"):
            # A page asks a tool that only reads by its address.
            argument = request.query["argument"] if request.method == "GET" else request.json["argument"]
            return self._tool(request.path.removeprefix("/tools/"), argument)
        if request.method == "GET":  # a browser's own: the page that asks, and its icon
            return Answer(body=b"The world.", headers=(("content-type", "text/html"),))
        return self._model(request)

    def _tool(self, name: str, argument: str) -> Answer:
        tool = self._scenario.tool(name)
        with self._lock:
            self._under_way += 1
            self.overlap = max(self.overlap, self._under_way)
            nth = self._count(name)
            poisoned = self._count("tools") + 1 == self._poisoned
            failed = nth < tool.fails
            answer = "" if failed or tool.kills else self._token(POISON if poisoned else "w")
            self.seen.append(Seen("tool", name, argument, answer))
        told: dict[str, object] = {"answer": f"found {answer} for {argument}"}
        if failed:
            told = {"error": f"{name} is not to be had"}
        elif tool.kills:
            told = {"kill": True}
        elif tool.gives == "object":
            told["object"] = True
        threading.Event().wait(tool.delay)
        with self._lock:
            self._meet(name, nth, tool.meets)
            self._under_way -= 1
        return Answer(body=msgspec.json.encode(told), headers=(("content-type", "application/json"),))

    def _meet(self, name: str, nth: int, calls: int) -> None:
        """Waits until so many calls have come, and all that came after this one are answered."""
        if 1 < calls > nth and self._met:
            self._met = self._lock.wait_for(lambda: self._asked[name] >= calls, PATIENCE)
            self._lock.wait_for(lambda: not self._met or self._under_way <= nth + 1, PATIENCE)
        self._lock.notify_all()

    def _model(self, request: Request) -> Answer:
        turn = _turns(request.json)
        told = tokens(request.body.decode())
        if turn >= len(self._scenario.says):
            return Answer(f"the scenario has no turn {turn}", status=400)
        says = self._scenario.says[turn]
        with self._lock:
            failed = says.status >= 400 or self._count(f"turn {turn}") < says.fails
            answer = "" if failed else self._token("m")
            self.seen.append(Seen("model", "model", f"turn {turn}", answer))
        if failed:
            return Answer("not now", status=max(500, says.status) if says.status == 200 else says.status)
        return _said(says, answer, told, in_ids=self._in_ids)

    def _count(self, what: str) -> int:
        """How often this came in the act so far."""
        nth = self._asked.get(what, 0)
        self._asked[what] = nth + 1
        return nth

    def _token(self, mark: str) -> str:
        self._number += 1
        return f"{mark}{self._number}-{_WORDS[self._number % len(_WORDS)]}"


def _said(says: Says, answer: str, told: tuple[str, ...], *, in_ids: bool) -> Answer:
    if says.calls and in_ids:
        return Answer(calls=tuple(_wanted(call, told, f"call-{answer}-{n}") for n, call in enumerate(says.calls)))
    if says.calls:
        return Answer(f"I look: {answer}", calls=tuple(_wanted(call, told) for call in says.calls))
    repeated = "".join(f" ~{token}" for token in told)
    return Answer(f"I heard{repeated} and say {answer} ", cut=says.cut)


def _wanted(call: Call, told: tuple[str, ...], id: str = "") -> ToolCall:
    given = call.argument.replace("{last}", f"~{told[-1]}" if told else "nothing")
    return ToolCall(call.tool, {"argument": given}, id)


def _turns(body: object) -> int:
    """How often the model has spoken before this request, in any of the model APIs."""
    if not isinstance(body, dict):
        return 0
    items = body.get("messages", body.get("input", []))
    turns, spoke = 0, False
    for item in items if isinstance(items, list) else []:
        speaks = isinstance(item, dict) and (item.get("role") == "assistant" or item.get("type") == "function_call")
        turns += speaks and not spoke
        spoke = speaks
    return turns
