"""Whether a run is bad: by how it ended, by a command that is asked, or by a function.

All answer bad, good, or skip: nothing can be said. A probe that an error of ours or a signal ended (a refused call, a
divergence in its served part, a kill) is always skipped, and nobody is asked about it: that it crashed does not make
it bad. Nor is anybody asked about one that raised, where the recorded run did not: who looks for a wrong word in what
a run printed takes each crash for good, and who misses a right one takes it for bad.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.debugger import words
from lockstep.debugger.search import BAD, GOOD, SKIP, Judged
from lockstep.debugger.view import DIVERGED, View, ended_by_itself
from lockstep.errors import Code, TargetError
from lockstep.log.model import RunState

_UNDECIDED = 125  # of `git bisect run`
_SHELL = frozenset({"!", "{", "(", "[", "if", "for", "while", "case", "cd", "exit", "set", ".", ":", "exec", "export"})
_NOT_RUN = (126, 127)  # what a shell says of a command that it could not run


REFUSED = "a call was refused"  # of a probe of which no more is known


class Judgement(msgspec.Struct, frozen=True):
    """What a predicate said, and why in a few words."""

    judged: Judged
    why: str


type Predicate = Callable[[View], Judgement]


def like(recorded: View) -> Predicate:
    """Bad: ends like the recorded run, with the same exit status and, after an exception, the same type raised in the
    same function. Good: ends well. Anything else is another failure, which says nothing about this one.

    Exit statuses count where both have one: a target in process has none.
    """

    def judge(seen: View) -> Judgement:
        if ended_well(seen):
            return Judgement(GOOD, how(seen))
        exits = None in (seen.exit, recorded.exit) or seen.exit == recorded.exit
        if exits and _alike(seen, recorded):
            return Judgement(BAD, how(seen))
        return Judgement(SKIP, f"it ended in another way: {how(seen)}")

    return judge


def ended_well(seen: View) -> bool:
    return seen.exit == 0 if seen.exit is not None else seen.state == RunState.COMPLETE


def but_crashes(asked: Predicate, recorded: View, *ended: View) -> Predicate:
    """As `asked`, but where the recorded run did not crash, a run that did is skipped.

    ended  other runs whose end is known for one: what raises as they did is no crash
    """

    def judge(seen: View) -> Judgement:
        if _crashed(seen) and not any(_alike(seen, one) for one in ended):
            return Judgement(SKIP, f"it crashed, and the recorded run did not: {how(seen)}")
        return asked(seen)

    return asked if _crashed(recorded) else judge


def _crashed(seen: View) -> bool:
    """Whether it ended by an exception that nobody caught. A program that says how to exit has come to its end."""
    return seen.error is not None and seen.error.type != "builtins.SystemExit"


def _alike(seen: View, recorded: View) -> bool:
    """Whether both raised the same, in the same function. What a script defines is `__main__`'s, and its module's where
    that is imported as a target."""
    one, other = seen.error, recorded.error
    if one is None or other is None:
        return one is other
    same = one.type == other.type
    if not same and "__main__" in (one.type.partition(".")[0], other.type.partition(".")[0]):
        same = one.type.rpartition(".")[2] == other.type.rpartition(".")[2]
    return same and one.function == other.function


def command(text: str, store: str, *, stdout: int | None = None) -> Predicate:
    """Asks a command, by the convention of `git bisect run`: 0 is good, 125 skip, any other status up to 127 bad.

    text    as for a shell; it is run in the present directory with LOCKSTEP_RUN, the address of what to judge, and
            LOCKSTEP_STORE
    stdout  file descriptor for its stdout; None leaves ours

    Raises TargetError LS406 where it cannot be run, and when asked, where it was killed or ended with a status above
    127: the search stops there, since that says nothing about the run.
    """
    first = _first(text)
    if not _there(first):
        raise TargetError(Code.NO_PREDICATE, f"--bad {text!r} cannot be run: there is no command {first!r}")

    def judge(seen: View) -> Judgement:
        environment = {**os.environ, "LOCKSTEP_RUN": seen.address, "LOCKSTEP_STORE": store}
        sys.stdout.flush()
        done = subprocess.run(text, shell=True, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, check=False)
        status = done.returncode
        if status < 0 or status > 127:
            signal = status if status < 0 else 128 - status
            raise TargetError(
                Code.NO_PREDICATE,
                f"--bad {text!r} did not judge {seen.address}: it was {words.ended(signal)}. "
                "The probes made so far are kept",
            )
        if status in _NOT_RUN and not _there(first):
            raise TargetError(Code.NO_PREDICATE, f"--bad {text!r} cannot be run: it ended with {status}")
        if status == _UNDECIDED:
            return Judgement(SKIP, f"--bad could not say ({words.ended(status)})")
        return Judgement(BAD if status else GOOD, f"--bad said {'bad' if status else 'good'} ({words.ended(status)})")

    return judge


def _first(text: str) -> str:
    try:
        found = shlex.split(text)
    except ValueError:
        return ""
    # Variables that are set for it stand before the command.
    return next((word for word in found if "=" not in word or word.startswith("=")), "")


def _there(word: str) -> bool:
    """Whether there is such a command; of the shell's own words only the shell can say."""
    return bool(word) and (word in _SHELL or word[0] in "($!{" or shutil.which(word) is not None)


def asked(function: Callable[[View], Any]) -> Predicate:
    """Asks a function of the view: True is bad, False good, None skip. What it raises stops the search."""

    def judge(seen: View) -> Judgement:
        answer = function(seen)
        if answer is None:
            return Judgement(SKIP, "the predicate could not say")
        if not isinstance(answer, bool):
            raise TargetError(
                Code.NO_PREDICATE,
                f"the predicate answered {answer!r} for {seen.address}: True is bad, False good, None cannot say",
            )
        return Judgement(BAD if answer else GOOD, f"the predicate said {'bad' if answer else 'good'}")

    return judge


def of_probe(predicate: Predicate, seen: View, refused: tuple[str, ...] = (), difference: str = "") -> Judgement:
    """Judges a probe: what did not come to an end of its own is skipped."""
    if ended_by_itself(seen):
        return predicate(seen)
    if seen.state == RunState.REFUSED:
        return Judgement(SKIP, f"refused: {_briefly(refused[0])}" if refused else REFUSED)
    if seen.state == DIVERGED:
        return Judgement(SKIP, f"its served part diverged{': ' if difference else ''}{difference}")
    if seen.exit is not None and seen.exit < 0:
        return Judgement(SKIP, words.ended(seen.exit))
    return Judgement(SKIP, f"it is {seen.state}")


def _briefly(refusal: str) -> str:
    """The call, and the reason where it is no matter of the policy."""
    call, *more = refusal.splitlines()
    return f"{call} {more[0]}" if more and more[0].startswith("and ") else call


def how(seen: View) -> str:
    """How a run ended: `exit 1, ValueError: no such order in pay`."""
    status = words.ended(seen.exit) if seen.exit is not None else seen.state
    if seen.error is None:
        return status
    return f"{status}, {seen.error}" + (f" in {seen.error.function}" if seen.error.function else "")
