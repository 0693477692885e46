"""The channels that a team's state is recorded in: for what takes it, restores it and writes it.

    "thread"          the manager's messages
    "manager"         what else it keeps: whose turn it is, how many there were; with its name
    "heard"           what each call of the condition brought since that was last reset, as [first, stop] of the thread:
                      AutoGen saves nothing of a condition, so it is told this again where a state is restored
    "writer.context"  what an agent's model has been told
    "writer.buffer"   what the agent has not heard yet
    "writer.state"    all of an agent that keeps something of its own
    "inner/…"         the same of a team among the participants
    "mind/inner/…"    and of one that an agent is made of
    "state"           all of a team whose agents are in other processes

of a single agent without its name. Names are quoted as in lanes.
"""

from __future__ import annotations

THREAD, MANAGER, HEARD, WHOLE = "thread", "manager", "heard", "state"
CONTEXT, BUFFER, STATE = ".context", ".buffer", ".state"
INSIDE = "/"
NAME = "name"  # of a manager, by which its state is saved
# What a graph's manager forgets to save, so that circles end too early after a load (microsoft/autogen #7043).
TRIGGERED = "triggered_activation_groups"
