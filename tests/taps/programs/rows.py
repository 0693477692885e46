"""Runs the `row_` functions of a program and prints what each returned, as a line of JSON."""

import json
import sys
from collections.abc import Callable
from typing import Any


def shape(value: Any) -> Any:
    """The types of a value: what must be the same bare and recorded, where the value itself cannot be."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(shape, value)]
    if isinstance(value, (str, bytes)):
        return [type(value).__name__, len(value)]
    return f"{type(value).__module__}.{type(value).__qualname__}"


def run(names: dict[str, Any]) -> None:
    rows: dict[str, Callable[[], Any]] = {
        name.removeprefix("row_"): row for name, row in names.items() if name.startswith("row_")
    }
    for name, row in rows.items():
        try:
            value = row()
        except Exception as error:
            value = error
        print(json.dumps([name, repr(value), shape(value)]))
    sys.stdout.flush()
