"""Recorded teams, and their states."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import scripted_agents

from lockstep.testing import Provider


@pytest.fixture
def settled(provider: Provider) -> Provider:
    """Equal requests get equal answers: a tail is as recorded exactly if all that it asked is."""
    provider.script = scripted_agents.settled
    return provider
