"""A planted fault is named in a program that drives a browser: one trial of `bench/planted`.

Each probe starts a browser, so it is of one kind: the kinds differ in what the provider says, and in nothing that the
browser does.
"""

from pathlib import Path

from bench.planted import trial
from bench.planted.framed import Framed
from bench.planted.provider import Dice


def test_a_wrong_argument_is_named(tmp_path: Path) -> None:
    agent = Framed("playwright")
    bad = trial.planted(agent, 3, 1, str(tmp_path / "store.db"))
    assert bad.case.kind == "wrong tool argument"
    (found,) = trial.searched(agent, bad, Dice(), [trial.ONCE])
    assert (found.named, found.right) == (bad.answer, True)
    assert found.probes <= trial.enough(3)
