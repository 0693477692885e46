"""What the audit hook names, and what it leaves alone."""

import platform
import sys
from typing import Any


def _processor() -> Any:
    platform._uname_cache = None  # type: ignore[attr-defined]
    return platform.uname().processor


def named(report: Any) -> set[tuple[str, str]]:
    return {(item.source, item.detail.partition(" (")[0]) for item in report.uncovered}


def test_what_python_itself_asks_of_the_machine_is_not_named(session: Any) -> None:
    """Every SDK that tells its platform runs `uname -p`: no run would be identical."""
    called: set[str] = set()
    sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_qualname))
    try:
        report = session.record(_processor)
    finally:
        sys.setprofile(None)
    assert "Popen._execute_child" in called
    assert report.uncovered == ()
