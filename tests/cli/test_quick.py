"""The quick ways into commands know the same options as the whole command line."""

import inspect
from importlib import import_module

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


def test_it_reads_a_plain_replay_and_verify() -> None:
    assert quick.again(["replay", "--store=s.db", "refund", "--speed", "1.5", "--json", "--", "python", "a.py"]) == (
        "replay",
        {
            "run": "refund",
            "command": ["python", "a.py"],
            "store": "s.db",
            "speed": 1.5,
            "target": "",
            "depth": "call",
            "turn": None,
            "until": None,
            "trust": False,
            "isolate": False,
            "as_json": True,
            "debug": False,
        },
    )
    assert quick.again(["--debug", "verify", "refund", "--times=20"]) == (
        "verify",
        {
            "run": "refund",
            "command": [],
            "store": None,
            "times": 20,
            "target": "",
            "authentic": False,
            "trust": False,
            "isolate": False,
            "as_json": False,
            "debug": True,
        },
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["log", "refund"],
        ["replay"],
        ["replay", "--help"],
        ["replay", "refund", "python", "a.py"],
        ["replay", "--", "refund"],
        ["replay", "refund", "--speed"],
        ["replay", "refund", "--speed", "fast"],
        ["replay", "refund", "--speed=-1"],
        ["replay", "refund", "--times", "3"],
        ["replay", "refund", "--json=yes"],
        ["verify", "refund", "--times", "1.5"],
        ["verify", "refund", "--times", "²"],
        ["bisect", "log", "refund"],
        ["bisect", "refund", "--tail", "sometimes"],
        ["bisect", "refund", "--live"],
    ],
)
def test_other_replays_are_left_to_the_whole_command_line(words: list[str]) -> None:
    assert quick.again(words) is None


def test_it_reads_a_plain_bisect() -> None:
    found = quick.again(["bisect", "refund", "--live", "look", "--bad=./wrong.sh", "--live=pay", "--tail", "reuse"])
    assert found is not None
    assert (found[0], found[1]["run"], found[1]["live"]) == ("bisect", "refund", ("look", "pay"))
    assert (found[1]["bad"], found[1]["tail"], found[1]["again"]) == ("./wrong.sh", "reuse", False)


@pytest.mark.parametrize("verb", quick.AGAIN)
def test_options_of_replays_and_their_defaults_are_those_of_the_command(verb: str) -> None:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    options = [parameter for parameter in options if parameter.name not in ("help", "debug")]
    assert {name: (not found.is_flag, found.name) for found in options for name in found.opts} == quick.AGAIN[verb]
    found = quick.again([verb, "refund"])
    assert found is not None
    assert {name: value for name, value in found[1].items() if name not in ("run", "command", "debug")} == {
        parameter.name: parameter.default if not parameter.multiple else () for parameter in options
    }
    home = import_module(f"lockstep.cli.{quick.HOMES[verb]}")
    assert found[1].keys() == inspect.signature(getattr(home, verb)).parameters.keys()
