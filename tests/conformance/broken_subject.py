"""The subject of an adapter that stores nothing before its agent has ended: for the test that kills the agent."""

import shutil
import tempfile
from pathlib import Path

import msgspec

from lockstep.conformance import Done, Work
from lockstep.conformance.plain import SYNC, Plain


class StoresLate(Plain):
    modes = (SYNC,)

    def record(self, work: Work) -> Done:
        with tempfile.TemporaryDirectory() as place:
            done = super().record(msgspec.structs.replace(work, store=str(Path(place) / "store.db")))
            shutil.copytree(place, Path(work.store).parent, dirs_exist_ok=True)
        return done


subject = StoresLate()
