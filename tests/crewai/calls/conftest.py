"""Calls of models, tools and humans, made by hand where a crew would make them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from asked import Tape


@pytest.fixture
def tape() -> Tape:
    """What is recorded, and served again."""
    return Tape()
