"""Random concurrent agent programs: what the exactness of a replay is measured with.

Nothing in this package knows Lockstep. `tree` makes a program from a seed, `asynchronous`,
`threaded` and `bridged` run it, `server` answers it, `run` is the command line.
"""
