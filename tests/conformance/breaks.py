"""Adapters that are broken on purpose, each in one way: plain Python's subject with one thing wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import lockstep
from lockstep.conformance import Done, Found, Tool, Work, outside, plain_agent, plain_loop
from lockstep.conformance.plain import SYNC, Plain
from lockstep.conformance.scenario import Scenario, change
from lockstep.conformance.spec.records_steps import LOOKS
from lockstep.log.model import Value
from lockstep.session import current


class Sync(Plain):
    modes = (SYNC,)


def _scenario(work: Work, **fields: object) -> Work:
    return msgspec.structs.replace(work, scenario=change(work.scenario, **fields))


def loses_the_names_of_tools(patch: pytest.MonkeyPatch) -> Plain:
    def tool(url: str, about: Tool) -> Callable[[str], Any]:
        return lockstep.tool(effect=about.effect, name="call")(lambda argument: outside.use(url, about.name, argument))

    patch.setattr(plain_agent, "_tool", tool)
    return Sync()


class _Knocks(Sync):
    def replay(self, work: Work, run: str) -> Done:
        address = urlsplit(work.url)
        socket.create_connection((address.hostname, address.port)).close()
        return super().replay(work, run)


class _PaysAgain(Sync):
    def replay(self, work: Work, run: str) -> Done:
        done = super().replay(work, run)
        for tool in work.scenario.tools:
            if tool.effect == "mutating" and not tool.kills:
                outside.use(work.url, tool.name, "again")
        return done


def calls_one_after_the_other(patch: pytest.MonkeyPatch) -> Plain:
    patch.setattr(plain_agent, "ThreadPoolExecutor", lambda workers: ThreadPoolExecutor(1))
    return Sync()


class _Buffers(Sync):
    def replay(self, work: Work, run: str) -> Done:
        done = super().replay(work, run)
        return msgspec.structs.replace(done, pieces=("".join(done.pieces),) if done.pieces else ())


def gives_up_at_once(patch: pytest.MonkeyPatch) -> Plain:
    patch.setattr(plain_loop, "TRIES", 1)
    return Sync()


class _KeepsThePrompt(Sync):
    def replay(self, work: Work, run: str) -> Done:
        return super().replay(_scenario(work, system=LOOKS.system), run)


class _KeepsTheOutput(Sync):
    def replay(self, work: Work, run: str) -> Done:
        return super().replay(_scenario(work, ending=""), run)


class _Wraps(Sync):
    """Errors are others as soon as they are recorded."""

    def record(self, work: Work) -> Done:
        return self._wrapped(super().record(work))

    def replay(self, work: Work, run: str) -> Done:
        return self._wrapped(super().replay(work, run))

    def _wrapped(self, done: Done) -> Done:
        return msgspec.structs.replace(done, error=done.error and f"RecordedError: {done.error}")


class _Hooked(Sync):
    hooks = ("lockstep.conformance.plain_agent:_choice",)  # in the middle of the agent, and nothing catches it


def wants_data(patch: pytest.MonkeyPatch) -> Plain:
    def tool(url: str, about: Tool) -> Callable[[str], Any]:
        def use(argument: str) -> Any:
            given = outside.use(url, about.name, argument)
            if current.session is not None:
                json.dumps(given)
            return given

        return lockstep.tool(effect=about.effect, name=about.name)(use)

    patch.setattr(plain_agent, "_tool", tool)
    return Sync()


class _LogsKeys(Sync):
    def record(self, work: Work) -> Done:
        with Path(f"{work.store}.debug.log").open("a") as file:
            file.write(f"client with key {work.scenario.key}\n")
        return super().record(work)


def forgets_earlier_turns(patch: pytest.MonkeyPatch) -> Plain:
    converse = plain_loop.converse

    def forgetful(scenario: Scenario) -> Any:
        words: list[str] = []
        for prompt in scenario.prompts:
            words += yield from converse(change(scenario, prompts=(prompt,)))
        return words

    patch.setattr(plain_loop, "converse", forgetful)
    return Sync()


class _ForksEarly(Sync):
    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        run, _, step = address.rpartition(":")
        at = int(step) if edits else max(0, int(step) - 1)
        return super().fork(work, f"{run}:{at}", edits, live)


class _DropsEdits(Sync):
    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        return super().fork(work, address, {}, live)


class _AllowsAll(Sync):
    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        return super().fork(work, address, edits, [*live, "pay"])


class _AsksTheOtherWay(Sync):
    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        return super().bisect(work, run, lambda output: not bad(output))


type Break = Callable[[pytest.MonkeyPatch], Plain]


def _of(kind: type[Plain]) -> Break:
    return lambda patch: kind()


# By capability: what breaks it and nothing else.
BREAKS: dict[str, Break] = {
    "records_steps": loses_the_names_of_tools,
    "replays_identical_offline": _of(_Knocks),
    "no_tool_on_replay": _of(_PaysAgain),
    "concurrent_identical_calls": calls_one_after_the_other,
    "streams": _of(_Buffers),
    "failures_and_retries": gives_up_at_once,
    "changed_call_diverges": _of(_KeepsThePrompt),
    "output_diverges": _of(_KeepsTheOutput),
    "recorded_equals_unrecorded": _of(_Wraps),
    "recorder_fault_is_harmless": _of(_Hooked),
    "unserialisable_values": wants_data,
    "secrets_absent": _of(_LogsKeys),
    "continued_turns": forgets_earlier_turns,
    "fork_every_step": _of(_ForksEarly),
    "edit_reaches_agent": _of(_DropsEdits),
    "refused_side_effects": _of(_AllowsAll),
    "planted_fault_found": _of(_AsksTheOtherWay),
}
