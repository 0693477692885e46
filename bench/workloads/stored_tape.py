"""The same calls by the peer's writer, two events each, in the form of its own httpx transport.

stored_tape.py TAPE LOAD COUNT
"""

from __future__ import annotations

import json
import sys

from lockstepd.core.events import EventKind
from lockstepd.core.tape import TapeWriter
from stored_calls import LOADS


def main(path: str, load: str, count: int) -> None:
    with TapeWriter(path) as tape:
        for number, (asked, answered) in enumerate(LOADS[load](count)):
            request = {
                "method": "POST", "scheme": "https", "host": "api.example.com", "path": "/v1/chat/completions",
                "query": "", "headers": {}, "body": json.loads(asked), "llm": True,
            }  # fmt: skip
            tape.append(EventKind.HTTP_REQUEST, request)
            answer = {
                "status": 200, "headers": {}, "duration_ns": 900_000_001 + number, "stream": False,
                "body": {"text": answered.decode()},
            }  # fmt: skip
            tape.append(EventKind.HTTP_RESPONSE, answer)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
