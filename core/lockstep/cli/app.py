"""The command line: what every command is called, takes and means. What they do is in their own files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(
    name="lockstep",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Record an AI agent's run, replay it offline, and prove that it was the same run.\n\n"
    "Lockstep's own words go to stderr; stdout stays the program's.",
    epilog="Example: lockstep record --run refund -- python support_agent.py --ticket 4711",
)

Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="PATH", help="The store; else LOCKSTEP_STORE, else .lockstep/store.db found upward."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; a command's stdout goes to stderr.")]
Isolate = Annotated[
    bool, typer.Option("--isolate", help="Run it without a network (Linux): nothing it does can reach outside.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run, as `lockstep runs` names it.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run the recorded command of an imported run.")]
Target = Annotated[
    str, typer.Option("--target", metavar="MODULE:NAME", help="Call this instead, or what a framework's run is of.")
]
Command = Annotated[
    list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Run this instead of the recorded command.")
]


def run() -> None:
    """Runs the command line of this process."""
    from lockstep.cli import mounting

    mounting.mount(app, sys.argv[1:])
    app()


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("lockstep-replay")
        except PackageNotFoundError:
            number = "(not installed: running from a checkout)"
        typer.echo(f"lockstep {number}")
        raise typer.Exit


@app.callback()
def everywhere(
    context: typer.Context,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    context.obj = debug


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: lockstep record --run refund -- python support_agent.py --ticket 4711",
)
def record(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="[--] CMD...", help="The program and its arguments.")],
    store: Store = None,
    run: Annotated[str, typer.Option("--run", metavar="NAME", help="The run's name; else the script's.")] = "",
    breaks: Annotated[
        str,
        typer.Option("--break", metavar="STEP|AGENT,…", help="Stop its AutoGen teams after this step, or this agent."),
    ] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a program and record it. Ends with the program's own status."""
    from lockstep.cli import recording

    recording.record(command=command, store=store, run=run, breaks=breaks, as_json=as_json, debug=debug or context.obj)


@app.command(
    epilog="Example: lockstep replay refund      lockstep replay refund --speed 1 -- python changed_agent.py      "
    "lockstep replay histories/*.json --target app.workflows"
)
def replay(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run, as `lockstep runs` names it; or a framework's own files, or a folder of them.",
        ),
    ],
    command: Command = None,
    store: Store = None,
    target: Target = "",
    depth: Annotated[
        str,
        typer.Option("--depth", metavar="call|node", help="A framework's run: its calls are served, or nothing runs."),
    ] = "call",
    turn: Annotated[
        int | None, typer.Option("--turn", min=1, metavar="N", help="A framework's run: only this turn.")
    ] = None,
    until: Annotated[
        int | None, typer.Option("--until", min=0, metavar="STEP", help="A framework's run: stop after this step.")
    ] = None,
    speed: Annotated[
        float,
        typer.Option("--speed", min=0.0, metavar="F", help="Pace of streams: 0 at once, 1 as recorded, 10 faster."),
    ] = 0.0,
    trust: Trust = False,
    isolate: Isolate = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the program again with the recorded answers, offline. 0: it was the same run; 1: it was not."""
    from lockstep.cli import replaying

    replaying.replay(
        run,
        command or [],
        store=store,
        target=target,
        depth=depth,
        turn=turn,
        until=until,
        speed=speed,
        trust=trust,
        isolate=isolate,
        as_json=as_json,
        debug=debug or context.obj,
    )


@app.command(
    epilog="Example: lockstep fork refund:7 --set 7.1:status='\"lost\"' --branch try-2      "
    "lockstep fork refund:7 --live issue_refund"
)
def fork(
    context: typer.Context,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where it leaves: a step or an effect of a run.")],
    command: Command = None,
    edits: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ADDR[:PATH]=JSON|@FILE", help="Another answer, or a place in a recorded one."),
    ] = None,
    live: Annotated[
        list[str] | None, typer.Option("--live", metavar="NAME", help="Calls that may run for real: a name or pattern.")
    ] = None,
    tail: Annotated[
        str,
        typer.Option(
            "--tail", metavar="live|reuse|record", help="What becomes of all calls past the step; see `docs/forks.md`."
        ),
    ] = "",
    branch: Annotated[str, typer.Option("--branch", metavar="NAME", help="The new branch's name.")] = "",
    target: Target = "",
    tasks: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="NAME", help="A framework's run: of the step's tasks, only these run again."),
    ] = None,
    thread: Annotated[
        str, typer.Option("--thread", metavar="ID", help="A framework's run: go on as this thread, not as a branch.")
    ] = "",
    turn: Annotated[
        int | None, typer.Option("--turn", min=1, metavar="N", help="A framework's run: the last turn to run again.")
    ] = None,
    server: Annotated[
        str,
        typer.Option(
            "--server", metavar="local|ADDRESS", help="A workflow's run: on a development server, started or running."
        ),
    ] = "",
    breaks: Annotated[
        list[str] | None,
        typer.Option(
            "--break",
            metavar="STEP|AGENT",
            help="A team's run: stop it after this step, or when this agent has spoken.",
        ),
    ] = None,
    store: Store = None,
    trust: Trust = False,
    isolate: Isolate = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the program again, served up to a step, with edited answers, and for real from there: a new branch."""
    from lockstep.cli import forking
    from lockstep.session.policy import TAILS

    if tail not in TAILS:
        raise typer.BadParameter("one of live, reuse and record", param_hint="--tail")
    forking.fork(
        address,
        command or [],
        store=store,
        edits=edits or [],
        live=live or [],
        tail=tail,
        branch=branch,
        target=target,
        tasks=tasks or [],
        thread=thread,
        turn=turn,
        server=server,
        breaks=breaks or [],
        trust=trust,
        isolate=isolate,
        as_json=as_json,
        debug=debug or context.obj,
    )


@app.command(epilog="Example: lockstep verify refund --times 20      lockstep verify refund --authentic --times 0")
def verify(
    context: typer.Context,
    run: Run,
    command: Command = None,
    store: Store = None,
    times: Annotated[int, typer.Option("--times", min=0, metavar="N", help="How often to replay it.")] = 1,
    authentic: Annotated[
        bool, typer.Option("--authentic", help="Fail unless all of it is sealed with the key in LOCKSTEP_KEY.")
    ] = False,
    target: Target = "",
    trust: Trust = False,
    isolate: Isolate = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check that a recording is whole and unchanged, then replay it N times. 0: all were the same run."""
    from lockstep.cli import replaying

    replaying.verify(
        run,
        command or [],
        store=store,
        times=times,
        authentic=authentic,
        target=target,
        trust=trust,
        isolate=isolate,
        as_json=as_json,
        debug=debug or context.obj,
    )


@app.command(epilog="Example: lockstep explain LS210")
def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="As in an error or a report: LS210.")],
) -> None:
    """Say what a code means and what to do about it."""
    from lockstep.cli import explaining

    explaining.explain(code)


@app.command(epilog="Example: lockstep runs --json")
def runs(context: typer.Context, store: Store = None, as_json: Json = False, debug: Debug = False) -> None:
    """List the runs of a store, newest first."""
    from lockstep.cli import reading

    reading.runs(store=store, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep log refund")
def log(
    context: typer.Context,
    run: Run,
    store: Store = None,
    everything: Annotated[bool, typer.Option("--all", help="All steps, also of a long run.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List a run's steps, newest first, with what ran concurrently."""
    from lockstep.cli import reading

    reading.log(run, store=store, everything=everything, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep show refund:7")
def show(
    context: typer.Context,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="As in refund:7 or refund:7.1.")],
    store: Store = None,
    picture: Annotated[
        str,
        typer.Option(
            "--picture", metavar="FILE", help="Where to write the picture of a page, beside the store if not told."
        ),
    ] = "",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show one step or effect: what was asked and what was answered."""
    from lockstep.cli import reading

    reading.show(address, store=store, as_json=as_json, debug=debug or context.obj, picture=picture)


@app.command(epilog="Example: lockstep diff refund refund-2      lockstep diff refund:7 refund-2:9 --json")
def diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A run, or a step of one: refund, refund:7.")],
    second: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    store: Store = None,
    exact: Annotated[bool, typer.Option("--exact", help="Count also ids, times and headers that never agree.")] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Compare also how long calls took, and in how many pieces.")
    ] = False,
    reads: Annotated[
        bool, typer.Option("--reads", help="Compare also what was read of clocks, random sources, …")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="List all differences.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="List so many; 20 by default.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what two runs did differently. 0: nothing; 1: something."""
    from lockstep.cli import diffing

    diffing.diff(
        first, second, store=store, exact=exact, times=times, reads=reads, limit=limit, everything=everything,
        as_json=as_json, debug=debug or context.obj,
    )  # fmt: skip


@app.command(epilog="Example: lockstep why refund:12.1 total      lockstep why refund:12.1 '4000 cents' --json")
def why(
    context: typer.Context,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="A step or an effect: refund:12, refund:12.1.")],
    path: Annotated[
        str,
        typer.Argument(metavar="[PATH]", help="A place in what was asked or answered, or a text that is in it."),
    ] = "",
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say where a value came from: the answers, reads and inputs that first had it."""
    from lockstep.cli import tracing

    tracing.why(address, path, store=store, as_json=as_json, debug=debug or context.obj)


@app.command(
    epilog="Example: lockstep bisect refund      lockstep bisect refund --bad ./is_wrong.sh --live get_order      "
    "lockstep bisect refund --confidence 0.95      lockstep bisect log refund"
)
def bisect(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A bad run; `log RUN` lists the probes that are kept.")],
    command: Command = None,
    store: Store = None,
    bad: Annotated[
        str,
        typer.Option(
            "--bad",
            metavar="CMD",
            help="Asked whether LOCKSTEP_RUN is bad: 0 good, 125 cannot say, else bad. "
            "By default bad is what ends like RUN.",
        ),
    ] = "",
    good: Annotated[
        str,
        typer.Option(
            "--good",
            metavar="RUN",
            help="A run that went right: the fewest of its answers that cure the bad one are found, without a live "
            "call as far as the two records have the answers.",
        ),
    ] = "",
    live: Annotated[
        list[str] | None, typer.Option("--live", metavar="NAME", help="Let this call run for real; may be repeated.")
    ] = None,
    tail: Annotated[
        str, typer.Option("--tail", metavar="live|reuse|record", help="What becomes of calls after a probe's cut.")
    ] = "",
    target: Target = "",
    again: Annotated[bool, typer.Option("--again", help="Run also probes that were run before.")] = False,
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            metavar="P",
            help="Repeat probes until the answer is that likely, as 0.95: where a run may end in another way when "
            "it is run anew. By default each is made once.",
        ),
    ] = None,
    max_probes: Annotated[
        int | None, typer.Option("--max-probes", metavar="N", help="Make no more probes than this.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            help="Make up to N probes at once, where what takes long is waiting for models: more probes in less time. "
            "One after another by default.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the newest bisect of RUN that was interrupted, as it was asked."),
    ] = False,
    shrink: Annotated[
        bool,
        typer.Option("--shrink", help="Make the culprit's answer as small as it can be and still make the run bad."),
    ] = False,
    plot: Annotated[
        str, typer.Option("--plot", metavar="FILE.svg", help="Draw how likely the run is bad, by step.")
    ] = "",
    workers: Annotated[
        str,
        typer.Option(
            "--workers",
            metavar="[HOST:PORT/]QUEUE",
            help="Have probes made by Temporal workers, on other machines: see `lockstep temporal worker`.",
        ),
    ] = "",
    trust: Trust = False,
    isolate: Isolate = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find the recorded answer that makes a run bad. 0: it is named; 1: it cannot be."""
    from lockstep.cli import bisecting

    words = command or []
    if run == "log" and len(words) == 1 and "--" not in sys.argv:
        bisecting.log(words[0], store=store, bad=bad, as_json=as_json, debug=debug or context.obj)
        return
    bisecting.bisect(
        run, words, store=store, bad=bad, good=good, live=live or [], tail=tail, target=target, again=again,
        confidence=confidence, max_probes=max_probes, shrink=shrink, plot=plot, workers=workers, trust=trust,
        isolate=isolate, as_json=as_json, debug=debug or context.obj, jobs=jobs, resume=resume,
    )  # fmt: skip


@app.command(
    epilog="Example: lockstep export refund --output refund.tape      lockstep export refund --output r.jsonl.zst"
)
def export(
    context: typer.Context,
    run: Run,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The file; compressed if it ends in .zst; - is stdout."),
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="tape|jsonl|…",
            help="Else jsonl where the file's name says so, or tape. A framework's own run may have others.",
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write one run to a file: a tape, to be imported elsewhere, or lines of JSON for other tools."""
    from lockstep.cli import storing

    storing.export(
        run, store=store, output=output, format_=format_, force=force, as_json=as_json, debug=debug or context.obj
    )


@app.command("import", epilog="Example: lockstep import refund.tape      lockstep import histories/*.json")
def import_(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="A tape, or a framework's own: a Temporal history in JSON.")
    ],
    run: Annotated[
        str, typer.Option("--run", metavar="NAME", help="The run's name, of a framework's file; else it says one.")
    ] = "",
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Take the run of a tape into the store, if it is whole and unchanged; or make one of a framework's file."""
    from lockstep.cli import storing

    storing.import_(files, run=run, store=store, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep scrub refund --check      lockstep scrub refund")
def scrub(
    context: typer.Context,
    run: Run,
    check: Annotated[bool, typer.Option("--check", help="Only say what is found. 0: nothing; 1: something.")] = False,
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Take personal data out of a run: writes RUN-scrubbed beside it, to read or to pass on."""
    from lockstep.cli import scrubbing

    scrubbing.scrub(run, store=store, check=check, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep rm refund-2 refund-3      lockstep rm refund@try-2")
def rm(
    context: typer.Context,
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN[@BRANCH]...", help="Runs with all their branches, or single branches.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also the branches that come from a named one.")] = False,
    store: Store = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete runs or branches from the store."""
    from lockstep.cli import storing

    storing.rm(runs, store=store, yes=yes, force=force, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep gc")
def gc(context: typer.Context, store: Store = None, as_json: Json = False, debug: Debug = False) -> None:
    """Give back the room of deleted runs and of writers that died."""
    from lockstep.cli import storing

    storing.gc(store=store, as_json=as_json, debug=debug or context.obj)


@app.command(epilog="Example: lockstep adapters --json")
def adapters(context: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the installed adapters, their frameworks' versions, and what they can do."""
    from lockstep.cli import adapting

    adapting.adapters(as_json=as_json, debug=debug or context.obj)


@app.command(
    epilog="Example: lockstep conformance python      lockstep conformance my_adapter.subject:subject --only streams"
)
def conformance(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="An adapter, or module:attribute of a subject.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CAPABILITY", help="Try this one; may be given again.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the tests that every adapter must pass. 0: all passed; 1: not all."""
    from lockstep.cli import adapting

    adapting.conformance(name, only=only or [], as_json=as_json, debug=debug or context.obj)
