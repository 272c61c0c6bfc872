"""What is measured: a model and a build, as plain facts.

Resolving them (reading headers, probing binaries) happens in `run.resolve`; here are only the values.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamasweep.gguf.facts import ModelFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Quality:
    """What an evaluation table says of a model; carried through to the report, never computed here."""

    metric: str
    value: float
    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """A model as the sweep names it, one per file.

    label: what people see; made unique by the reader of the sweep. path: file (first shard of a split model),
    None for a synthetic one that is not written yet. synth: name of the shape, None for a real file.
    quant_asked: the `quants` entry it came from, None where there is none; what is recorded as the
    quantisation comes from the file. served: name under which a server has it, None for a file that is handed over.
    """

    label: str
    path: str | None = None
    synth: str | None = None
    quant_asked: str | None = None
    quality: Quality | None = None
    served: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A model source with what its file says.

    content_hash: 32 hex digits over header, samples of the tensor data and size; None where the file cannot be
    read. facts: None likewise, and for a model of a server whose file nobody can look at. problem: why it cannot be
    measured (missing, truncated …), None if it can. n_file_bytes: of all shards together.
    """

    source: ModelSource
    content_hash: str | None
    facts: ModelFacts | None
    n_file_bytes: int | None = None
    problem: str | None = None

    @property
    def identity(self) -> str:
        """What stands for this model in `cell_id`: its content, or its label where there is no content."""
        if self.content_hash is None and self.source.served is not None:
            return f"served:{self.source.served}"
        return self.content_hash or f"unreadable:{self.source.label}"

    @property
    def reason_against(self) -> str | None:
        """Why it cannot be measured; None where it can."""
        if self.problem is not None or self.facts is not None or self.source.served is not None:
            return self.problem
        return "its header could not be read"


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One llama-bench binary; or the program of a server, or a server that is there: path is then its address.

    label: unique name for people. path: absolute. content_hash: 32 hex digits over the binary. argv_prefix:
    the words that start it, normally `(path,)`, `(path, "bench")` for the unified binary. number, commit: as the
    binary tells, None where it does not (build_number 0 and "unknown" are None). version: first line of
    `--version`, None likewise. options: every flag spelling that its `--help` lists, such as `-fa`,
    `--flash-attn`. option_help: flag -> the rest of its help line (value domain and default). backends: as
    printed, such as ("CPU",) or ("CUDA",); None where unknown. devices: names from `--list-devices`, empty for
    CPU only, None where the build cannot tell. default_threads: what it takes on this machine unless told, None
    where its help does not say. cpu_features: instructions that it was compiled for, as Linux names them; None
    where no program of the build tells. companion: llama-bench that measures the same weights beside a server; None = none.
    """

    label: str
    path: str
    content_hash: str
    argv_prefix: tuple[str, ...]
    options: frozenset[str]
    option_help: tuple[tuple[str, str], ...] = ()
    number: int | None = None
    commit: str | None = None
    version: str | None = None
    backends: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    default_threads: int | None = None
    cpu_features: tuple[str, ...] | None = None
    companion: Build | None = None

    def knows(self, flag: str) -> bool:
        """Whether this binary's own help lists the flag."""
        return flag in self.options

    @property
    def is_cpu_only(self) -> bool:
        """True where the build says that it has no device, or names no backend but CPU and BLAS."""
        if self.devices is not None:
            return not self.devices
        return self.backends is not None and set(self.backends) <= {"CPU", "BLAS"}
