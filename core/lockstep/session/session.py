"""Starting a session: the store, the taps and the one active session of the process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from lockstep.errors import Code, StoreError
from lockstep.log.model import Kind, Value
from lockstep.log.names import Rules
from lockstep.log.vault import Vault, is_id, new_id
from lockstep.session import current, forks, rules
from lockstep.session.recording import Recording
from lockstep.session.replaying import Replaying
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets
from lockstep.session.surface import UNKNOWN, Session
from lockstep.session.tape import Tape
from lockstep.session.writer import Writer

__all__ = ["UNKNOWN", "Recording", "Replaying", "Session", "finish", "start_recording", "start_replay"]

_urandom = os.urandom
_time_ns = time.time_ns

ROOT = "main"  # the lane of a run's first process


def start_recording(store_path: str | None, name: str, meta: Mapping[str, Value]) -> Recording:
    """Begins to record this process as a new run, named `name` or, if that exists, `name-2`, …

    meta: what is known of the command (argv, cwd, …). Raises StoreError (LS201 to LS204).
    """
    from lockstep import taps
    from lockstep.log.store import open_store

    forks.install()
    store = open_store(store_path, create=True)
    seed = _urandom(32)
    secrets = Secrets(rules=rules.here().rules, vault=Vault(store.path, vault_id := new_id()), process=ROOT)
    secrets.know_environment(os.environ)
    argv = secrets.command(list(sys.argv))
    told: Any = secrets.hide(dict(meta))
    told["rules"] = {"hide": [*secrets.rules.hide], "keep": [*secrets.rules.keep]}
    started = _time_ns()
    info = store.create_run(name, {**told, "seed": seed, "started": started, "vault": vault_id})
    session: Recording | None = None

    def fault(where: str, error: BaseException) -> None:
        if session is not None:
            session.fault(where, error)

    writer = Writer(store.stream(info.name, ROOT), fault)
    session = Recording(info.name, ROOT, seed, writer, secrets)
    session.store = store.path
    secrets.fault = fault
    current.session = session
    facts = session.secrets.hide(taps.start(session))
    body: dict[str, Value] = {"facts": facts, "pid": os.getpid(), "argv": argv}
    session.emit(Kind.START, ROOT, session.position(), body=body, hidden=True)
    return session


def start_replay(store_path: str | None, name: str, speed: float = 0.0, deadline: float = 30.0) -> Replaying:
    """Begins to replay run `name` in this process.

    speed     0 serves at once, 1 as recorded, 10 ten times faster
    deadline  seconds without any progress after which strands that wait for each other are told so

    Raises StoreError (LS201 to LS205).
    """
    from lockstep import taps
    from lockstep.log.store import open_store

    forks.install()
    store = open_store(store_path)
    reader = store.run(name)
    stream = next((found for found in reader.streams if found.process == ROOT), None)
    if stream is None:
        raise StoreError(Code.NO_RUN, f"run {name} has no recorded process")
    tape = Tape(reader.heads(stream.id), lambda seq: reader.body(stream.id, seq))
    meta: Any = reader.meta
    start = tape.body(tape.start_seq) if tape.start is not None else None
    secrets, wrong = replayed(store.path, meta)
    argv = start.get("argv") if isinstance(start, dict) else None
    if isinstance(argv, list):
        secrets.follow_command(argv, list(sys.argv))
    session = Replaying(name, ROOT, bytes(meta["seed"]), tape, speed, deadline, secrets)
    session.store = store.path
    if wrong:
        session.note("vault", wrong)
    current.session = session
    facts = start.get("facts") if isinstance(start, dict) else None
    facts = session.secrets.reveal(facts)
    taps.start(session, facts if isinstance(facts, dict) else {})
    return session


def replayed(store: str, meta: Mapping[str, Any]) -> tuple[Secrets, str]:
    """The secrets of a recorded run: as the environment has them now, else as the vault has. Also what is wrong
    with the vault, "" if nothing."""
    secrets = Secrets(rules=_rules(meta.get("rules")), process=ROOT, replay=True)
    secrets.know_environment(os.environ)
    vault = meta.get("vault")
    values, wrong = Vault(store, str(vault)).read() if is_id(vault) else ({}, "")
    secrets.know(values)
    return secrets, wrong


def _rules(told: Value) -> Rules:
    recorded = told if isinstance(told, dict) else {}
    found = {}
    for name in ("hide", "keep"):
        names = recorded.get(name)
        found[name] = tuple(each for each in names if isinstance(each, str)) if isinstance(names, list) else ()
    return Rules(**found)


def finish(session: Session, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
    """Ends the session of this process: the taps are inert again."""
    from lockstep import taps

    taps.check(session)
    report = session.finish(exit, error, result)
    taps.stop(session)
    if current.session is session:
        current.session = None
    return report
