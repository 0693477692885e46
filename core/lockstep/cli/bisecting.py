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
    trust: bool, isolate: bool, as_json: bool, debug: bool, jobs: int,
) -> None:  # fmt: skip
    """Finds the answer that makes the run bad. Ends with 0 where it names one, else with 1."""
    if tail not in _TAILS:
        import typer  # only now: a bisect is begun without it

        raise typer.BadParameter(f"{tail!r} is not live, reuse or record", param_hint="--tail")
    wrong = _wrong(confidence, max_probes, jobs)
    if wrong:
        import typer

        raise typer.BadParameter(wrong[1], param_hint=wrong[0])
    with failures.reported(as_json=as_json, debug=debug):
        from lockstep.debugger import warming
        from lockstep.launch.nursery import Nursery

        path = str(locate(store))
        with open_store(path) as opened, open(os.devnull, "wb") as nowhere, Nursery(jobs) as nursery:
            place = resolve(opened, run)
            output = 2 if debug else nowhere.fileno()
            if not command and not target and not workers:
                warming.warm(nursery, path, place, isolate=isolate, output=output, debug=debug)
            from lockstep.cli import searching

            status = searching.bisect(
                opened, run, place, command, bad=bad, good=good, live=live, tail=tail, target=target, again=again,
                confidence=confidence, max_probes=max_probes, shrink=shrink, plot=plot, workers=workers,
                trust=trust, isolate=isolate, as_json=as_json, debug=debug, output=output, nursery=nursery,
                jobs=jobs,
            )  # fmt: skip
        raise SystemExit(status)


def _wrong(confidence: float | None, max_probes: int | None, jobs: int) -> tuple[str, str] | None:
    """The option that cannot be, and why."""
    if confidence is not None and not 0.5 < confidence < 1:
        return "--confidence", f"{confidence:g} is not between 0.5 and 1, as 0.95 is"
    if max_probes is not None and max_probes < 1:
        return "--max-probes", f"{max_probes} is less than one probe"
    if jobs < 1:
        return "--jobs", f"{jobs} is less than one job"
    return None


def log(run: str, *, store: str | None, bad: str, as_json: bool, debug: bool) -> None:
    """Lists the probes that are kept, and what the predicate says of each."""
    with failures.reported(as_json=as_json, debug=debug):
        from lockstep.cli import searching

        with open_store(locate(store)) as opened:
            searching.log(opened, run, bad=bad, as_json=as_json)
