"""`lockstep bisect` and `bisect log`. Light at import: the probes' interpreter starts before the rest is loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lockstep.cli import failures
from lockstep.log.store import locate, open_store
from lockstep.log.timeline import resolve

_TAILS = ("", "live", "reuse", "record")


def bisect(
    run: str, command: Sequence[str], *, store: str | None, bad: str, good: str, live: Sequence[str], tail: str,
    target: str, again: bool, confidence: float | None, max_probes: int | None, shrink: bool, plot: str, workers: str,
    trust: bool, isolate: bool, as_json: bool, debug: bool, jobs: int | None,
    resume: bool,
) -> None:  # fmt: skip
    """Finds the answer that makes the run bad. Ends with 0 where it names one, else with 1."""
    if tail not in _TAILS:
        import typer  # only now: a bisect is begun without it

        raise typer.BadParameter(f"{tail!r} is not live, reuse or record", param_hint="--tail")
    wrong = _wrong(confidence, max_probes, jobs)
    given: dict[str, object] = {
        "CMD": command, "--bad": bad, "--good": good, "--live": live, "--tail": tail, "--target": target,
        "--again": again, "--confidence": confidence, "--shrink": shrink, "--workers": workers, "--trust": trust,
        "--isolate": isolate,
    }  # fmt: skip
    if resume and any(given.values()):
        wrong = next(name for name, value in given.items() if value), "--resume goes on as it was asked"
    if wrong:
        import typer

        raise typer.BadParameter(wrong[1], param_hint=wrong[0])
    with failures.reported(as_json=as_json, debug=debug):
        import msgspec

        from lockstep.debugger import resuming, warming
        from lockstep.debugger.replay import directory
        from lockstep.debugger.resuming import Asked
        from lockstep.launch.nursery import Nursery

        path = os.path.abspath(locate(store))
        if plot:
            _can_be_written(plot)
            plot = os.path.abspath(plot)
        with open_store(path) as opened, open(os.devnull, "wb") as nowhere:
            place = resolve(opened, run)
            asked = Asked(
                str(place.address), os.getcwd(), tuple(command), bad, good, tuple(live), tail, target,
                tuple(branch.name for branch in place.timeline.reader.branches) if again else None, confidence,
                max_probes, shrink, workers, trust, isolate, jobs or 1, os.urandom(8).hex() if again else "",
            )  # fmt: skip
            if resume:
                before = resuming.newest(path, asked.run)
                # How many probes there are, and how many at once, is no part of what a probe is.
                asked = msgspec.structs.replace(
                    before, max_probes=max_probes or before.max_probes, jobs=jobs or before.jobs
                )
            output = 2 if debug else nowhere.fileno()
            with directory(asked.directory), Nursery(asked.jobs) as nursery:
                if not asked.command and not asked.target and not asked.workers:
                    warming.warm(nursery, path, place, isolate=asked.isolate, output=output, debug=debug)
                from lockstep.cli import searching

                status = searching.bisect(
                    opened, asked, place, plot=plot, as_json=as_json, debug=debug, output=output, nursery=nursery
                )
        raise SystemExit(status)


def _can_be_written(plot: str) -> None:
    """Raises StoreError LS203 before any probe where the drawing has no place to go."""
    folder = os.path.dirname(plot) or "."
    if not os.path.isdir(folder):
        from lockstep.errors import Code, StoreError

        raise StoreError(Code.UNWRITABLE, f"--plot {plot}: there is no directory {folder}")


def _wrong(confidence: float | None, max_probes: int | None, jobs: int | None) -> tuple[str, str] | None:
    """The option that cannot be, and why."""
    if confidence is not None and not 0.5 < confidence < 1:
        return "--confidence", f"{confidence:g} is not between 0.5 and 1, as 0.95 is"
    if max_probes is not None and max_probes < 1:
        return "--max-probes", f"{max_probes} is less than one probe"
    if jobs is not None and jobs < 1:
        return "--jobs", f"{jobs} is less than one job"
    return None


def log(run: str, *, store: str | None, bad: str, as_json: bool, debug: bool) -> None:
    """Lists the probes that are kept, and what the predicate says of each."""
    with failures.reported(as_json=as_json, debug=debug):
        from lockstep.cli import searching

        with open_store(locate(store)) as opened:
            searching.log(opened, run, bad=bad, as_json=as_json)
