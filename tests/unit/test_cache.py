"""Where the cache is."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.cache import cache_root


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path / "here"))

    assert cache_root() == tmp_path / "here"
    assert not cache_root().exists()


def test_without_it_the_users_cache_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMASWEEP_CACHE")

    assert cache_root().is_absolute()
    assert "llamasweep" in cache_root().parts
