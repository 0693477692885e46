"""Native runs: what one thread of a framework leaves behind when no session is on, and who answers its calls then.

A session takes over a whole process, with taps, lanes and a gate. A native run has none of these: its framework says
which strand makes a call (the lane), and which checkpoint ends a step. So any process may go on with a run at any
time, and several may at once.

    journal = Journal.open(store, "langgraph/t-91", meta)       calls run for real and are recorded
    journal = Memory()                                          the same without a store
    calls = Server(Record(reader).turn(2))                      calls are served, nothing runs
    calls = Forking(journal, Record(reader), plan)              served up to a place, then as its tail has it

All four are `Calls`: `calls.call(lane, kind)` gives a `lockstep.session.call.Call`, whose surface is the one that taps
use. Nothing here knows a framework.
"""

from lockstep.session.native.calls import Calls
from lockstep.session.native.journal import Journal
from lockstep.session.native.memory import Memory

__all__ = ["Calls", "Journal", "Memory"]
