"""Makes the probe that an order asks for, in the process where it is called.

Everything that makes probes of commands or of `module:name` comes here: `lockstep bisect` itself, the workers of
`--jobs`, and other machines.
"""

from __future__ import annotations

from lockstep.debugger import forked_probes
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.debugger.replay import directory
from lockstep.launch.nursery import Nursery


def perform(store: str, order: Order, *, output: int | None = None, nursery: Nursery | None = None) -> Made:
    """Runs the probe to its end. Its branch stays in the store.

    store    path of the store
    output   file descriptor for what a command prints, None leaves ours; what a target prints goes to stderr
    nursery  of a command: starts its interpreter once for many probes, if it is one that loads us. Without one it is
             started for each

    Raises EditError where the run's framework cannot give the answers of the cut; what `lockstep.debugger.fork.fork`
    raises; and KeyboardInterrupt where the probe was asked to end before its end: then it says nothing, and what it has
    left in the store is a branch that was interrupted.
    """
    with directory(order.directory):
        if not order.target:
            return forked_probes.probe(store, order, output=output, nursery=nursery)
        from lockstep import inprocess_target  # what frameworks need is not loaded for commands

        return inprocess_target.probe(store, order)
