"""Modules that keep a clock of their own, whatever the program is given.

A recorded clock in a wait hangs or spins: what the standard library waits with stays real. Where it
counts a time limit down over several waits (queues, conditions, futures), a replay must count down as
the recording did, since its waits take no time: those clocks are served, though not counted. Log lines
and telemetry read clocks on their own schedule: theirs is soft, so one more debug line is no
divergence, and an unchanged program logs the recorded times.

A module gets its own clock by its globals, not by a look at the caller's frame: that would cost 210 ns
a read once an audit hook is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session.lanes import current
from lockstep.session.reads import SOFT as SOFT_SOURCE
from lockstep.session.reads import open_stream
from lockstep.taps.clock.readers import real
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import stand_in

# `sched` is not among them: its scheduler sleeps by `time.sleep`, which a replay does not wait for.
WAITING = (
    "asyncio.base_events",
    "asyncio.windows_events",
    "multiprocessing.connection",
    "multiprocessing.managers",
    "multiprocessing.pool",
    "multiprocessing.queues",
    "multiprocessing.synchronize",
    "socketserver",
    "subprocess",
)

# Their waits are gated by `lockstep.taps.threads`.
COUNTING_DOWN = ("concurrent.futures._base", "queue", "threading")

# Tried with langsmith 0.15, opentelemetry-sdk 1.45, posthog 7.91 and sentry-sdk 2.75.
SOFT = (
    "langsmith._internal._background_thread",
    "langsmith.client",
    "logging",
    "logging.handlers",
    "opentelemetry.sdk._logs._internal",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.metrics._internal",
    "opentelemetry.sdk.metrics._internal._view_instrument_match",
    "opentelemetry.sdk.metrics._internal.export",
    "opentelemetry.sdk.metrics._internal.instrument",
    "opentelemetry.sdk.metrics._internal.measurement_consumer",
    "opentelemetry.sdk.metrics._internal.metric_reader_storage",
    "opentelemetry.sdk.trace",
    "posthog.bucketed_rate_limiter",
    "posthog.capture_v1",
    "posthog.client",
    "posthog.consumer",
    "posthog.metrics_capture",
    "posthog.request",
    "posthog.tracing._export",
    "posthog.tracing._pipeline",
    "posthog.tracing._span",
    "posthog.utils",
    "sentry_sdk._queue",
    "sentry_sdk._span_batcher",
)

_clocks: dict[str, dict[int, tuple[Any, Any]]] = {}
"""By kind of clock: for the id of a global's value (a tap, an original, module `time`), it and what to put there."""


def install(taps: dict[str, Callable[..., Any]], module: ModuleType) -> None:
    """Gives the modules above their clocks, now or when they are imported. `taps` stand in module `time`."""
    soft = _soft()
    _clocks["waiting"] = _answers(taps, module, {name: real[name] for name in taps})
    _clocks["soft"] = _answers(taps, module, {name: soft.get(name, real[name]) for name in taps})
    for name in WAITING:
        when_imported(name, _give_real)
    for name in (*SOFT, *COUNTING_DOWN):
        when_imported(name, _give_soft)


def _answers(
    taps: dict[str, Callable[..., Any]], module: ModuleType, functions: dict[str, Any]
) -> dict[int, tuple[Any, Any]]:
    own = ModuleType("time", module.__doc__)
    own.__dict__.update({**real, **functions})
    answers: dict[int, tuple[Any, Any]] = {id(module): (module, own)}
    for name, function in functions.items():
        answers[id(taps[name])] = (taps[name], function)
        answers[id(real[name])] = (real[name], function)
    return answers


def _give_real(module: ModuleType) -> None:
    _give(module, _clocks["waiting"])


def _give_soft(module: ModuleType) -> None:
    _give(module, _clocks["soft"])


def _give(module: ModuleType, answers: dict[int, tuple[Any, Any]]) -> None:
    for name, value in tuple(vars(module).items()):
        known = answers.get(id(value))
        if known is not None and known[0] is value:
            setattr(module, name, known[1])


def _soft() -> dict[str, Callable[..., Any]]:
    made: dict[str, Callable[..., Any]] = {}
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        nanoseconds = _soft_nanoseconds(f"{SOFT_SOURCE}time.{name}", real[f"{name}_ns"])
        made[f"{name}_ns"] = stand_in(nanoseconds, real[f"{name}_ns"], "time")
        made[name] = stand_in(_soft_seconds(made[f"{name}_ns"]), real[name], "time")
    return made


def _soft_nanoseconds(source: str, real_ns: Callable[[], int]) -> Callable[[object], int]:
    def reading(_: object) -> int:
        lane = current()
        if lane is None:
            return real_ns()
        value: int = (lane.taps.get(source) or open_stream(lane, source, False)).next(real_ns)
        return value

    return reading


def _soft_seconds(nanoseconds: Callable[[], int]) -> Callable[[object], float]:
    return lambda _: nanoseconds() / 1e9
