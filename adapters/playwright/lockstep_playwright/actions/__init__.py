"""The agent's actions on a browser, seen without a changed line of its code, in Playwright's sync and async APIs.

    watch = Watch(context, told)        # a context of either API, or its implementation
    await watch.attach()                # in Playwright's loop; sync API: context._sync(watch.attach())
    …                                   # the program acts; `told` hears of it
    await watch.drain()                 # what is still being taken is told; also done before a context closes
    watch.detach()

`model` has what is told, and to whom.
"""

from lockstep_playwright.actions.model import Action, Done, Given, Told
from lockstep_playwright.actions.watch import Watch

__all__ = ["Action", "Done", "Given", "Told", "Watch"]
