"""Keys are nowhere in what is stored, neither as the client sends them nor in what tools are told and tell."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, text
from lockstep.log.store import open_store

# Shaped like a provider's key, with which nobody can do anything.
KEY = "sk-proj-" + "Conf0rmanceTest" * 3
KEEPS = Scenario("keeps", says=(Says((Call("look", f"with {KEY}"),)), Says()), tools=(Tool("look"),), key=KEY)


def check(stage: Stage) -> None:
    recorded = stage.record(KEEPS)
    told = [seen.argument for seen in recorded.seen if seen.kind == "tool"]
    stage.expect(told == [f"with {KEY}"], f"the recorded tool was told {told}")
    for where, stored in _stored(stage, recorded.done.run):
        stage.expect(KEY not in stored, f"the key is in {where}")
    stage.expect_identical(recorded, stage.replay(KEEPS, recorded.done.run))


def _stored(stage: Stage, run: str) -> Iterator[tuple[str, str]]:
    """What a store holds of a run, as it is read and as it lies on the disk; the vault is where values may be."""
    with open_store(stage.store) as store:
        reader = store.run(run.partition("@")[0].partition("/")[0] if not store.has_run(run) else run)
        yield "the run's description", text(reader.meta)
        for stream in reader.streams:
            for event in reader.events(stream.id):
                yield f"event {event.pos} of {stream.process}", text([event.name, event.what, event.body])
    for above, _, names in os.walk(stage.directory):
        for name in names:
            where = os.path.join(above, name)
            if "vault" not in where:
                with open(where, "rb") as file:
                    yield where, file.read().decode("latin-1")
