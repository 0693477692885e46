"""The tables of what the trials found. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from bench.planted import faults
from bench.planted.shares import share
from bench.planted.trial import BUDGET, ONCE, OWN, Trial, budget, enough

_PEER = "lockstepd"
_SEARCHES = (ONCE, BUDGET, OWN)
# Of those whose model says what comes next, the instructions come as a tool's answer.
_ASK_FOR_IT = ("autogen", "crewai", "playwright", "ag2", "plain-http", "create_agent")


def of_trials(trials: Sequence[Trial]) -> str:
    """All tables, in Markdown."""
    steady = [one for one in trials if not one.drawn and not one.breaks]
    parts = [
        _cells("**Plain Python.**", [one for one in steady if one.adapter == "plain"]),
        _baselines([one for one in steady if one.adapter == "plain"]),
        _cells("**In each framework.**", [one for one in steady if one.adapter not in ("plain", _PEER)]),
        _beside(steady),
        _kinds([one for one in steady if one.search == BUDGET and one.adapter != "plain-quoting"]),
        _calibration(trials),
        _broken([one for one in trials if one.breaks]),
    ]
    return "\n\n".join(part for part in parts if part)


def _by_cell(one: Trial) -> tuple[object, ...]:
    return _place(one.adapter), one.steps, one.rescue, _SEARCHES.index(one.search)


def _cells(title: str, trials: Sequence[Trial]) -> str:
    groups = _grouped(trials, _by_cell)
    lines = [_cell(made) for made in groups]
    heads = (
        "agent", "n", "rescue", "search", "trials", "exact", "its step", "sure", "of these right", "probes", "most",
        "allowed", "live calls", "search, s", "recording, s",
    )  # fmt: skip
    return f"{title}\n\n{_markdown(heads, lines)}" if lines else ""


def _cell(made: Sequence[Trial]) -> tuple[str, ...]:
    one = made[0]
    allowed = {ONCE: str(enough(one.steps)), BUDGET: str(budget(one.steps))}.get(one.search, "–")
    sure = [each.held for each in made if each.sure]
    stated = ("–", "–") if one.search == ONCE else (f"{len(sure) / len(made):.2f}", share(sure))
    probes = [each.probes for each in made]
    return (
        one.adapter, str(one.steps), f"{one.rescue:g}", one.search, str(len(made)),
        share([each.right for each in made]), f"{mean(each.step_right for each in made):.3f}", *stated,
        f"{mean(probes):.1f}", str(max(probes)), allowed, f"{mean(each.live for each in made):.0f}",
        f"{median(each.seconds for each in made):.2f}", f"{median(each.recording for each in made):.2f}",
    )  # fmt: skip


def _baselines(trials: Sequence[Trial]) -> str:
    """What an answer without any look at the run is worth, over the same faults."""
    lines = []
    for made in _grouped(trials, lambda one: one.steps):
        places = [*{one.number: one.at for one in made}.values()]
        steps = made[0].steps
        constant, times = Counter(places).most_common(1)[0]
        lines.append((
            str(steps), str(len(places)), share([at == steps for at in places]),
            f"{times / len(places):.3f} (step {constant})", f"{1 / steps:.3f}",
        ))  # fmt: skip
    heads = ("n", "trials", "last step", "best constant, known afterwards", "uniform guess")
    return f"**Beside it, on the same faults of plain Python.**\n\n{_markdown(heads, lines)}" if lines else ""


def _beside(trials: Sequence[Trial]) -> str:
    """The peer and plain Python on the same faults: those that both were tried on."""
    lines = []
    for peers in _grouped([one for one in trials if one.adapter == _PEER], _by_cell):
        one = peers[0]
        numbers = {each.number for each in peers}
        ours = [
            each for each in trials
            if (each.adapter, each.steps, each.rescue) == ("plain", one.steps, one.rescue) and each.number in numbers
        ]  # fmt: skip
        for title, made in (
            (_PEER, peers),
            *((f"plain, `{way}`", [each for each in ours if each.search == way]) for way in (ONCE, BUDGET)),
        ):
            probes = [each.probes for each in made]
            if made:
                lines.append((
                    str(one.steps), f"{one.rescue:g}", title, str(len(made)), share([each.right for each in made]),
                    f"{mean(probes):.1f}", str(max(probes)), f"{mean(each.live for each in made):.0f}",
                    f"{median(each.seconds for each in made):.2f}", f"{median(each.recording for each in made):.2f}",
                ))  # fmt: skip
    heads = ("n", "rescue", "", "trials", "exact", "probes", "most", "live calls", "search, s", "recording, s")
    return f"**Beside lockstepd**, on the same faults.\n\n{_markdown(heads, lines)}" if lines else ""


def _kinds(trials: Sequence[Trial]) -> str:
    """How many of each kind, over all rates and lengths."""
    adapters = sorted({one.adapter for one in trials}, key=_place)
    lines = []
    for kind in faults.KINDS:
        made = [[one.right for one in trials if (one.adapter, one.kind) == (adapter, kind)] for adapter in adapters]
        asked = kind == "wrong system prompt"
        lines.append((kind, *(
            f"{sum(right)} of {len(right)}{'*' if asked and adapter in _ASK_FOR_IT else ''}"
            for adapter, right in zip(adapters, made, strict=True)
        )))  # fmt: skip
    return f"**By kind**, `budget`, all n and rates: exact.\n\n{_markdown(('kind', *adapters), lines)}" if lines else ""


def _calibration(trials: Sequence[Trial]) -> str:
    lines = []
    for title, drawn in (("rates of the cells above", False), ("rates drawn from what the search expects", True)):
        made = [one for one in trials if one.drawn == drawn and not one.breaks and one.search != ONCE]
        for search in (BUDGET, OWN):
            found = [one for one in made if one.search == search]
            sure = [one.held for one in found if one.sure]
            if found:
                lines.append((
                    title, search, str(len(found)), share([one.right for one in found]),
                    f"{mean(one.stated for one in found):.3f}", str(len(sure)), share(sure),
                ))  # fmt: skip
    heads = ("", "search", "trials", "exact", "stated on average", "stated 0.95 or more", "of these right")
    return f"**Stated and right.**\n\n{_markdown(heads, lines)}" if lines else ""


def _broken(trials: Sequence[Trial]) -> str:
    lines = []
    for made in _grouped(trials, _by_cell):
        one = made[0]
        named = [each for each in made if each.verdict == "culprit"]
        lines.append((
            one.adapter, str(one.steps), f"{one.rescue:g}", one.search, str(len(made)),
            f"{sum(each.broken for each in made)} of {sum(each.probes for each in made)}",
            share([each.right for each in made]), str(len(named)), share([each.right for each in named]),
        ))  # fmt: skip
    heads = (
        "agent", "n", "rescue", "search", "trials", "probes that broke down", "exact", "culprits named",
        "of these right",
    )  # fmt: skip
    return f"**Probes that break down** (0.2 of them, at any step).\n\n{_markdown(heads, lines)}" if lines else ""


def _place(adapter: str) -> tuple[int, str]:
    order = ("plain", "plain-quoting", "langgraph", "temporal", "autogen", "crewai", "playwright")
    return (order.index(adapter) if adapter in order else len(order)), adapter


def _grouped(trials: Iterable[Trial], key: Callable[[Trial], object]) -> list[list[Trial]]:
    found: dict[object, list[Trial]] = {}
    for one in trials:
        found.setdefault(key(one), []).append(one)
    return [found[each] for each in sorted(found)]  # type: ignore[type-var]


def _markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = (heads, ["---"] * len(heads), *lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
