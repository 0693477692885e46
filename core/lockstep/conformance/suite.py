"""Runs the tests against a subject and reports, capability by capability."""

from __future__ import annotations

import contextlib
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import cast

from lockstep import adapter as adapters
from lockstep.conformance import capabilities
from lockstep.conformance.report import FAILED, PASSED, Report, unsupported
from lockstep.conformance.stage import Failed, Stage
from lockstep.conformance.subject import Mode, Subject
from lockstep.conformance.world import World
from lockstep.errors import AdapterError, Code

# Told of each capability as it has been tried: its name and result.
type Heard = Callable[[str, str], None]


def run(
    subject: Subject,
    *,
    reference: str = "",
    name: str = "",
    framework: str = "",
    only: Sequence[str] = (),
    heard: Heard | None = None,
) -> Report:
    """Tries every capability, each in every mode of the subject.

    reference  `module:attribute` of the subject, for the tests that need a process of their own
    name       of the adapter, and `framework`: its version, for the report
    only       these capabilities and no others
    """
    found: dict[str, str] = {}
    failures: dict[str, str] = {}
    for capability in only or capabilities.CAPABILITIES:
        reason = subject.unsupported.get(capability, "")
        problem = "" if reason else _problem(subject, reference, capability)
        found[capability] = unsupported(reason) if reason else FAILED if problem else PASSED
        if problem:
            failures[capability] = problem
        if heard is not None:
            heard(capability, found[capability])
    return Report(name, framework, tuple(mode.name for mode in subject.modes), found, failures)


def run_adapter(name: str, *, only: Sequence[str] = (), heard: Heard | None = None) -> Report:
    """Tries an installed adapter. Raises AdapterError LS407, LS408, and TargetError LS404 without its framework."""
    adapter = adapters.get(name)
    version = adapters.require(adapter)
    return run(
        find(adapter.subject), reference=adapter.subject, name=adapter.name,
        framework=f"{adapter.title} {version}", only=only, heard=heard,
    )  # fmt: skip


def find(reference: str) -> Subject:
    """The subject that `module:attribute` names. Raises AdapterError LS407."""
    module, _, attribute = reference.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise AdapterError(
            Code.BAD_ADAPTER, f"the conformance subject {reference} cannot be loaded: {error}"
        ) from error
    if not getattr(found, "modes", ()):
        raise AdapterError(Code.BAD_ADAPTER, f"{reference} is no conformance subject: it has no modes")
    return cast("Subject", found)


def _problem(subject: Subject, reference: str, capability: str) -> str:
    """What is wrong with one capability, mode by mode; "" if nothing."""
    problems: list[str] = []
    check = capabilities.check(capability)
    if check is not None:
        for mode in subject.modes:
            with _stage(subject, reference, mode) as stage:
                if told := _told(check, stage):
                    problems.append(f"{mode.name}: {told}")
    across = capabilities.across(capability)
    if across is not None:
        with contextlib.ExitStack() as stages:
            every = [stages.enter_context(_stage(subject, reference, mode)) for mode in subject.modes]
            if told := _told(across, every):
                problems.append(told)
    return "\n".join(problems)


def _told[T](check: Callable[[T], None], stage: T) -> str:
    try:
        check(stage)
    except Failed as failed:
        return str(failed)
    except Exception as error:
        # A subject that cannot even do what is asked has failed too; where, its author needs to know.
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({where.filename}:{where.lineno} in {where.name})"
    return ""


@contextlib.contextmanager
def _stage(subject: Subject, reference: str, mode: Mode) -> Iterator[Stage]:
    world = World(in_ids=getattr(subject, "drops_text", False))
    with tempfile.TemporaryDirectory(prefix="lockstep-conformance-") as directory, world:
        yield Stage(subject, reference, mode, world, directory)
