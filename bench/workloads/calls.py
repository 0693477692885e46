"""An agent of nothing but model calls.    calls.py URL COUNT"""

from __future__ import annotations

import asking
import httpx
from given import arguments


def main(url: str, count: int) -> None:
    with httpx.Client() as client:
        for number in range(count):
            client.post(url, json=asking.body(number)).json()


if __name__ == "__main__":
    main(*arguments(str, int))  # type: ignore[arg-type]
