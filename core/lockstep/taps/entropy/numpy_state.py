"""numpy's global generator, where numpy was loaded before the session.

In a launched program it seeds itself by `secrets` when it is imported, and is covered by that. In an
in-process session its state is a fact of the start. Only the default generator type is known; another
one, set by the program, is as it is.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from lockstep.session.lanes import ours

_DEFAULT = "MT19937"


def facts() -> dict[str, Any] | None:
    """The state of the global generator, None where numpy.random is not loaded or not of the default type."""
    module = _loaded()
    state = module.get_state(legacy=False) if module is not None else None
    if state is None or state["bit_generator"] != _DEFAULT:
        return None
    return {
        "key": state["state"]["key"].astype("<u4").tobytes(),
        "position": int(state["state"]["pos"]),
        "has_gauss": int(state["has_gauss"]),
        "gauss": float(state["gauss"]),
    }


def restore(recorded: dict[str, Any]) -> None:
    """Sets the global generator to a state from `facts`. Loads numpy as the recording had: what it draws
    when it is imported is nobody's read."""
    module = ours(import_module)("numpy.random")
    numpy = sys.modules["numpy"]

    module.set_state(
        {
            "bit_generator": _DEFAULT,
            "state": {
                "key": numpy.frombuffer(recorded["key"], "<u4").astype("uint32"),
                "pos": recorded["position"],
            },
            "has_gauss": recorded["has_gauss"],
            "gauss": recorded["gauss"],
        }
    )


def _loaded() -> Any:
    return sys.modules.get("numpy.random") if "numpy.random.mtrand" in sys.modules else None
