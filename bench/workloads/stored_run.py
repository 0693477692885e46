"""Calls written by our writer, two events each.    stored_run.py STORE LOAD COUNT"""

from __future__ import annotations

import sys

from stored_calls import LOADS

from lockstep.log.canonical import digest, key
from lockstep.log.model import Event, Kind, RunState, Status, Value
from lockstep.log.store import open_store

URL = "https://api.example.com/v1/chat/completions"


def main(path: str, load: str, count: int) -> None:
    with open_store(path, create=True) as store:
        appender = store.stream(store.create_run("bench", None), "main")
        pos = 1
        appender.append([Event(Kind.LANE, pos, 0, "", "main", "main")])
        for number, (asked, answered) in enumerate(LOADS[load](count)):
            at = number * 1_000_003_007
            name = "POST api.example.com/v1/chat/completions"
            request: Value = {"method": "POST", "url": URL, "body": asked, "headers": []}
            body: Value = {"request": request, "site": "agent.py:12 in ask"}
            begin, pos = pos + 1, pos + 2
            compared = key("model", name, request)
            appender.append([Event(Kind.BEGIN, begin, at, "main", "model", name, key=compared, body=body)])
            outcome: Value = {"status": 200, "headers": [], "body": answered}
            appender.append(
                [
                    Event(
                        Kind.END, pos, at + 900_000_001, "main", Status.OK, of=begin, key=digest(outcome)[:16],
                        body=outcome,
                    )
                ]
            )  # fmt: skip
        appender.close(RunState.COMPLETE)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
