"""Starting a session: the store, the taps and the one active session of the process.

A run's first process begins it (`start_recording`, `start_replay`); a Python process that it starts joins
(`join_recording`, `join_replay`), and one that it forks goes on (`fork`).
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from lockstep.errors import Code, StoreError
from lockstep.log.address import MAIN
from lockstep.log.model import Kind, Value
from lockstep.log.store import Appender, RunReader
from lockstep.log.vault import Vault, is_id, new_id
from lockstep.session import current, forks, rules, ticks
from lockstep.session.forking import Forking
from lockstep.session.recording import Recording
from lockstep.session.replaying import Replaying
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets
from lockstep.session.surface import UNKNOWN, Session
from lockstep.session.tail import Plan, split
from lockstep.session.tape import Tape
from lockstep.session.writer import Late, Writer

__all__ = [
    "UNKNOWN", "Forking", "Plan", "Recording", "Replaying", "Session", "finish", "fork", "join_recording",
    "join_replay", "start_fork", "start_recording", "start_replay",
]  # fmt: skip

_urandom = os.urandom
_time_ns = time.time_ns

ROOT = "main"  # the lane of a run's first process
SUPERVISOR = "launch"  # the stream of what only the supervisor sees


def start_recording(store_path: str | None, name: str, meta: Mapping[str, Value]) -> Recording:
    """Begins to record this process as a new run, named `name` or, if that exists, `name-2`, …

    meta: what is known of the command (argv, cwd, …). Raises StoreError (LS201 to LS204).
    """
    from lockstep import taps
    from lockstep.log.store import open_store

    forks.install()
    store = open_store(store_path, create=True)
    seed = _urandom(32)
    project = rules.here()
    secrets = Secrets(rules=project.rules, vault=Vault(store.path, vault_id := new_id()), process=ROOT)
    secrets.know_environment(os.environ)
    argv = secrets.command(list(sys.argv))
    told: Any = secrets.hide(dict(meta))
    told["rules"] = rules.told(project)
    started = _time_ns()
    info = store.create_run(name, {**told, "seed": seed, "started": started, "vault": vault_id})
    appender = store.stream(info.name, ROOT)
    session = _recording(store.path, info.name, ROOT, seed, secrets, appender)
    session.effect_rules = project.effects
    current.session = session
    _begin(session, secrets.hide(taps.start(session)), argv)
    return session


def join_recording(store_path: str, run: str, process: str, image: int = 0, branch: str = MAIN) -> Recording:
    """Begins to record this process as lane `process` of a branch that another process writes.

    image: how many programs the process was before this one. Raises StoreError (LS201 to LS205).
    """
    from lockstep import taps
    from lockstep.log.store import open_store

    forks.install()
    with open_store(store_path) as store:
        meta: Any = store.run(run).meta
    vault = Vault(store_path, meta["vault"])
    secrets = Secrets(rules=rules.names(meta.get("rules")), vault=vault, process=process)
    secrets.know_environment(os.environ)
    secrets.know(vault.read()[0])
    late = _late(store_path, run, process, branch)
    session = _recording(store_path, run, process, bytes(meta["seed"]), secrets, late)
    session.effect_rules, session.branch = rules.recorded(meta.get("rules")), branch
    argv = secrets.command(list(sys.argv))
    current.session = session
    _begin(session, secrets.hide(taps.start(session)), argv, image)
    return session


def start_replay(store_path: str | None, name: str, *, speed: float = 0.0, deadline: float = 30.0) -> Replaying:
    """Begins to replay a run, or a branch of it ("refund@try-2"), in this process.

    speed     0 serves at once, 1 as recorded, 10 ten times faster
    deadline  seconds without any progress after which strands that wait for each other are told so

    Raises StoreError (LS201 to LS205), AddressError LS206.
    """
    from lockstep.log.store import open_store
    from lockstep.log.timeline import branch_of

    forks.install()
    store = open_store(store_path)
    reader = branch_of(store, name)
    if _stream(reader, ROOT) is None:
        raise StoreError(Code.NO_RUN, f"run {name} has no recorded process")
    session = _replaying(reader, ROOT, store.path, speed, deadline, *replayed(store.path, reader.meta))
    _serve(session)
    return session


def join_replay(
    store_path: str,
    run: str,
    process: str,
    branch: str = MAIN,
    *,
    speed: float = 0.0,
    deadline: float = 30.0,
    image: int = 0,
) -> Replaying | None:
    """Begins to replay lane `process` of a run in this process; None if that began with a later program than this
    one (`image`). What the recording does not have diverges, or is cut where its beginning is all there is.

    Raises StoreError (LS201 to LS205).
    """
    from lockstep.log.store import open_store

    forks.install()
    store = open_store(store_path)
    reader = store.run(run, branch)
    secrets, wrong = replayed(store.path, reader.meta, process)
    session = _replaying(reader, process, store.path, speed, deadline, secrets, wrong)
    if image < _started(session).get("image", 0):
        session.stopped = True
        store.close()
        return None
    _serve(session)
    if process not in session.processes and not _named(reader, process):
        session.never_began(process)
    return session


def fork(before: Session, process: str) -> Session | None:
    """In a forked child: begins its own session, as lane `process` of the parent's run. The taps are on already.
    Replay: None where what was recorded is the program that this process is about to become."""
    from lockstep import taps
    from lockstep.log.store import open_store

    ticks.set_here(None)
    secrets = before.secrets.forked(process)
    if isinstance(before, Recording):
        late = _late(before.store, before.run, process, before.branch)
        recording = _recording(before.store, before.run, process, before.seed, secrets, late)
        recording.branch = before.branch
        recording.took_over(before)
        recording.effect_rules = before.effect_rules
        current.session = recording
        taps.forked(recording)
        _begin(recording, before.facts, secrets.command(list(sys.argv)))
        return recording
    assert isinstance(before, Replaying)
    reader = open_store(before.store).run(before.run, before.branch)
    session = _replaying(reader, process, before.store, before.gate.speed, before.standstill.deadline, secrets)
    if _started(session).get("image", 0):
        session.stopped = True
        return None
    session.took_over(before)
    session.printer = before.printer
    current.session = session
    session.standstill.start()
    taps.forked(session)
    if before.stopped:
        session.leave()  # the fork itself was the difference, or came after it
    return session


def start_fork(
    store_path: str, run: str, plan: Plan, went_live: Callable[[str], None] | None = None, deadline: float = 30.0
) -> Forking:
    """Begins a fork in this process: serves what the plan's parent has up to the cut, then records the branch, which
    exists already.

    went_live  told when it does, before the program goes on

    Raises StoreError (LS201 to LS205).
    """
    from lockstep import taps
    from lockstep.log.store import open_store

    forks.install()
    store = open_store(store_path)
    reader = store.run(run, plan.parent)
    number = _stream(reader, ROOT)
    if number is None:
        raise StoreError(Code.NO_RUN, f"run {run} has no recorded process")
    meta: Any = reader.meta
    secrets, wrong = replayed(store.path, meta)
    reading: Any = _thread.RLock()

    def body(seq: int) -> Value:
        with reading:
            return reader.body(number, seq)

    def field(seq: int, name: str) -> Value:
        with reading:
            return reader.field(number, seq, name)

    served, beyond = split(reader.heads(number), plan.upto)
    session: Forking | None = None

    def fault(where: str, error: BaseException) -> None:
        if session is not None:
            session.fault(where, error)

    writer = Writer(store.stream(run, ROOT, branch=plan.branch), fault)
    session = Forking(
        reader.info.name, ROOT, bytes(meta["seed"]), Tape(served, body, field, plan.upto),
        lambda: Tape(beyond, body, field), plan, writer, secrets, deadline,
    )  # fmt: skip
    session.reading = reading
    session.store, session.branch, session.went_live = store.path, plan.parent, went_live
    session.effect_rules = plan.policy.rules
    if plan.policy.beside:
        from lockstep.session import beside  # probes of bisect alone have it

        session.beside = beside.read(store.path, plan.policy.beside)
    session.vault = Vault(store.path, str(meta.get("vault")))
    session.processes = frozenset(stream.process for stream in reader.streams) - {SUPERVISOR}
    argv = _started(session).get("argv")
    if isinstance(argv, list):
        secrets.follow_command(argv, list(sys.argv))
    if wrong:
        session.note("vault", wrong)
    current.session = session
    session.standstill.start()
    facts = secrets.reveal(_started(session).get("facts"))
    taps.start(session, facts if isinstance(facts, dict) else {})
    session.begin()
    return session


def replayed(store: str, told: Any, process: str = ROOT) -> tuple[Secrets, str]:
    """The secrets of a recorded run: as the environment has them now, else as the vault has. Also what is wrong
    with the vault, "" if nothing."""
    meta: dict[str, Any] = told if isinstance(told, dict) else {}
    secrets = Secrets(rules=rules.names(meta.get("rules")), process=process, replay=True)
    secrets.know_environment(os.environ)
    vault = meta.get("vault")
    values, wrong = Vault(store, str(vault)).read() if is_id(vault) else ({}, "")
    secrets.know(values)
    return secrets, wrong


def finish(session: Session, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
    """Ends the session of this process: the taps are inert again."""
    from lockstep import taps

    taps.check(session)
    report = session.finish(exit, error, result)
    taps.stop(session)
    session.adapters.clear()  # the session itself lives on in lanes of threads, until those are in another
    if current.session is session:
        current.session = None
    return report


def _recording(
    store_path: str, run: str, process: str, seed: bytes, secrets: Secrets, appender: Appender
) -> Recording:  # fmt: skip
    session: Recording | None = None

    def fault(where: str, error: BaseException) -> None:
        if session is not None:
            session.fault(where, error)

    session = Recording(run, process, seed, Writer(appender, fault), secrets)
    session.store = store_path
    secrets.fault = fault
    return session


def _late(store_path: str, run: str, process: str, branch: str) -> Late:
    from lockstep.log.store import open_store

    return Late(lambda: open_store(store_path).stream(run, process, branch=branch))


def _begin(session: Recording, facts: Any, argv: list[Value], image: int = 0) -> None:
    session.facts = facts
    body: dict[str, Value] = {
        "facts": facts, "pid": os.getpid(), "argv": argv, "clock": session.began, "image": image,
    }  # fmt: skip
    session.emit(Kind.START, session.process, session.position(), body=body, hidden=True)


def _stream(reader: RunReader, process: str) -> int | None:
    # The last: a process that became another program has one for each.
    return next((stream.id for stream in reversed(reader.streams) if stream.process == process), None)


def _replaying(
    reader: RunReader, process: str, store_path: str, speed: float, deadline: float, secrets: Secrets, wrong: str = ""
) -> Replaying:  # fmt: skip
    meta: Any = reader.meta
    stream = _stream(reader, process)
    tape = Tape((), lambda seq: None)
    if stream is not None:
        number: int = stream
        tape = Tape(
            reader.heads(number),
            lambda seq: reader.body(number, seq),
            lambda seq, name: reader.field(number, seq, name),
        )
    session = Replaying(reader.info.name, process, bytes(meta["seed"]), tape, speed, deadline, secrets)
    if stream is not None:
        reading = session.reading

        def body(seq: int) -> Value:
            with reading:
                return reader.body(number, seq)

        tape.body = body
    session.store, session.branch = store_path, reader.branch
    session.processes = frozenset(stream.process for stream in reader.streams) - {SUPERVISOR}
    argv = _started(session).get("argv")
    if isinstance(argv, list):
        secrets.follow_command(argv, list(sys.argv))
    if wrong:
        session.note("vault", wrong)
    return session


def _serve(session: Replaying) -> None:
    from lockstep import taps

    current.session = session
    session.standstill.start()
    facts = session.secrets.reveal(_started(session).get("facts"))
    taps.start(session, facts if isinstance(facts, dict) else {})


def _started(session: Replaying) -> dict[str, Any]:
    found = session.tape.body(session.tape.start_seq) if session.tape.start is not None else None
    return found if isinstance(found, dict) else {}


def _named(reader: RunReader, process: str) -> bool:
    """Whether a recorded process began one that runs as lane `process`, which left nothing itself."""
    return any(
        event.kind is Kind.LANE and event.name == process
        for stream in reader.streams
        if process.startswith(f"{stream.process}/")
        for _, event in reader.heads(stream.id)
    )
