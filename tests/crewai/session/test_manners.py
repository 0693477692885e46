"""CrewAI is imported by what runs crews, and by nothing else of ours; a version that does not fit is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import crews
import pytest

from lockstep.errors import AdapterError
from lockstep_crewai.adapter import adapter

IMPORTS = """
import importlib, json, pkgutil, sys
import lockstep, lockstep.adapter, lockstep.cli, lockstep_crewai
from lockstep.adapter import registry
registry.found()
for package in PACKAGES:
    importlib.import_module(package)
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in ("crewai", "crewai_core", "crewai_cli"))))
"""


def _imported(program: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_neither_lockstep_nor_its_commands_nor_an_adapter_imports_crewai() -> None:
    adapters = ("ag2", "autogen", "crewai.attached", "langgraph", "playwright", "temporal")
    packages = [f"lockstep_{name}" for name in adapters]
    assert _imported(IMPORTS.replace("PACKAGES", repr(packages))) == []


def test_a_program_that_is_recorded_and_uses_no_crews_imports_nothing_of_it() -> None:
    program = (
        "import json, lockstep, sys, tempfile, os\n"
        "os.environ['LOCKSTEP_STORE'] = os.path.join(tempfile.mkdtemp(), 'store.db')\n"
        "with lockstep.record('r'): pass\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('crewai')]))"
    )
    assert _imported(program) == []


def test_a_crewai_that_lacks_what_the_seams_need_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import crewai
    import crews

    import lockstep_crewai
    from lockstep_crewai import fitting

    flow = crews.looping()
    fitting.probe.cache_clear()
    monkeypatch.delattr(crewai.Task, "_execute_task_async")
    try:
        with pytest.raises(AdapterError, match="LS410 Task has no '_execute_task_async'"):
            lockstep_crewai.wrap(flow)
    finally:
        fitting.probe.cache_clear()


def test_a_class_that_is_none_of_crewais_is_no_target_of_this_adapter() -> None:
    class Program:
        pass

    assert adapter.target.accepts(crews.Counting)
    assert not adapter.target.accepts(Program)
