"""Fixtures of the tests that run whole sweeps on fake engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.running import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder to work in, apart from builds and models."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder=folder)
