"""How a subject tells what its runs came to where they are replayed and forked in process, as `Done`.

with telling.faults() as faults: …                          # recording: what its logger says meanwhile
telling.replayed(lockstep.replay(run, target), run, words)
telling.forked(telling.fork(address, target, edits=edits), words)

and `Made`, for those whose agents a function makes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import lockstep
from lockstep.conformance.subject import Done, Found, Work
from lockstep.log.model import Value

if TYPE_CHECKING:
    from lockstep.debugger.verdict import Verdict


# Of the core, by which an adapter records to a run of its framework's own: `Subject.core_hooks`.
NATIVE_HOOKS = (
    "lockstep.session.secrets:Secrets.asked",
    "lockstep.session.secrets:Secrets.hide",
    "lockstep.session.handed:Handed.end",
    "lockstep.session.native.journal:Journal.step",
    "lockstep.log.sqlite.shared:SharedStream.append",
)

type Told = Callable[[BaseException | None], str]


def raised(error: BaseException | None) -> str:
    """`Done.error` of what an agent raised."""
    return "" if error is None else f"{type(error).__name__}: {error}"


def replayed(
    replay: lockstep.Replay, run: str, outputs: Iterable[str], pieces: Iterable[str] = (), told: Told = raised
) -> Done:
    """Of a replay of a run, and what its agent said. `told`: what makes `error`, where a framework wraps exceptions."""
    return Done(
        outputs=tuple(outputs), error=told(replay.error), pieces=tuple(pieces), run=run, identical=replay.identical,
        cut=replay.report.cut, difference=replay.report.difference,
    )  # fmt: skip


def fork(address: str, target: Any, **options: Any) -> lockstep.Run:
    """`lockstep.fork`, also where a call was refused."""
    try:
        return lockstep.fork(address, target, **options)
    except lockstep.Refused as refused:
        run: lockstep.Run = refused.run
        return run


def forked(run: lockstep.Run, outputs: Iterable[str], pieces: Iterable[str] = (), told: Told = raised) -> Done:
    """Of a fork, and what its agent said."""
    return Done(
        outputs=tuple(outputs), error=told(run.error), pieces=tuple(pieces), run=run.address, state=run.state,
        difference=run.report.difference, refused=tuple(run.refused),
    )  # fmt: skip


def found(verdict: Verdict) -> Found:
    """Of a bisect."""
    return Found(verdict.verdict, verdict.step, verdict.effect, verdict.probes)


class Made:
    """Replays, forks and bisects of a subject whose agents are made by a function."""

    def make(self, work: Work, pieces: list[str]) -> Any:
        """The agent of a scenario. Texts that its model streams go to `pieces`."""
        raise NotImplementedError

    def word(self, result: Any) -> str:
        """The agent's last word: of what it gave, or of that as it is read from the record."""
        raise NotImplementedError

    def told(self, error: BaseException | None) -> str:
        """`Done.error` of what it raised."""
        return raised(error)

    def replay(self, work: Work, run: str) -> Done:
        pieces: list[str] = []
        replay = lockstep.replay(run, lambda: self.make(work, pieces), store=work.store)
        outputs = () if replay.error is not None else tuple(map(self.word, replay.results))
        return replayed(replay, run, outputs, pieces, self.told)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        pieces: list[str] = []
        run = fork(address, lambda: self.make(work, pieces), edits=edits, live=[*live], store=work.store)
        outputs = tuple(map(self.word, run.results)) if run.error is None and run.state == "complete" else ()
        return forked(run, outputs, pieces, self.told)

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        def judge(view: Any) -> bool | None:
            return bad(self.word(view.result)) if view.state == "complete" else None

        return found(lockstep.bisect(run, lambda: self.make(work, []), bad=judge, store=work.store))


@contextlib.contextmanager
def faults() -> Iterator[list[str]]:
    """What Lockstep's own logger says meanwhile: how an adapter tells its faults that records without a session."""
    told: list[str] = []

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    logger, hears = logging.getLogger("lockstep"), Hears(logging.WARNING)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(hears)
    try:
        yield told
    finally:
        logger.removeHandler(hears)
        logger.propagate = propagates
