"""SweepSpec: a sweep file as understood, in lists and plain values with units in their names.

Made by `sweep.schema`; knows nothing of YAML, files or machines. Words such as `physical` stay
words here and become numbers in `sweep.matrix`, where the machine's meaning of them is passed in.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from llamasweep.sweep.cell import Test
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Quality

AxisValues = tuple[tuple[str, tuple[Scalar, ...]], ...]
"""(canonical name, values) in the order of `PARAMETERS`."""

Operator = Literal["in", ">", ">=", "<", "<=", "!="]
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "!=": operator.ne,
}


AUTO_FIRST_ROUNDS = 20
"""Of `rounds: auto`: in so many rounds at most a change is found; rounds from this index on are fresh and confirm it."""
AUTO_ROUNDS = 2 * AUTO_FIRST_ROUNDS


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEntry:
    """One entry of `models`; exactly one of path, glob, synth, ollama and served is set; beside served a path may stand.

    path, glob: as written, with `~`, variables and `{quant}` still in them. synth: name of a
    shape. quants: fill `{quant}` or say what to generate. label: as given, None to take the file's
    or the shape's name. ollama: name of a model that Ollama has. served: name under which a server has it.
    """

    path: str | None = None
    glob: str | None = None
    synth: str | None = None
    ollama: str | None = None
    served: str | None = None
    quants: tuple[str, ...] = ()
    label: str | None = None
    quality: Quality | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """What an `exclude` asks of one key.

    values: the alternatives of "in", all those of "!=" that it must not be, else the one value compared with.
    """

    operator: Operator = "in"
    values: tuple[Scalar, ...]

    def holds(self, value: Scalar) -> bool:
        """Whether a cell's value meets it; text and numbers are never ordered together."""
        if self.operator == "in":
            return any(_same(value, wanted) for wanted in self.values)
        if self.operator == "!=":
            return not any(_same(value, wanted) for wanted in self.values)
        wanted = self.values[0]
        if isinstance(value, str | bool) or isinstance(wanted, str | bool):
            return False
        return _COMPARE[self.operator](value, wanted)


def _same(value: Scalar, wanted: Scalar) -> bool:
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class Include:
    """One entry of `include`: keys that must match (axes of the matrix) and keys to add."""

    axes: AxisValues = ()
    models: tuple[str, ...] = ()
    quants: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Exclude:
    """One entry of `exclude`: a cell is left out if every condition holds.

    where: key -> condition; keys are canonical names and model, quant, build, test, n_prompt,
    n_gen.
    """

    where: tuple[tuple[str, Condition], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cooldown:
    """Pause between groups: `wait_s`, which is the cap where a sensor has to fall below a limit."""

    wait_s: float = 0.0
    until_gpu_below_c: float | None = None
    until_cpu_below_c: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerWish:
    """How a server is asked. base_url: of one that is there, None to look for it or start one. key_variable: of the environment.

    pull: a model that Ollama lacks may be fetched from the network.
    """

    mode: Literal["verbose", "api"] = "verbose"
    template: Literal["raw", "own"] = "raw"
    base_url: str | None = None
    key_variable: str | None = None
    pull: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepSpec:
    """Everything a sweep file says, after `extends` and defaults.

    file: path as given, None where there is none. builds: labels or paths; empty = the one on
    PATH, else the installed one. axes: product; `kv_types` is a coupled axis that sets type_k and
    type_v to the same value. rounds: whole passes, "auto" = until each cell of two builds is clear.
    discard: "auto" or a number of leading
    repetitions. timeout_s: per cell, None = from history or prediction. max_time_s, stop_at
    ("HH:MM", local time): None = no limit. address_space_limit_bytes: RLIMIT_AS of the engine,
    None = none. telemetry_interval_s: None = off. bandwidth_bytes_per_s: given memory bandwidth
    for the ceilings, peak_flop_per_s: given peak compute rate; None = not given. mode, template, base_url, key_variable, pull:
    of servers, see `ServerWish`; None = its default. same_weights: llama-bench beside Ollama, True = of the default build.
    """

    version: int = 1
    name: str
    file: str | None = None
    engine: str = "llama-bench"
    models: tuple[ModelEntry, ...]
    builds: tuple[str, ...] = ()
    tests: tuple[Test, ...]
    axes: AxisValues = ()
    kv_types: tuple[str, ...] = ()
    include: tuple[Include, ...] = ()
    exclude: tuple[Exclude, ...] = ()
    repetitions: int = 5
    rounds: int | Literal["auto"] = 1
    order: Literal["grouped", "interleaved"] = "grouped"
    isolation: Literal["group", "cell"] = "group"
    seed: int = 0
    warmup: bool = True
    discard: Literal["auto"] | int = "auto"
    timeout_s: float | None = None
    max_time_s: float | None = None
    stop_at: str | None = None
    address_space_limit_bytes: int | None = None
    cooldown: Cooldown = Cooldown()
    env: tuple[tuple[str, str], ...] = ()
    extra_args: tuple[str, ...] = ()
    telemetry_interval_s: float | None = 0.25
    on_finish: tuple[str, ...] = ()
    bandwidth_bytes_per_s: float | None = None
    peak_flop_per_s: float | None = None
    mode: Literal["verbose", "api"] | None = None
    template: Literal["raw", "own"] | None = None
    base_url: str | None = None
    key_variable: str | None = None
    pull: bool = False
    same_weights: bool | str = False

    @property
    def server(self) -> ServerWish:
        """How a server is to be asked."""
        return ServerWish(
            mode=self.mode or "verbose",
            template=self.template or "raw",
            base_url=self.base_url,
            key_variable=self.key_variable,
            pull=self.pull,
        )

    @property
    def n_rounds(self) -> int:
        """Whole passes at most: given, or those that find a change and those that confirm it."""
        return AUTO_ROUNDS if self.rounds == "auto" else self.rounds

    def to_resolved_dict(self) -> dict[str, Any]:
        """Plain JSON values for run.json: every field, None included."""
        plain = _plain(self)
        assert isinstance(plain, dict)  # noqa: S101
        plain["axes"] = {name: list(values) for name, values in self.axes}
        plain["env"] = dict(self.env)
        plain["tests"] = [test.label for test in self.tests]
        return plain


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value
