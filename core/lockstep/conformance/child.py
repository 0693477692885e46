"""One recording in a process of its own, for the tests in which that process is killed.

python -m lockstep.conformance.child JOB
"""

from __future__ import annotations

import sys

import msgspec

from lockstep.conformance.subject import Work
from lockstep.conformance.suite import find


def main() -> None:
    """Records what the job file says."""
    with open(sys.argv[1], "rb") as file:
        reference, work = msgspec.json.decode(file.read(), type=tuple[str, Work])
    find(reference).record(work)


if __name__ == "__main__":
    main()
