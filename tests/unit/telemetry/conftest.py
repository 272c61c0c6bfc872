"""Fixtures of the telemetry room."""

from __future__ import annotations

from collections.abc import Callable

import pynvml
import pytest
from tests.unit.telemetry.synthetic_nvml import SyntheticGpu, SyntheticNvml


@pytest.fixture
def install_nvml(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SyntheticNvml]:
    """Puts a synthetic library below the real pynvml: `install_nvml(SyntheticGpu(), …)`."""

    def install(*gpus: SyntheticGpu, unknown: frozenset[str] = frozenset()) -> SyntheticNvml:
        library = SyntheticNvml(*gpus, unknown=unknown)
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        return library

    return install
