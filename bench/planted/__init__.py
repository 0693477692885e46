"""How often bisect names a fault that was planted in a run: of agents in each framework, whose provider rolls dice.

These are planted faults on runnable agents. The figures say how well a search does that can run the agent again, and
are not to be compared with those of benchmarks in which somebody only reads the log of a run that went wrong.
"""
