"""A build that sees no device, and one with a single GPU."""

from __future__ import annotations

from dataclasses import replace

from llamasweep.sweep.subjects import Build

CPU_BUILD = Build(
    label="b",
    path="/b",
    content_hash="0" * 32,
    argv_prefix=("/b",),
    options=frozenset(),
    devices=(),
)
GPU_BUILD = replace(CPU_BUILD, devices=("CUDA0",), backends=("CUDA",))
