"""The cache of generated models: reuse, eviction by age of use, nothing in use ever thrown out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.gguf.micro import use_micro_shapes

from llamasweep.errors import ModelSynthError
from llamasweep.gguf import synth
from llamasweep.gguf.synth import cached_model, cached_models, planned_file_bytes


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use_micro_shapes(monkeypatch)
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path))
    yield
    _end_of_process()


def _end_of_process() -> None:
    """What the kernel does with the locks when a process ends."""
    for file in synth._in_use.values():
        file.close()
    synth._in_use.clear()


def _used_at(path: Path, seconds: int) -> None:
    os.utime(path, ns=(seconds * 10**9, path.stat().st_mtime_ns))


def test_a_model_is_written_once_and_then_reused() -> None:
    first = cached_model("micro", "Q8_0")
    written = first.stat()

    second = cached_model("MICRO", "q8_0", on_progress=lambda *_: pytest.fail("written again"))

    assert second == first
    assert (second.stat().st_ino, second.stat().st_mtime_ns) == (
        written.st_ino,
        written.st_mtime_ns,
    )


def test_seeds_shapes_and_quantisations_are_kept_apart() -> None:
    paths = {
        cached_model("micro", "Q8_0"),
        cached_model("micro", "Q8_0", seed=1),
        cached_model("micro", "Q4_0"),
        cached_model("micro-tied", "Q8_0"),
    }

    assert len(paths) == 4
    assert set(cached_models()) == paths


def test_a_file_of_the_wrong_size_is_written_again() -> None:
    path = cached_model("micro", "Q8_0")
    _end_of_process()
    path.write_bytes(b"half")

    cached_model("micro", "Q8_0")

    assert path.stat().st_size == planned_file_bytes("micro", "Q8_0")


def test_the_one_used_longest_ago_goes_first() -> None:
    old, older, young = (cached_model("micro", "Q8_0", seed=seed) for seed in range(3))
    _end_of_process()
    for path, seconds in ((old, 200), (older, 100), (young, 300)):
        _used_at(path, seconds)

    new = cached_model("micro", "Q8_0", seed=3, cap_bytes=3 * old.stat().st_size)

    assert set(cached_models()) == {old, young, new}


def test_using_a_model_again_makes_it_young() -> None:
    first, second = (cached_model("micro", "Q8_0", seed=seed) for seed in range(2))
    _used_at(first, 100)
    _used_at(second, 200)
    cached_model("micro", "Q8_0", seed=0)
    _end_of_process()

    new = cached_model("micro", "Q8_0", seed=2, cap_bytes=2 * first.stat().st_size)

    assert set(cached_models()) == {first, new}


def test_models_in_use_are_never_evicted_and_then_nothing_else_is() -> None:
    held = cached_model("micro", "Q8_0")
    n_bytes = held.stat().st_size

    with pytest.raises(ModelSynthError, match="no room for") as caught:
        cached_model("micro", "Q8_0", seed=1, cap_bytes=n_bytes)

    assert "LLAMASWEEP_MODEL_CACHE_GIB" in str(caught.value.hint)
    assert cached_models() == [held]


def test_a_model_larger_than_the_cap_evicts_nothing() -> None:
    kept = cached_model("micro", "Q4_0")
    _end_of_process()

    with pytest.raises(ModelSynthError, match="no room for"):
        cached_model("micro", "Q8_0", cap_bytes=1000)

    assert cached_models() == [kept]


def test_the_cap_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMASWEEP_MODEL_CACHE_GIB", "0.5")

    assert synth.cache_cap_bytes() == 2**29


@pytest.mark.parametrize("text", ["much", "-1", "inf", "nan"])
def test_a_cap_that_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LLAMASWEEP_MODEL_CACHE_GIB", text)

    with pytest.raises(ModelSynthError, match="is no size"):
        synth.cache_cap_bytes()


def test_what_killed_writers_left_behind_is_removed_when_it_is_a_day_old() -> None:
    folder = synth.models_dir()
    folder.mkdir(parents=True)
    abandoned, fresh = folder / ".a.gguf.x.partial", folder / ".b.gguf.y.partial"
    abandoned.write_bytes(b"")
    fresh.write_bytes(b"")
    os.utime(abandoned, (1, 1))

    cached_model("micro", "Q8_0")

    assert not abandoned.exists()
    assert fresh.exists()
