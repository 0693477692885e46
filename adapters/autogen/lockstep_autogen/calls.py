"""What was recorded of a call, as AutoGen's own objects."""

from __future__ import annotations

import os
from typing import Any

from lockstep.log.model import Value
from lockstep.session import sites
from lockstep.session.native import answers

sites.pass_over(os.path.dirname(__file__))


def made(call: Any, make: Any, value: Value) -> Any:
    """An object of AutoGen's, of what was recorded or what somebody wrote in its place."""
    return answers.made(call, make, value, framework="AutoGen")
