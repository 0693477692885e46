"""A fault of the recorder reaches nobody but the report: the agent does what it does without Lockstep.

Where the framework's own state goes through a hook, it cannot go on as if it had been kept: that is told the agent,
once and with its code (`Subject.relied`).
"""

from __future__ import annotations

import re

from lockstep.conformance.spec.no_tool_on_replay import PAYS
from lockstep.conformance.spec.streams import STREAMS
from lockstep.conformance.stage import Stage

# Of the session, which adapters hand everything to: hiding secrets, match keys, storing.
HOOKS = (
    "lockstep.session.secrets:Secrets.asked",
    "lockstep.session.secrets:Secrets.hide",
    "lockstep.session.writer:Writer.put",
    "lockstep.session.handed:Handed.end",
    "lockstep.log.sqlite.append:SqliteAppender.append",
)

_CODE = re.compile(r"\bLS\d{3}\b")


def check(stage: Stage) -> None:
    for scenario in (PAYS, STREAMS):
        plain = stage.plain(scenario, same=True)
        for hook in (*getattr(stage.subject, "core_hooks", HOOKS), *stage.subject.hooks):
            with stage.broken(hook):
                recorded = stage.record(scenario, same=True)
            about = f"{scenario.name}, {hook} broken"
            if hook in getattr(stage.subject, "relied", ()) and recorded.done.error:
                told = recorded.done.error
                stage.expect(_CODE.search(told), f"{about}: a state was not kept, and the agent is told {told!r}")
                stage.expect(plain.seen[: len(recorded.seen)] == recorded.seen, f"{about}: it asked {recorded.seen}")
                continue
            for field in ("outputs", "error", "pieces"):
                without, within = getattr(plain.done, field), getattr(recorded.done, field)
                stage.expect(without == within, f"{about}: {field} are {within} instead of {without}")
            stage.expect(plain.seen == recorded.seen, f"{about}: the world was asked {recorded.seen}")
            stage.expect(bool(recorded.done.faults), f"{about}: nobody was told of the fault")
