"""The quick way into `record` knows the same options as the whole command line."""

import inspect

import pytest
import typer

from lockstep.cli import quick
from lockstep.cli.app import app
from lockstep.cli.recording import record


def test_it_reads_a_plain_recording() -> None:
    words = ["record", "--store", "s.db", "--run=refund", "--json", "--", "python", "agent.py", "--run", "x"]
    assert quick.record(words) == {
        "store": "s.db",
        "run": "refund",
        "as_json": True,
        "command": ["python", "agent.py", "--run", "x"],
    }
    assert quick.record(["--debug", "record", "python", "a.py"]) == {"debug": True, "command": ["python", "a.py"]}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["runs"],
        ["record"],
        ["record", "--help"],
        ["record", "--"],
        ["record", "--run"],
        ["record", "--json=yes", "--", "python"],
        ["record", "--unknown", "--", "python"],
        ["--version"],
    ],
)
def test_everything_else_is_left_to_the_whole_command_line(words: list[str]) -> None:
    assert quick.record(words) is None


def test_its_options_are_those_of_the_command() -> None:
    command = typer.main.get_command(app).commands["record"]  # type: ignore[attr-defined]
    options = {
        option: (not parameter.is_flag, parameter.name)
        for parameter in command.params
        if parameter.param_type_name == "option"
        for option in parameter.opts
        if option not in ("--help", "-h", "--debug")
    }
    assert options == quick.RECORD
    arguments = set(inspect.signature(record).parameters)
    assert {name for _, name in quick.RECORD.values()} | {"command", "debug"} == arguments
