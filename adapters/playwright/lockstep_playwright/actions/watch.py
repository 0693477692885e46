"""Sees what is said between Playwright's client and its driver about one browser context, as actions."""

from __future__ import annotations

from typing import Any

from lockstep_playwright.actions.model import Told


class Watch:
    """See the package. One for each context."""

    def __init__(self, context: Any, told: Told, *, attachments: bool = True) -> None:
        """
        context      a `BrowserContext` of either API
        told         hears of its actions
        attachments  whether an accessibility snapshot and a picture are taken behind each action that changed the page
        """
        self._context = getattr(context, "_impl_obj", context)
        self._told = told
        self._attachments = attachments

    async def attach(self) -> None:
        """Begins to watch. Raises AdapterError where this version of Playwright lacks what is needed."""
        raise NotImplementedError  # the interface, for those who write to it: follows within the hour

    async def drain(self) -> None:
        """Returns once all that has ended is told. It does not wait longer than a moment for a page."""
        raise NotImplementedError

    def detach(self) -> None:
        """Watches no longer. What is still on is not told."""
        raise NotImplementedError
