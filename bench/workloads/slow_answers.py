"""An agent that waits for its model: what it is told goes into its next question, and one bad answer spoils the end.

slow_answers.py URL STEPS says       how it ends says what the bad answer said
slow_answers.py URL STEPS silent     how it ends says nothing of it
"""

from __future__ import annotations

import http.client
import json
import sys
from urllib.parse import urlsplit


class Overcharged(Exception):
    """What the bad answer leads to."""


def main(url: str, steps: int, end: str) -> None:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    owed, note = 0, ""
    for number in range(1, steps + 1):
        asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{number} {note}"}]}
        connection.request("POST", place.path, json.dumps(asked), {"content-type": "application/json"})
        told = json.loads(json.loads(connection.getresponse().read())["choices"][0]["message"]["content"])
        owed, note = max(owed, told["owed"]), told["note"]
    if owed > 1000:
        raise Overcharged(owed if end == "says" else "the total is too high")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
