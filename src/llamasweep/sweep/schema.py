"""The sweep file's keys and rules: text -> SweepSpec, every fault at once, and JSON Schema for editors.

Reads no file: `extends` is answered by the caller's `base_loader`. Axes, tests, includes and
excludes are understood by `sweep.axes`, YAML by `sweep.document`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from llamasweep.errors import SweepFileError, SweepProblem, quoted
from llamasweep.sweep import axes as ax
from llamasweep.sweep import spec as sp
from llamasweep.sweep import spellings as spell
from llamasweep.sweep.cell import Test
from llamasweep.sweep.document import Document, merged, read_document
from llamasweep.sweep.editor_schema import DURATION, with_axes
from llamasweep.sweep.parameters import CANONICAL
from llamasweep.sweep.rules import check_env, check_models, check_server, dicts
from llamasweep.sweep.subjects import Quality
from llamasweep.units import parse_bytes, parse_bytes_per_s, parse_flop_per_s, parse_seconds

BaseLoader = Callable[[str, str], tuple[str, str]]
"""(name as written in `extends`, file that says so) -> (text, file name of the base).

Raises OSError or ValueError with a sentence where there is none.
"""

MAX_EXTENDS = 16
DEFAULT_TESTS = (Test(n_prompt=512, n_gen=0), Test(n_prompt=0, n_gen=128))


_SWITCH_SCHEMA = {"enum": [True, False, "on", "off", "yes", "no"]}


def _one_or_many(item: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [item, {"type": "array", "items": item}]}


Text = Annotated[str, BeforeValidator(spell.text)]
Duration = Annotated[float, BeforeValidator(parse_seconds), WithJsonSchema(DURATION)]
Switch = Annotated[bool, BeforeValidator(spell.switch), WithJsonSchema(_SWITCH_SCHEMA)]
Whole = Annotated[int, BeforeValidator(spell.whole), WithJsonSchema({"type": "integer"})]
Words = Annotated[
    list[Annotated[str, BeforeValidator(spell.word)]],
    BeforeValidator(spell.listed),
    WithJsonSchema(_one_or_many({"type": ["string", "integer"]})),
]
Argv = Annotated[list[Annotated[str, BeforeValidator(spell.word)]], Field(max_length=256)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QualityKeys(_Strict):
    metric: Text = Field(description="name of the metric, such as perplexity or MMLU")
    value: float = Field(description="its value", allow_inf_nan=False)
    source: Text | None = Field(None, description="where the value comes from")


class ModelKeys(_Strict):
    path: Text | None = Field(
        None,
        description="GGUF file (first shard of a split one); ~, $NAME and {quant} are filled in",
    )
    glob: Text | None = Field(None, description="pattern of GGUF files; ** goes into folders")
    synth: Text | None = Field(None, description="shape to generate with random weights")
    ollama: Text | None = Field(None, description="name of a model that Ollama has")
    served: Text | None = Field(
        None, description="name under which an OpenAI-compatible server has it"
    )
    quants: Words = Field(
        [], description="fill {quant}, or say what to generate (Q4_K_M if left out)"
    )
    label: Text | None = Field(None, description="name that people see")
    quality: QualityKeys | None = Field(None, description="what an evaluation table says")


class CooldownKeys(_Strict):
    wait: Duration = Field(120.0, description="flat pause, or the cap where a limit is given")
    gpu_below: float | None = Field(None, gt=0, le=120, description="until the GPU is cooler, °C")
    cpu_below: float | None = Field(None, gt=0, le=120, description="until the CPU is cooler, °C")


class TelemetryKeys(_Strict):
    interval: Annotated[Duration, Field(ge=0.02, le=3600)] | None = Field(
        0.25, description="time between readings"
    )


class SweepKeys(_Strict):
    """A llamasweep sweep file. Axes, includes and excludes are checked by `sweep.axes`."""

    version: Literal[1] = Field(1, description="version of this format")
    extends: Text | None = Field(None, description="sweep file to start from, relative to this one")
    name: Annotated[str, BeforeValidator(spell.word), Field(max_length=200)] | None = Field(
        None, description="name of the sweep; the file's name if left out"
    )
    engine: Annotated[
        Literal["llama-bench", "llama-server", "llama-batched-bench", "ollama", "openai"],
        BeforeValidator(spell.engine),
    ] = Field("llama-bench", description="program that measures, or server that is asked")
    mode: Literal["verbose", "api"] | None = Field(
        None, description="how Ollama is asked: by `ollama run --verbose` (default) or its API"
    )
    base_url: Text | None = Field(None, description="address of a server that is there")
    key_variable: Text | None = Field(
        None, description="variable of the environment that holds the server's key"
    )
    template: Literal["raw", "own"] | None = Field(
        None, description="prompts as they are (default), or in the model's own template"
    )
    pull: Switch = Field(False, description="let Ollama fetch models from the network")
    same_weights: Annotated[
        bool | str,
        BeforeValidator(spell.switch_or_name),
        WithJsonSchema({"type": ["boolean", "string", "integer"]}),
    ] = Field(
        False, description="llama-bench on Ollama's own file beside it: on, or the name of a build"
    )
    models: Annotated[list[ModelKeys], Field(min_length=1)] = Field(description="what is measured")
    builds: Words = Field(
        [], description="names known to `llamasweep builds`, or paths of llama-bench binaries"
    )
    tests: Any = Field(None, description="pp512, tg128, pg512+128; default pp512 and tg128")
    matrix: dict[str, Any] = Field({}, description="axes whose product is measured")
    include: list[dict[str, Any]] = Field([], description="extra keys on matching cells, or cells")
    exclude: list[dict[str, Any]] = Field([], description="partial cells that are left out")
    repetitions: Annotated[Whole, Field(ge=1, le=10_000)] = Field(
        5, description="timed repetitions of each cell"
    )
    rounds: Annotated[
        Annotated[int, Field(ge=1, le=1_000)] | Literal["auto"], BeforeValidator(spell.rounds)
    ] = Field(1, description="whole passes over the sweep; auto: until two builds are told apart")
    order: Literal["grouped", "interleaved"] = Field(
        "grouped", description="few model loads, or builds in turns for A/B"
    )
    isolation: Literal["group", "cell"] = Field(
        "group", description="cells that share one engine process: a group, or one"
    )
    seed: Annotated[Whole, Field(ge=0, le=2**63 - 1)] = Field(
        0, description="of the random order of interleaved rounds"
    )
    warmup: Switch = Field(True, description="one untimed pass before each cell")
    discard: Annotated[
        Any,
        BeforeValidator(spell.discard),
        WithJsonSchema({"anyOf": [{"enum": ["auto", "off"]}, {"type": "integer", "minimum": 0}]}),
    ] = Field("auto", description="leading repetitions left out of the median")
    timeout: Annotated[Duration, Field(gt=0)] | None = Field(
        None, description="longest time of one cell; from history or prediction if left out"
    )
    max_time: Annotated[Duration, Field(gt=0)] | None = Field(
        None, description="longest time of the whole run; the next start goes on"
    )
    stop_at: Annotated[str, BeforeValidator(spell.clock)] | None = Field(
        None, description="time of day to stop at, HH:MM, local time"
    )
    address_space_limit: (
        Annotated[
            int,
            BeforeValidator(parse_bytes),
            Field(gt=0),
            WithJsonSchema({"type": ["string", "integer"], "examples": ["8 GiB"]}),
        ]
        | None
    ) = Field(None, description="RLIMIT_AS of the engine; mapped weights count")
    cooldown: Annotated[CooldownKeys, BeforeValidator(spell.cooldown)] = Field(
        CooldownKeys.model_validate({"wait": 0}),
        description="pause between groups, flat or until a sensor is cool",
    )
    env: dict[str, Annotated[str, BeforeValidator(spell.word)]] = Field(
        {}, description="environment of the engine"
    )
    extra_args: Argv = Field([], description="arguments added to every engine call")
    telemetry: Annotated[TelemetryKeys, BeforeValidator(spell.interval)] = Field(
        TelemetryKeys.model_validate({}),
        description="time between readings beside the engine, or off",
    )
    on_finish: Argv = Field([], description="program and arguments to run at the end")
    bandwidth: (
        Annotated[
            float,
            BeforeValidator(parse_bytes_per_s),
            WithJsonSchema({"type": ["string", "number"], "examples": ["51.2 GB/s"]}),
        ]
        | None
    ) = Field(None, description="memory bandwidth for the ceilings")
    compute: (
        Annotated[
            float,
            BeforeValidator(parse_flop_per_s),
            WithJsonSchema({"type": "string", "examples": ["58.3 TFLOPS"]}),
        ]
        | None
    ) = Field(None, description="peak compute rate for the ceilings of prompts")


def parse(text: str, file_name: str, base_loader: BaseLoader) -> sp.SweepSpec:
    """A sweep from YAML text. Raises SweepFileError with every fault found."""
    document = _with_bases(text, file_name, base_loader, (file_name,))
    document.data = {
        key: value
        for key, value in document.data.items()
        if value is not None or key not in SweepKeys.model_fields
    }
    problems: list[SweepProblem] = []
    keys: SweepKeys | None = None
    try:
        keys = SweepKeys.model_validate(document.data)
    except ValidationError as error:
        problems += [_problem(document, dict(fault)) for fault in error.errors()]
    faults = ax.Faults()
    parts = _parts(document, faults)
    check_models(document.data.get("models"), document.data.get("engine"), faults)
    check_server(document.data, faults)
    check_env(document.data.get("env"), faults)
    _check_rounds(document.data, faults)
    problems += [document.problem(f.place, f.message, f.suggestion) for f in faults.found]
    if problems or keys is None:
        raise SweepFileError(sorted(problems, key=lambda p: (p.file, p.line or 0, p.where)))
    return _spec(keys, parts, file_name)


def _with_bases(
    text: str, file_name: str, base_loader: BaseLoader, chain: tuple[str, ...]
) -> Document:
    """The document on top of everything that it extends."""
    document = read_document(text, file_name)
    base_name = document.data.pop("extends", None)
    if base_name is None:
        return document

    def refuse(message: str) -> SweepFileError:
        return SweepFileError([document.problem(("extends",), message)])

    if not isinstance(base_name, str) or not base_name:
        raise refuse("must be the name of a file")
    try:
        base_text, base_file = base_loader(base_name, file_name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise refuse(f"cannot read {quoted(base_name)}: {reason}") from None
    except ValueError as error:
        raise refuse(f"cannot read {quoted(base_name)}: {error}") from None
    if base_file in chain:
        raise refuse(f"goes in a circle: {' -> '.join((*chain, base_file))}")
    if len(chain) >= MAX_EXTENDS:
        raise refuse(f"more than {MAX_EXTENDS} files extend one another")
    base = _with_bases(base_text, base_file, base_loader, (*chain, base_file))
    base.data.pop("name", None)
    return merged(base, document)


_Parts = dict[str, Any]


def _parts(document: Document, faults: ax.Faults) -> _Parts:
    """The parts that `sweep.axes` understands; what has the wrong shape is left to pydantic."""
    data = document.data
    matrix, include, exclude = (data.get(k) for k in ("matrix", "include", "exclude"))
    tests = data.get("tests")
    return {
        "matrix": ax.parse_matrix(matrix, ("matrix",), faults) if isinstance(matrix, dict) else {},
        "tests": DEFAULT_TESTS if tests is None else ax.parse_tests(tests, ("tests",), faults),
        "include": tuple(
            ax.parse_include(item, ("include", i), faults) for i, item in dicts(include)
        ),
        "exclude": tuple(
            ax.parse_exclude(item, ("exclude", i), faults) for i, item in dicts(exclude)
        ),
    }


def _check_rounds(data: dict[str, Any], faults: ax.Faults) -> None:
    if data.get("rounds") == "auto" and data.get("order") != "interleaved":
        faults.add(("rounds",), "`auto` compares two builds by turns; add `order: interleaved`")


_KEYS_OF: dict[str, type[BaseModel]] = {
    "models": ModelKeys,
    "quality": QualityKeys,
    "cooldown": CooldownKeys,
    "telemetry": TelemetryKeys,
}


def _problem(document: Document, fault: dict[str, Any]) -> SweepProblem:
    """A pydantic error in the document's own terms."""
    location = fault["loc"]
    path: list[str | int] = []
    value: Any = document.data
    for part in location:
        inside = isinstance(value, dict) and part in value
        if inside or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
    if fault["type"] == "missing":
        message = f"the key {location[-1]!r} is missing"
        return document.problem(tuple(path), message)
    if fault["type"] == "extra_forbidden":
        around = next((_KEYS_OF[p] for p in reversed(path[:-1]) if p in _KEYS_OF), SweepKeys)
        suggestion = ax.nearest(str(path[-1]), around.model_fields)
        if suggestion is None and around is SweepKeys and str(path[-1]) in CANONICAL:
            suggestion = f"matrix.{path[-1]}"
        return document.problem(tuple(path), "is not a known key", suggestion)
    message = fault["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return document.problem(tuple(path), message)


def _spec(keys: SweepKeys, parts: _Parts, file_name: str) -> sp.SweepSpec:
    matrix = parts["matrix"]
    return sp.SweepSpec(
        name=keys.name or PurePath(file_name).stem,
        file=file_name,
        engine=keys.engine,
        models=tuple(_entry(entry) for entry in keys.models),
        builds=tuple(dict.fromkeys(keys.builds)),
        tests=parts["tests"],
        axes=ax.axis_values(matrix),
        kv_types=tuple(str(value) for value in matrix.get(ax.KV_TYPE, ())),
        include=parts["include"],
        exclude=parts["exclude"],
        repetitions=keys.repetitions,
        rounds=keys.rounds,
        order=keys.order,
        isolation=keys.isolation,
        seed=keys.seed,
        warmup=keys.warmup,
        discard=keys.discard,
        timeout_s=keys.timeout,
        max_time_s=keys.max_time,
        stop_at=keys.stop_at,
        address_space_limit_bytes=keys.address_space_limit,
        cooldown=sp.Cooldown(
            wait_s=keys.cooldown.wait,
            until_gpu_below_c=keys.cooldown.gpu_below,
            until_cpu_below_c=keys.cooldown.cpu_below,
        ),
        env=tuple(sorted(keys.env.items())),
        extra_args=tuple(keys.extra_args),
        telemetry_interval_s=keys.telemetry.interval,
        on_finish=tuple(keys.on_finish),
        bandwidth_bytes_per_s=keys.bandwidth,
        peak_flop_per_s=keys.compute,
        mode=keys.mode,
        template=keys.template,
        base_url=keys.base_url,
        key_variable=keys.key_variable,
        pull=keys.pull,
        same_weights=keys.same_weights,
    )


def _entry(keys: ModelKeys) -> sp.ModelEntry:
    quality = keys.quality
    return sp.ModelEntry(
        path=keys.path,
        glob=keys.glob,
        synth=keys.synth,
        ollama=keys.ollama,
        served=keys.served,
        quants=tuple(dict.fromkeys(keys.quants)),
        label=keys.label,
        quality=Quality(metric=quality.metric, value=quality.value, source=quality.source)
        if quality
        else None,
    )


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a sweep file, with every spelling of every axis, for editors."""
    return with_axes(SweepKeys.model_json_schema())
