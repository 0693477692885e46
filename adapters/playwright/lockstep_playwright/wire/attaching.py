"""What a session does once its program has loaded Playwright, and before it has started a driver."""

from __future__ import annotations

import os

from lockstep.session import sites
from lockstep_playwright import blocks
from lockstep_playwright.wire import files, language, numbers, steps, turns

sites.pass_over(os.path.dirname(os.path.dirname(__file__)))


def attach() -> None:
    """Has the core understand what the client says to its driver, and see what the program does with its browser and
    how it leaves it."""
    language.learn_it()
    files.come_through_the_pipe()
    numbers.count_by_connection()
    turns.count_by_own_callbacks()
    steps.watch_contexts()
    blocks.watch()
