"""What `lockstep bisect --jobs 4` saves where probes wait: each answer of the model takes 100 ms.

    python bench/jobs.py [--quick] [--write]

Each search is made by one job and by four, of recordings alike, in a store of its own; both have to name the planted
answer. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import tables
from contenders import WORKLOADS, told

from lockstep.testing import Answer, Provider, Request

JOBS = 4
WAIT = 0.1  # seconds that each answer takes
_GOAL = 0.4
_SURE = ("--confidence", "0.95")
ENDS = {"says": "how it ends says what the bad answer said", "silent": "how it ends says nothing of it"}
# Places of the bad answer, from 1: the middle of each quarter.
PLACES = {16: (2, 6, 10, 14), 64: (8, 24, 40, 56)}
CASES: tuple[tuple[int, str, Sequence[str]], ...] = (
    (16, "says", ()), (16, "silent", ()), (16, "silent", _SURE),
    (64, "says", ()), (64, "silent", ()), (64, "silent", _SURE),
)  # fmt: skip


class Found(msgspec.Struct, frozen=True):
    """What a search took: seconds of the whole command, probes, those among them that were needless, live calls."""

    seconds: float
    probes: int
    ended: int
    calls: int


class _Model:
    """Answers after a while. One answer is bad, of those that are counted while it is set."""

    def __init__(self) -> None:
        self.planted = self.calls = 0

    def answer(self, request: Request) -> Answer:
        self.calls += 1
        owed = 4000 if self.calls == self.planted else 450
        wait = 0.0 if self.planted else WAIT  # the recording need not take long
        return Answer(json.dumps({"owed": owed, "note": uuid.uuid4().hex}), delay=wait)


def _searched(model: _Model, url: str, steps: int, end: str, place: int, words: Sequence[str], jobs: int) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store.db")
        ours = [sys.executable, "-m", "lockstep"]
        model.planted, model.calls = place, 0
        agent = [sys.executable, WORKLOADS / "slow_answers.py", f"{url}/v1/chat/completions", steps, end]
        _, status, said = told([*ours, "record", "--store", store, "--run", "bench", "--", *agent])
        if status != 1 or model.calls != steps:
            raise RuntimeError(f"the run ended with {status} after {model.calls} calls:\n{said.decode()}")
        model.planted = model.calls = 0
        spent, status, said = told([*ours, "bisect", "--store", store, "bench", "--json", "--jobs", jobs, *words])
        found = json.loads(said[said.index(b"{") :]) if b"{" in said else {}
        if found.get("step") != place:
            raise RuntimeError(f"{jobs} jobs name {found.get('step')}, and the bad answer is {place}:\n{said.decode()}")
        return Found(spent.wall / 1000, found["probes"], found["ended"], model.calls)


def _lines(model: _Model, url: str, quick: bool) -> Iterator[tuple[str, ...]]:
    every: list[tuple[float, float]] = []
    for steps, end, words in CASES:
        if quick and steps > 16:
            continue
        pairs = []
        for place in PLACES[steps][:: 2 if quick else 1]:
            pairs.append([_searched(model, url, steps, end, place, words, jobs) for jobs in (1, JOBS)])
            one, four = pairs[-1]
            print(f"{steps} {end} {' '.join(words)} :{place}  {one}  {four}", file=sys.stderr, flush=True)
        alone, together = ([pair[at] for pair in pairs] for at in (0, 1))
        each = [four.seconds / one.seconds for one, four in pairs]
        ratio = sum(one.seconds for one in together) / sum(one.seconds for one in alone)
        every += [(one.seconds, four.seconds) for one, four in pairs]
        yield (
            str(steps), ENDS[end], " ".join(words) or "each probe once", _mean(alone, "seconds", 1),
            _mean(together, "seconds", 1), f"{ratio:.2f}", f"{min(each):.2f}–{max(each):.2f}",
            _mean(alone, "probes", 1), f"{_mean(together, 'probes', 1)} + {_mean(together, 'ended', 1)}",
            _mean(alone, "calls", 0), _mean(together, "calls", 0),
        )  # fmt: skip
    alone_for, together_for = (sum(pair[at] for pair in every) for at in (0, 1))
    ratio = together_for / alone_for
    goal = f"≤ {_GOAL:g}: {'yes' if ratio <= _GOAL else 'NO'}"
    yield "all", "", "", f"{alone_for:.0f} in all", f"{together_for:.0f} in all", f"{ratio:.2f}", goal, *[""] * 4


def _mean(found: Sequence[Found], what: str, digits: int) -> str:
    return f"{statistics.mean(getattr(one, what) for one in found):.{digits}f}"


def main() -> None:
    asked = page.asked(__doc__)
    model = _Model()
    heads = (
        "n", "the agent", "search", "1 job, s", f"{JOBS} jobs, s", "of that", "by place", "probes", "with jobs",
        "live calls", "with jobs",
    )  # fmt: skip
    with Provider(model.answer) as provider:
        lines = list(_lines(model, provider.url, asked.quick))
    table = tables.markdown(heads, ("--:", "---", "---", *["--:"] * 8), lines)
    print(table)
    if asked.write:
        page.write("jobs", table, {}, "python bench/jobs.py --write")


if __name__ == "__main__":
    main()
