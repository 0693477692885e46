"""Ways to run something bare, recorded and replayed: in this process, and through the command line."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.taps.holding import Decide, holding
from tests.warm import command

from lockstep.session.report import Report
from lockstep.session.session import finish, start_recording, start_replay


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a `row` runs for each `row_` function of the program that its module names in ROWS."""
    if "row" in metafunc.fixturenames:
        tree = ast.parse(metafunc.module.ROWS.read_text())
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        metafunc.parametrize("row", [name.removeprefix("row_") for name in names if name.startswith("row_")])


class InProcess:
    """Records and replays callables of the test. `result` is what the last one returned."""

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        self.result: Any = None
        self._last = "run"

    def record(self, program: Callable[[], Any]) -> Report:
        return self._run(start_recording(self._store, "run", {}), program)

    def replay(self, program: Callable[[], Any], interrupted: bool = False) -> Report:
        """`interrupted`: as if the recording had been killed before its end."""
        session = start_replay(self._store, self._last)
        if interrupted:
            session.interrupted = True
            session.tape.finish = None
        return self._run(session, program)

    def hold(self, program: Callable[[], Any], decide: Decide = lambda call: None) -> Report:
        """Runs it in a session whose calls are held until all of a request is known, and live then."""
        with holding("run", decide, self._store, exit=None) as session:
            self.result = program()
        self._last = session.run
        return session.report  # type: ignore[no-any-return]

    def same(self, program: Callable[[], Any], held: bool = False) -> Any:
        """Records and replays it; asserts that both were the same and returns what it returned. `held`: and again,
        with its calls held."""
        recorded = self.record(program)
        assert recorded.faults == ()
        first = self.result
        replayed = self.replay(program)
        assert replayed.difference is None
        assert replayed.identical
        assert replayed.digest == recorded.digest
        assert self.result == first
        if held:
            assert self.hold(program).faults == ()
            again = self.result
            assert self.replay(program).difference is None
            assert self.result == again
        return first

    def _run(self, session: Any, program: Callable[[], Any]) -> Report:
        failed: BaseException | None = None
        self.result = None
        try:
            self.result = program()
        except BaseException as error:
            failed = error
        return finish(session, None, failed)


@pytest.fixture
def session(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path / "in-process.db")


class Commands:
    """Runs a program as a user would: alone, under `lockstep record` and under `lockstep replay`."""

    def __init__(self, place: Path) -> None:
        self._store = str(place / "commands.db")
        self._place = place

    def bare(self, program: Path, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, str(program)], cwd=self._place, env={**os.environ, **env}, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def record(self, program: Path, **env: str) -> str:
        """Records it as a run of its own, named after the program."""
        where = ["--store", self._store, "--run", program.stem]
        return self._lockstep(0, env, "record", *where, "--", sys.executable, str(program))

    def replay(self, program: Path, **env: str) -> str:
        """Replays its run, which must be identical."""
        return self._lockstep(0, env, "replay", "--store", self._store, program.stem)

    def diverge(self, program: Path, **env: str) -> str:
        """Replays its run, which must not be the same."""
        return self._lockstep(1, env, "replay", "--store", self._store, program.stem)

    @staticmethod
    def rows(printed: str) -> dict[str, tuple[str, Any]]:
        """What `programs/rows.py` printed: for each row its value's repr and its shape."""
        return {name: (value, shape) for name, value, shape in map(json.loads, printed.splitlines())}

    def _lockstep(self, status: int, env: dict[str, str], *words: str) -> str:
        done = command.run(*words, cwd=self._place, env={**os.environ, **env}, timeout=100)
        assert done.returncode == status, done.stderr
        self.said = done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("commands"))
