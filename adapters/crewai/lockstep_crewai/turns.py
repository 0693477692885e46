"""Turns: what a user has a wrapped crew, agent or flow do, from its beginning to its end.

A turn is one kickoff of what is wrapped, or one `replay` of a crew. What comes of that on the way is part of it:
`kickoff_async` runs `kickoff` in a thread, `kickoff_for_each` kicks off a copy for each input, a flow's method kicks
off a crew.

A crew or flow that streams (`stream=True`) runs where its reader begins to read, in a thread or task of its own, and is
kicked off a second time there: that is the turn then.
"""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Self

import msgspec
from crewai import Agent, Crew
from crewai.flow.runtime import Flow
from crewai.lite_agent import LiteAgent
from crewai.utilities.agent_utils import is_inside_event_loop

from lockstep.errors import Stop
from lockstep.log.model import Value
from lockstep.session import current as sessions
from lockstep.session import snapshot
from lockstep.session.native import answers
from lockstep_crewai import canonical, given, insession, keeping, naming, wrapping
from lockstep_crewai.current import Scope, at, scope
from lockstep_crewai.executors import is_internal
from lockstep_crewai.layout import AGENT, ANSWER, ANSWERED, INPUT, INPUTS, OUTPUT, Moment
from lockstep_crewai.seams import Asked
from lockstep_crewai.wrapping import Root

log = logging.getLogger("lockstep")

_ONCE = ("kickoff", "kickoff_async", "akickoff")
_EACH = ("kickoff_for_each", "kickoff_for_each_async", "akickoff_for_each")
_RESUME = ("resume", "resume_async")
_REPLAY = ("replay",)  # CrewAI's own: from a task of the last kickoff on, with what those before it gave then
# What a crew has beside these: it kicks off copies to look at them.
_UNRECORDED = ("train", "test")
# By class: its methods that begin a turn.
_ENTRIES: Mapping[type, tuple[str, ...]] = {
    Crew: (*_ONCE, *_EACH, *_REPLAY), Agent: _ONCE, LiteAgent: _ONCE, Flow: (*_ONCE, *_RESUME),
}  # fmt: skip

STREAM, UNMADE, PENDING, FILES = "stream", "unmade", "pending", "files"
BESIDE = frozenset({STREAM, UNMADE, PENDING, FILES})  # of a request: what is no argument


def install() -> None:
    """Puts the seams into CrewAI's classes, once."""
    for cls in _ENTRIES:
        wrap(cls)


def wrap(cls: type) -> None:
    """Puts them into a class of the user's too, where it has methods of its own that begin a turn."""
    for base in cls.__mro__:
        for of, entries in _ENTRIES.items():
            if issubclass(base, of):
                for entry in entries:
                    _replace(base, entry, _async if inspect.iscoroutinefunction(base.__dict__.get(entry)) else _sync)
        if issubclass(base, Crew):
            _replace(base, "copy", _copy)
            for name in _UNRECORDED:
                _replace(base, name, _unrecorded)


def _unrecorded(name: str, plain: Any) -> Any:
    @wraps(plain)
    def beside(self: Any, *args: Any, **options: Any) -> Any:
        root = wrapping.root_of(self)
        if root is not None and scope.get() is None:
            log.warning("lockstep does not record %s() of a crew, only kickoffs and replay(): %s", name, root.name)
        return plain(self, *args, **options)

    return beside


def _replace(cls: type, name: str, make: Callable[[str, Any], Any]) -> None:
    plain = cls.__dict__.get(name)
    if inspect.isfunction(plain) and not hasattr(plain, "lockstep_plain"):
        made = make(name, plain)
        made.lockstep_plain = plain
        setattr(cls, name, made)


def _sync(entry: str, plain: Any) -> Any:
    @wraps(plain)
    def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        entered = _entered(self, entry, plain, args, options)
        if entered is None:
            return plain(self, *args, **options)
        with entered:
            return entered.gives(plain(self, *args, **options))
        return None  # its reader is told by the replay that it was stopped

    return kickoff


def _async(entry: str, plain: Any) -> Any:
    @wraps(plain)
    async def kickoff(self: Any, *args: Any, **options: Any) -> Any:
        entered = _entered(self, entry, plain, args, options)
        if entered is None:
            return await plain(self, *args, **options)
        with entered:
            return entered.gives(await plain(self, *args, **options))
        return None  # likewise

    return kickoff


def _copy(name: str, plain: Any) -> Any:
    @wraps(plain)
    def copy(self: Any, *args: Any, **options: Any) -> Any:
        made = plain(self, *args, **options)
        here = scope.get()
        if here is not None and here.each is not None and here.of == id(self):
            number = next(here.each)
            lane = naming.input_lane(here.lane, number)
            wrapping.keep_copy(made, Scope(root=here.root, lane=lane, steps=lane, of=id(made), number=number))
        return made

    return copy


type _Entered = "Turn | Part"


def _entered(target: Any, entry: str, plain: Any, args: Any, options: Any) -> _Entered | None:
    """What a kickoff is: a turn, or a part of the one that is on. None for what is neither: it goes on as it would."""
    here = scope.get()
    if here is not None and (here.of == id(target) or answers.within.get() is not None):
        return None
    if isinstance(target, Flow) and is_internal(type(target)):
        return None
    if isinstance(target, Agent) and entry == "kickoff" and is_inside_event_loop():
        return None  # it gives a coroutine of `kickoff_async`
    if entry in _EACH:
        return _turn(target, entry, plain, args, options) if here is None else _inner(target, here, entry)
    if entry in _ONCE and getattr(target, "stream", False) and not isinstance(target, (Agent, LiteAgent)):
        root = wrapping.root_of(target)
        if root is not None and here is None and _restores(target, plain, args, options):
            lost = RuntimeError("a stream of a crew that goes on from a native checkpoint is not recorded")
            root.seams.told.fault(f"a kickoff of {root.name}", lost)
        wrapping.mark_stream(target)
        return None
    copied = wrapping.copied(target)
    if copied is not None and copied.root.on:
        return Part(target, copied)
    return _turn(target, entry, plain, args, options) if here is None else _inner(target, here, entry)


def _arguments(target: Any, plain: Any, args: Any, options: Any) -> dict[str, Any]:
    """The arguments of a kickoff by name, what is kicked off first. Raises TypeError where it takes no such."""
    return dict(inspect.signature(plain).bind(target, *args, **options).arguments)


def _restores(target: Any, plain: Any, args: Any, options: Any) -> bool:
    """Whether a kickoff goes on from a native checkpoint: CrewAI makes another crew of that, and kicks it off."""
    try:
        config = _arguments(target, plain, args, options).get(given.CHECKPOINT)
    except TypeError:
        return False
    return getattr(config, "restore_from", None) is not None


def _inner(target: Any, here: Scope, entry: str) -> Part:
    if here.restores and type(target) is type(here.root.target):
        return Part(target, msgspec.structs.replace(here, of=id(target), restores=False))
    lane = here.root.names.lane(here.lane, wrapping.name_of(target))
    return Part(target, _of(here.root, lane, target, entry))


def _of(root: Root, lane: str, target: Any, entry: str) -> Scope:
    each = itertools.count(1) if entry in _EACH else None
    return Scope(root=root, lane=lane, steps=lane, of=id(target), each=each)


def _turn(target: Any, entry: str, plain: Any, args: Any, options: Any) -> Turn | None:
    root = wrapping.root_of(target) or insession.root_for(target)
    if root is None:
        return None
    turn = Turn(root, target, entry, plain, args, options)
    if not root.begin():
        if root.pending is None:
            busy = RuntimeError("another one is on, and what two of them do at once is not told apart")
            root.seams.told.fault(f"a kickoff of {root.name}", busy)
            return None
        root.pending.give_up()
        root.begin()
    return turn


class Part:
    """A kickoff that is a part of a turn: of an input, or in a task or method."""

    def __init__(self, target: Any, inside: Scope) -> None:
        self._target = target
        self._scope = inside
        self._at: AbstractContextManager[None] = at(inside)
        self._result: Any = None

    def gives(self, result: Any) -> Any:
        """Returns what the kickoff returns."""
        self._result = result
        return result

    def __enter__(self) -> Self:
        self._at.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._at.__exit__(None, None, None)
        pending = self._scope.root.pending
        if pending is not None and self._scope.number:
            pending.input_over(self._scope.number, self._result, error)
        return isinstance(error, Stop) and wrapping.is_stream(self._target)


class Turn:
    """One turn: tells of its beginning and its end."""

    def __init__(self, root: Root, target: Any, entry: str, plain: Any, args: Any, options: Any) -> None:
        self._root = root
        self._target = target
        self._entry = entry
        self._given = (plain, args, options)
        restores = _restores(target, plain, args, options)
        self._scope = msgspec.structs.replace(_of(root, root.lane, target, entry), restores=restores)
        self._at: AbstractContextManager[None] = at(self._scope)
        self._result: Any = None
        self._left: dict[int, Any] = {}  # of a `kickoff_for_each` that streams: results, by number of the input
        self._count = 0

    def __enter__(self) -> Self:
        root = self._root
        try:
            asked = self._asked()
            inputs = {INPUTS: {name: value for name, value in asked.request.items() if name not in BESIDE}}
            before = Moment(lane=root.lane, name=INPUT, source=INPUT, channels=inputs, of=self._target)
            root.turns += 1
            root.seams.told.begins(asked, before)
        except BaseException:
            root.end()
            raise
        self._at.__enter__()
        return self

    def gives(self, result: Any) -> Any:
        """Returns what the kickoff returns: for an agent's answer what somebody has put in its place."""
        self._result = result
        if self._root.kind == wrapping.AGENT:
            self._result = self._answered(result)
        return self._result

    def _answered(self, result: Any) -> Any:
        lane, told = self._root.lane, self._root.seams.told
        try:
            channels: dict[str, Value] = {OUTPUT: canonical.output(result), AGENT: str(self._target.role)}
            moment = Moment(
                lane=lane, name=naming.of_agent(self._target), source=ANSWERED, kind=ANSWER, channels=channels,
                payload=result, of=self._target,
            )  # fmt: skip
        except Exception as error:
            told.fault(f"the step {lane}", error)
            return result
        replaced = told.step(moment)
        return result if replaced is None else replaced.payload

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._at.__exit__(None, None, None)
        root = self._root
        if error is None and self._streams_each():
            self._count = next(self._scope.each) - 1 if self._scope.each is not None else 0
            if self._count:
                root.pending = self
                return False
            self._result = []
        self._ends(error)
        return isinstance(error, Stop) and wrapping.is_stream(self._target)

    def _ends(self, error: BaseException | None) -> None:
        root = self._root
        root.pending = None
        try:
            if not root.seams.again and sessions.session is None and isinstance(error, Exception | None):
                keeping.settle()
            if error is None:
                root.seams.told.ends(self._told_result())
            else:
                root.seams.told.fails(error)
        finally:
            root.end()

    def _told_result(self) -> Value:
        try:
            return canonical.result(self._result)
        except Exception as error:
            self._root.seams.told.fault("what a kickoff returned", error)
            return None

    # Of a `kickoff_for_each` whose inputs' answers are streamed.

    def _streams_each(self) -> bool:
        return self._entry in _EACH and bool(getattr(self._target, "stream", False))

    def input_over(self, number: int, result: Any, error: BaseException | None) -> None:
        """An input's kickoff is over, which its reader has had run. With the last of them, the turn is."""
        if error is not None:
            self._ends(error)
            return
        self._left[number] = result
        if len(self._left) == self._count:
            self._result = [self._left[number] for number in sorted(self._left)]
            self._ends(None)

    def give_up(self) -> None:
        """Some input's answer was never read."""
        self._ends(GeneratorExit())

    def _pending(self) -> Value:
        """Where a flow that was paused is resumed: what it has been restored with (`from_pending`). None of one that
        has paused here, since it pauses again where that is done again."""
        waits = getattr(self._target, "_pending_feedback_context", None) if self._entry in _RESUME else None
        if waits is None or self._root.turns:
            return None
        return {
            "state": canonical.inert(self._target._copy_and_serialize_state()),
            "context": canonical.inert(waits.to_dict()),
        }

    def _asked(self) -> Asked:
        try:
            arguments = _arguments(self._target, *self._given)
        except TypeError as error:  # what CrewAI itself will refuse
            self._root.seams.told.fault("what a turn is given", error)
            return Asked(entry=self._entry, request={})
        request: dict[str, Value] = {}
        unmade: list[Value] = []
        files: list[Value] = []
        for name, value in list(arguments.items())[1:]:
            if value is None:
                continue
            try:
                told = _data(name, value, files)
            except Exception:  # of a file that is not there, or of what reads one
                unmade.append(name)
                told = canonical.inert(value)
            if told is not None:
                request[name] = told
        pending = self._pending()
        if pending is not None:
            request[PENDING] = pending
        if files:
            request[FILES] = files
        if unmade:
            request[UNMADE] = unmade
        if wrapping.is_stream(self._target) or self._streams_each():
            request[STREAM] = True
        return Asked(entry=self._entry, request=request)


def _data(name: str, value: Any, files: list[Value]) -> Value:
    """An argument as data, None for one that says nothing. `files`: where in which argument a file is. Raises where it
    cannot be made again of data."""
    if name == given.CHECKPOINT:
        return given.checkpoint(value)
    if name in (given.INPUTS, given.INPUT_FILES) and isinstance(value, Mapping):
        found = {key for key, each in value.items() if name == given.INPUT_FILES or given.is_file(each)}
        rest: Any = snapshot.to_value({key: each for key, each in value.items() if key not in found})
        files += [[name, key] for key in value if key in found]
        # In their order, which CrewAI tells the model of.
        return {key: given.file(value[key]) if key in found else rest[key] for key in value} if found else rest
    return snapshot.to_value(value)
