"""The peer's question to a tape: 0 is good, anything else bad.    overcharged.py TAPE"""

from __future__ import annotations

import sys

from lockstepd.bisect import final_state_of

if __name__ == "__main__":
    state = final_state_of(sys.argv[1])
    sys.exit(state is None or state["owed"] > 1000)
