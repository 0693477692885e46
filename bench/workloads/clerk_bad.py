"""Whether the clerk's total is another one than RIGHT, as the peer asks: 0 is good.    RIGHT=… clerk_bad.py TAPE"""

from __future__ import annotations

import os
import sys

from lockstepd.bisect import final_state_of

if __name__ == "__main__":
    state = final_state_of(sys.argv[1])
    sys.exit(state is None or state["total"] != int(os.environ["RIGHT"]))
