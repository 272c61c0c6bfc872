"""Builds, models and groups made of plain facts, and the recorded calls, for tests of the engines room."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.unit.sweep import subjects_made

from llamasweep.builds.help_text import parse_help
from llamasweep.sweep.cell import Block, Cell, Group, Test, ordered_axes
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, Model

GOLDEN = Path(__file__).parents[2] / "golden"
HELP_NAMES = tuple(sorted(p.stem for p in (GOLDEN / "help").glob("*.txt")))
RECORDED = GOLDEN / "llama_bench"
RECORDED_BUILDS = ("b4748", "b8247", "b11434")


def build(name: str = "b11434", **changes: Any) -> Build:
    """A build that knows what the recorded help of that name lists; it has no GPU."""
    known = parse_help((GOLDEN / "help" / f"{name}.txt").read_text())
    made = Build(
        label=name,
        path="/b/llama-bench",
        content_hash=name.encode().hex().ljust(32, "0")[:32],
        argv_prefix=("/b/llama-bench",),
        options=known.options,
        option_help=known.option_help,
        number=int(name[1:]) if name.startswith("b") else None,
        backends=("CPU",),
        devices=(),
    )
    return replace(made, **changes)


def gpu_build(name: str = "b11434", **changes: Any) -> Build:
    return build(name, **({"backends": ("CUDA",), "devices": ("CUDA0", "CUDA1")} | changes))


def model(head_size_k: int | None = 128, head_size_v: int | None = 128) -> Model:
    made = subjects_made.model("m")
    assert made.facts is not None
    return replace(
        made, facts=replace(made.facts, head_size_k=head_size_k, head_size_v=head_size_v)
    )


PP, TG, PG = (
    Test(n_prompt=16, n_gen=0),
    Test(n_prompt=0, n_gen=8),
    Test(n_prompt=16, n_gen=8),
)


def block(*tests: Test, **axes: Scalar | tuple[Scalar, ...]) -> Block:
    lists = {k: v if isinstance(v, tuple) else (v,) for k, v in axes.items()}
    return Block(model=model().source, axes=ordered_axes(lists), tests=tests or (PP, TG))


def group(of: Block, on: Build | None = None) -> Group:
    return Group(build=on or build(), model=model(), block=of)


def cell(test: Test = PP, **params: Scalar) -> Cell:
    axes = ordered_axes({k: (v,) for k, v in params.items()})
    return Cell(model=model().source, test=test, params=tuple((k, v[0]) for k, v in axes))


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recorded call. exit_code is the shell's: 128 + n for signal n."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def stdout_lines(self) -> list[bytes]:
        return self.stdout.split(b"\n")

    @property
    def stderr_lines(self) -> list[str]:
        return self.stderr.decode("utf-8", "replace").splitlines()


def recording(build_name: str, call: str) -> Recording:
    stem = RECORDED / build_name / call
    return Recording(
        argv=tuple(stem.with_suffix(".argv").read_text().split()),
        exit_code=int(stem.with_suffix(".rc").read_text()),
        stdout=stem.with_suffix(".stdout").read_bytes(),
        stderr=stem.with_suffix(".stderr").read_bytes(),
    )


CALLS = tuple(sorted(p.stem for p in (RECORDED / "b11434").glob("*.argv")))
