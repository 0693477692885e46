"""What a session does once its program has loaded Playwright, and before it has started a driver."""

from __future__ import annotations

from lockstep_playwright.wire import files, language, numbers


def attach() -> None:
    """Has the core understand what the client says to its driver."""
    language.learn_it()
    files.come_through_the_pipe()
    numbers.count_by_connection()
