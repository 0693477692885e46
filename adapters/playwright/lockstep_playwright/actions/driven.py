"""Procedures of our own on Playwright's pipe that are no tasks of the program's loop: each goes on in the step of the
loop in which its answer came, so that it changes nothing in the order of the program's own tasks, and the loop need not
turn for it in the sync API.

    drive(look(page), done)      # `look` is a coroutine that awaits what is below; `done` gets what it returned

    result, error = await Ask(pipe, guid, "send", {…})
    await Pause(loop, 0.05)
    await Until(waiting, loop, 0.5)      # until somebody calls what is appended to the list `waiting`
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from lockstep.session.lanes import ours
from lockstep_playwright.actions.pipe import Message, Pipe

PATIENCE = 5.0  # seconds for one answer of a page, which may be busy


class Wait:
    """What a procedure awaits: `begin` is given what to call, once, when it may go on."""

    def begin(self, resume: Callable[[Any], None]) -> None:
        raise NotImplementedError

    def __await__(self) -> Generator[Wait, Any, Any]:
        return (yield self)


class Ask(Wait):
    """A message and its answer: (result, "") or (None, why)."""

    def __init__(self, pipe: Pipe, guid: str, method: str, params: Message, patience: float = PATIENCE) -> None:
        self._asked = pipe, guid, method, params
        self._patience = patience

    def begin(self, resume: Callable[[Any], None]) -> None:
        pipe, guid, method, params = self._asked
        once = _Once(resume)
        timer = later(pipe.loop, self._patience, lambda: once((None, "no answer")))

        def answered(result: Message | None, error: str) -> None:
            timer.cancel()
            once((result, error))

        pipe.ask(guid, method, params, answered)


class Both(Wait):
    """Several at once: what each gave."""

    def __init__(self, *waits: Wait) -> None:
        self._waits = waits

    def begin(self, resume: Callable[[Any], None]) -> None:
        found: dict[int, Any] = {}

        def came(at: int, value: Any) -> None:
            found[at] = value
            if len(found) == len(self._waits):
                resume([found[each] for each in range(len(self._waits))])

        for at, wait in enumerate(self._waits):
            wait.begin(lambda value, at=at: came(at, value))  # type: ignore[misc]


class First(Wait):
    """What a wait gives, or None where what is put into `given_up` is called before."""

    def __init__(self, wait: Wait, given_up: list[Callable[[], None]]) -> None:
        self._wait, self._given_up = wait, given_up

    def begin(self, resume: Callable[[Any], None]) -> None:
        once = _Once(resume)

        def give_up() -> None:
            once(None)

        def came(value: Any) -> None:
            if give_up in self._given_up:
                self._given_up.remove(give_up)
            once(value)

        self._given_up.append(give_up)
        self._wait.begin(came)


class Pause(Wait):
    """For some seconds."""

    def __init__(self, loop: Any, seconds: float) -> None:
        self._loop, self._seconds = loop, seconds

    def begin(self, resume: Callable[[Any], None]) -> None:
        later(self._loop, self._seconds, lambda: resume(None))


class Called(Wait):
    """Until `begin` has called what it is given."""

    def __init__(self, begin: Callable[[Callable[[], None]], object]) -> None:
        self._begin = begin

    def begin(self, resume: Callable[[Any], None]) -> None:
        self._begin(lambda: resume(None))


class Until(Wait):
    """Until what is put into `waiting` is called: True. Or until it has taken too long: False."""

    def __init__(self, waiting: list[Callable[[], None]], loop: Any, seconds: float) -> None:
        self._waiting, self._loop, self._seconds = waiting, loop, seconds

    def begin(self, resume: Callable[[Any], None]) -> None:
        once = _Once(resume)
        timer = later(self._loop, self._seconds, lambda: once(False))

        def came() -> None:
            timer.cancel()
            once(True)

        self._waiting.append(came)


class _Once:
    """A call that counts the first time."""

    def __init__(self, then: Callable[[Any], None]) -> None:
        self._then: Callable[[Any], None] | None = then

    def __call__(self, value: Any) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(value)


def drive[T](procedure: Coroutine[Wait, Any, T], done: Callable[[T | None, BaseException | None], None]) -> None:
    """Runs a procedure to its end, as its answers come."""

    def resume(value: Any) -> None:
        try:
            wait = procedure.send(value)
        except StopIteration as end:
            done(end.value, None)
        except BaseException as error:
            done(None, error)
        else:
            wait.begin(resume)

    resume(None)


@ours
def later(loop: Any, seconds: float, call: Callable[[], None]) -> Any:
    """A timer of ours."""
    return loop.call_later(seconds, call)


@ours
def settle(loop: Any, awaited: Awaitable[Any], done: Callable[[BaseException | None], None]) -> None:
    """Awaits what others gave us, in a task of ours."""

    async def wait() -> None:
        try:
            await awaited
        except BaseException as error:
            done(error)
        else:
            done(None)

    loop.create_task(wait())
