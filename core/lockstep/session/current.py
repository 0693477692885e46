"""The one session of this process, where every tap looks first. Kept free of imports: it is hot."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.session.session import Session

session: Session | None = None
