"""Recorded teams."""

import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What Lockstep's logger says."""
    caplog.set_level(logging.WARNING, "lockstep")
    return caplog
