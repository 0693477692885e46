"""The structs that an adapter is made of: data and plain functions, no behaviour of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.adapter.native import Native
from lockstep.log.model import Value

if TYPE_CHECKING:
    from types import ModuleType

    from lockstep.log.store import Store
    from lockstep.log.timeline import Place


class Versions(msgspec.Struct, frozen=True):
    """The versions of a framework that the adapter's own tests run with: the oldest and the newest, both included.

    A bound counts as far as it goes: 1.2.24 is within a newest of "1.2". Versions outside are used all the same, and
    `lockstep adapters` says so; one that lacks what the adapter needs is told by the adapter, when it attaches.
    """

    oldest: str
    newest: str


class Steps(msgspec.Struct, frozen=True):
    """What the framework's native checkpoints are in a run.

    kind  what `lockstep log` calls such a step
    what  which checkpoints these are, in a few words
    """

    kind: str
    what: str


class Way(msgspec.Struct, frozen=True):
    """One of the two ways to continue a run from a step.

    exact   whether it is exact wherever `refuses` has nothing to say; False: it is never done
    reason  where it is not: why, as the user is told
    refuses tells of one step, given as its `Place`, why it cannot be continued exactly this way; "" where it can
    begin   restoring only: `begin(place, target, edits)` hands the native checkpoint with its edits to the framework
            and gives a callable without arguments that goes on from there; None where `Adapter.native` does that. To
            re-execute, the target's program is run, and the session serves it
    """

    exact: bool
    reason: str = ""
    refuses: Callable[[Place], str] | None = None
    begin: Callable[[Place, Any, Mapping[str, Value]], Callable[[], Any]] | None = None


class Target(msgspec.Struct, frozen=True):
    """What a run of the framework is started from again: the `target` of `lockstep.replay`, `fork` and `bisect`.

    what     what that is, in a few words: "compiled graph, or module:graph"
    inputs   where its inputs come from: "recorded, per turn", or "closure"
    accepts  whether an object is one, told without importing the framework
    program  `program(target, input)` gives a callable without arguments, or a coroutine function, that runs one turn
             with its recorded input. Raises TargetError LS402 with the reason where the object is of no use, as a
             live one is where a factory is needed
    """

    what: str
    inputs: str
    accepts: Callable[[Any], bool]
    program: Callable[[Any, Value], Callable[[], Any]]


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One framework.

    name          short and lower case; also the head of its runs' names: `langgraph/<thread>`
    title         as its makers write it
    distribution  what is installed from the package index; "" for the interpreter itself
    extra         the extra of lockstep-replay that brings it, "" where there is none
    modules       its top-level packages: watched for by `instrument`, and never imported by this adapter's module
    tested        its versions that the tests run with
    instrument    zero-code attach: called with each of `modules` once the recorded or replayed program has imported
                  it, before the program goes on. None where the core's own taps are all that is needed
    in_code       whether that is done for sessions begun in code too: `with lockstep.record`, `lockstep.replay`
    begins        called as each session in code begins, where the framework is loaded by then: what that keeps in the
                  process from one run to the next is noted, and put back in a replay. None: nothing
    subject       `module:attribute` of the `lockstep.conformance.Subject` that the conformance tests run
    native        what it does with threads that the framework keeps itself, recorded without a session. None: there
                  are none
    reads         whether a file is one of the framework's, of which a run can be made, by the file's content; `imports`
                  does it: `imports(store, content, name)`, with "" for the name that the framework's own gives, returns
                  the run's name. Raises StoreError with the reason. It imports the framework; `reads` does not
    order         of several such files, by the beginning of the content: they are taken in the order of these texts
    exports       what `lockstep export --format NAME` writes of one of the framework's own runs, beside tapes and
                  lines: name -> `export(place)`, of a run, a branch or a step. Raises StoreError with the reason. Reads
                  what is stored, and imports nothing of the framework
    commands      `module:attribute` of a typer application with commands of its own: `lockstep NAME …`
    workers       how `lockstep bisect --workers WHERE` has probes made by workers of the framework's, on other
                  machines: `workers(where, store, say, again)` gives what `lockstep.debugger.elsewhere.hired` does.
                  None: there are none
    abrupt        asked by the command line when it is done: whether threads of the framework run here that would abort
                  an interpreter which is torn down, so that the process has to end without that
    """

    name: str
    title: str
    distribution: str
    tested: Versions
    steps: Steps
    restore: Way
    re_execute: Way
    target: Target
    subject: str
    extra: str = ""
    modules: tuple[str, ...] = ()
    instrument: Callable[[ModuleType], None] | None = None
    in_code: bool = False
    begins: Callable[[], None] | None = None
    native: Native | None = None
    abrupt: Callable[[], bool] | None = None
    reads: Callable[[bytes], bool] | None = None
    imports: Callable[[Store, bytes, str], str] | None = None
    order: Callable[[bytes], str] | None = None
    exports: Mapping[str, Callable[[Place], bytes]] = {}
    commands: str = ""
    workers: Callable[[Any, str, Callable[[str], None], str], Any] | None = None
