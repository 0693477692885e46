"""`lockstep temporal …`: what only Temporal has."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="temporal",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Workflow executions of a Temporal server.",
)


@app.callback()
def everywhere() -> None:
    """Workflow executions of a Temporal server."""


@app.command(epilog="Example: lockstep temporal pull --workflow-id order-7 --output histories")
def pull(
    context: typer.Context,
    workflow_id: Annotated[str, typer.Option("--workflow-id", "-w", metavar="ID", help="The workflow's id.")],
    run_id: Annotated[
        str, typer.Option("--run-id", "-r", metavar="ID", help="Only this execution; else all of the newest chain.")
    ] = "",
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="The server; else TEMPORAL_ADDRESS or the profile's.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Else TEMPORAL_NAMESPACE or the profile's.")
    ] = "",
    data_converter: Annotated[
        str,
        typer.Option(
            "--data-converter", metavar="MODULE:NAME", help="With a codec: for keys by what is encoded in payloads."
        ),
    ] = "",
    run: Annotated[str, typer.Option("--run", metavar="NAME", help="The run's name; else temporal/ID.")] = "",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Write history files here, instead of a run.")
    ] = "",
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="PATH", help="The store; else LOCKSTEP_STORE, else .lockstep/store.db upward."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Take a past execution from its server: a run that needs no server from then on."""
    from lockstep.adapter import require
    from lockstep.cli import failures
    from lockstep_temporal.adapter import adapter

    with failures.reported(as_json=as_json, debug=debug or bool(context.obj)):
        require(adapter)
        from lockstep_temporal import pulling

        pulling.pull(
            workflow_id, run_id=run_id, address=address, namespace=namespace, data_converter=data_converter, run=run,
            output=output, store=store, as_json=as_json,
        )  # fmt: skip


@app.command(
    epilog="Example: lockstep temporal worker probes -- python agent.py      "
    "lockstep temporal worker probes --target agent:graph --jobs 2"
)
def worker(
    context: typer.Context,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The task queue, as `bisect --workers` names it.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="The program of the runs that are bisected.")
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="MODULE:NAME", help="Also, or instead: a target of runs; may be repeated."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="Make so many probes at a time.")] = 1,
    folder: Annotated[
        str, typer.Option("--folder", metavar="PATH", help="Where recordings and probes are kept.")
    ] = ".lockstep/probes",
    isolate: Annotated[
        bool,
        typer.Option("--isolate", help="Run commands without a network (Linux): nothing they do can reach outside."),
    ] = False,
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="The server; else TEMPORAL_ADDRESS or the profile's.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Else TEMPORAL_NAMESPACE or the profile's.")
    ] = "",
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Make probes for bisects that are run elsewhere, of this program alone, whatever is sent."""
    from lockstep.adapter import require
    from lockstep.cli import failures
    from lockstep_temporal.adapter import adapter

    with failures.reported(as_json=False, debug=debug or bool(context.obj)):
        require(adapter)
        from lockstep_temporal import probe_command

        probe_command.work(
            queue, command or [], targets=targets or [], jobs=jobs, folder=folder, isolate=isolate, address=address,
            namespace=namespace,
        )  # fmt: skip
