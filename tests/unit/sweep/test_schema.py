"""What a sweep file may say, what it means, and how it is told what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llamasweep.errors import EXIT_USAGE, SweepFileError
from llamasweep.sweep.axes import parse_test
from llamasweep.sweep.cell import Test
from llamasweep.sweep.parameters import CANONICAL, PARAMETERS
from llamasweep.sweep.schema import json_schema, parse
from llamasweep.sweep.spec import Condition, SweepSpec

HEAD = "models: [{path: m.gguf}]\n"


def no_base(name: str, _named_in: str) -> tuple[str, str]:
    raise FileNotFoundError(2, f"no {name}")


def sweep(text: str, head: str = HEAD) -> SweepSpec:
    return parse(head + text, "s.yaml", no_base)


def problems(text: str, head: str = HEAD) -> list[str]:
    with pytest.raises(SweepFileError) as caught:
        sweep(text, head)
    assert caught.value.exit_code == EXIT_USAGE
    return str(caught.value).splitlines()


def axis(text: str, name: str) -> tuple[Any, ...]:
    return dict(sweep(f"matrix: {{{text}}}").axes)[name]


def test_a_sweep_needs_only_models() -> None:
    spec = sweep("")

    assert [test.label for test in spec.tests] == ["pp512", "tg128"]
    assert (spec.repetitions, spec.rounds, spec.order, spec.discard) == (5, 1, "grouped", "auto")
    assert (spec.name, spec.warmup, spec.telemetry_interval_s) == ("s", True, 0.25)


def test_every_fault_is_told_at_once_with_line_place_and_nearest_key() -> None:
    told = problems(
        "nmae: x\n"
        "tests: [pp512, pg512]\n"
        "matrix:\n"
        "  dpeth: [0]\n"
        "  threads: [1-8*1, phys]\n"
        "  mmap: [on]\n"
        "rounds: auto\n"
        "address_space_limit: 8G\n"
        "exclude:\n"
        "  - {threads: 1, modle: x}\n"
        "env: {A B: 1}\n"
    )

    assert told[0] == "s.yaml:2: nmae: is not a known key (did you mean 'name'?)"
    assert told[1].startswith("s.yaml:3: tests[1]: 'pg512' lacks its generated tokens")
    assert told[2].startswith("s.yaml:5: matrix.dpeth: ")
    assert told[2].endswith("(did you mean 'depth'?)")
    assert told[3].startswith("s.yaml:6: matrix.threads[0]: multiplying by 1")
    assert told[4].startswith("s.yaml:6: matrix.threads[1]: 'phys' is not")
    assert told[5].endswith("(did you mean 'load_mode'?)")
    assert (
        told[6] == "s.yaml:8: rounds: `auto` compares two builds by turns; add `order: interleaved`"
    )
    assert "ambiguous" in told[7]
    assert told[8].startswith("s.yaml:11: exclude[0].modle:")
    assert told[9].startswith("s.yaml:12: env.A B:")
    assert len(told) == 10


def test_an_axis_outside_the_matrix_is_led_back() -> None:
    assert problems("threads: 4") == [
        "s.yaml:2: threads: is not a known key (did you mean 'matrix.threads'?)"
    ]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.name)
def test_every_spelling_of_an_axis_is_the_same_axis(parameter: Any) -> None:
    value = {"int": "1", "bool": "on", "str": "'1'"}.get(parameter.kind) or parameter.choices[0]

    found = {
        axis(f"{word}: {value}", parameter.name) for word in (parameter.name, *parameter.words)
    }

    assert len(found) == 1


def test_two_spellings_of_one_axis_are_refused() -> None:
    assert "is the same axis as 'threads'" in problems("matrix: {threads: 1, n_threads: 2}")[0]


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("threads: 1-8*2", "n_threads", (1, 2, 4, 8)),
        ("depth: 512-2048+512", "n_depth", (512, 1024, 1536, 2048)),
        ("threads: 1-3", "n_threads", (1, 2, 3)),
        ("threads: '1,2,4-8*2'", "n_threads", (1, 2, 4, 8)),
        ("threads: [8, 1-2, physical]", "n_threads", (8, 1, 2, "physical")),
        ("ngl: [auto, 0, all]", "n_gpu_layers", (-1, 0, 999)),
        ("ngl: -1-1", "n_gpu_layers", (-1, 0, 1)),
        ("fa: [on, off, auto]", "flash_attn", ("on", "off", "auto")),
        ("fa: [true, 0, -1]", "flash_attn", ("on", "off", "auto")),
        ("nkvo: [off, yes]", "no_kv_offload", (False, True)),
        ("cpu_mask: 0x3", "cpu_mask", ("0x3",)),
        ("ts: 3/1", "tensor_split", ("3/1",)),
        ("lm: none", "load_mode", ("none",)),
        ("Flash-Attn: on", "flash_attn", ("on",)),
    ],
)
def test_axis_values_are_read_as_written(text: str, name: str, values: tuple[Any, ...]) -> None:
    assert axis(text, name) == values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("threads: 8-1", "descends"),
        ("threads: 1-8+0", "never ends"),
        ("threads: 1-8*1", "never reaches"),
        ("depth: 0-8*2", "must start at 1"),
        ("depth: 0-100000000+1", "more than 10,000 values"),
        ("threads: 0", "below 1"),
        ("threads: 1e3", "not a whole number"),
        ("threads: 08", "not a whole number"),
        ("threads: 8.0", "not a whole number"),
        ("threads: true", "not a whole number"),
        ("depth: 99999999999", "beyond"),
        ("threads: []", "the list is empty"),
        ("threads: [1, 1]", "given twice"),
        ("threads: [[1]]", "a word or a number"),
        ("threads: null", "a word or a number"),
        ("ctk: q8", "did you mean q8_0"),
        ("nkvo: 2", "not a switch"),
        ("ts: '1,9'", "a comma starts another test"),
        ("ts: a/b", "up to 16 shares"),
        ("ts: 1.5", "put quotes around it"),
        ("dev: 'CUDA0,CUDA1'", "and / inside one"),
        ("ot: 'a=CPU,b=CPU'", "and ; inside one"),
        ("cpu_mask: ''", "1 to 4,096 characters"),
        ("kv_type: q8_0, ctk: f16", "cannot stand beside 'ctk'"),
        ("depth: half", "not a whole number"),
    ],
)
def test_axis_values_that_make_no_sense_are_refused(text: str, said: str) -> None:
    assert said in "\n".join(problems(f"matrix: {{{text}}}"))


@pytest.mark.parametrize("text", ["pg512+128", "pg512,128", "pp512+tg128"])
def test_three_spellings_of_a_combined_test(text: str) -> None:
    assert parse_test(text) == Test(n_prompt=512, n_gen=128)


@pytest.mark.parametrize("text", ["pp0", "tg0", "pg0+4", "pp", "x", "", "pp-1", "pp99999999", 512])
def test_what_is_no_test_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"test|nothing|tokens"):
        parse_test(text)


def test_tests_run_in_the_order_of_llama_bench() -> None:
    spec = sweep("tests: [pg8+4, tg128, pp512, pp64]")

    assert [test.label for test in spec.tests] == ["pp512", "pp64", "tg128", "pp8+tg4"]


def test_settings_are_read_with_their_units() -> None:
    spec = sweep(
        "timeout: 10m\nmax_time: 1h30m\nstop_at: 7:00\naddress_space_limit: 8 GiB\n"
        "cooldown: {gpu_below: 60, wait: 2m}\ntelemetry: {interval: 100ms}\nbandwidth: 51.2 GB/s\n"
        "warmup: off\ndiscard: 2\nenv: {GGML_X: 1}\nextra_args: [--poll, 0]\n"
        "on_finish: [notify, done]\nbuilds: [11434, ./x]\nisolation: cell\nname: 2026\n"
    )

    assert (spec.timeout_s, spec.max_time_s, spec.stop_at) == (600, 5400, "07:00")
    assert spec.address_space_limit_bytes == 8 * 2**30
    assert (spec.cooldown.until_gpu_below_c, spec.cooldown.wait_s) == (60, 120)
    assert (spec.telemetry_interval_s, spec.bandwidth_bytes_per_s) == (0.1, 51.2e9)
    assert (spec.warmup, spec.discard, spec.env) == (False, 2, (("GGML_X", "1"),))
    assert spec.extra_args == ("--poll", "0")
    assert spec.on_finish == ("notify", "done")
    assert (spec.builds, spec.isolation, spec.name) == (("11434", "./x"), "cell", "2026")


def test_telemetry_and_discard_can_be_off_and_cooldown_flat() -> None:
    spec = sweep("telemetry: off\ndiscard: off\ncooldown: 5\n")

    assert (spec.telemetry_interval_s, spec.discard, spec.cooldown.wait_s) == (None, 0, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 2", "version"),
        ("engine: vllm", "drives llama-bench"),
        ("order: random", "order"),
        ("repetitions: 0", "repetitions"),
        ("repetitions: 1.5", "not a whole number"),
        ("stop_at: 25:00", "not a time of day"),
        ("timeout: 0", "timeout"),
        ("timeout: [1]", "not a duration"),
        ("max_time: soon", "not a duration"),
        ("discard: some", "neither auto, off nor"),
        ("cooldown: {gpu_blow: 60}", "did you mean 'gpu_below'"),
        ("telemetry: 1ms", "telemetry"),
        ("warmup: maybe", "not a switch"),
        ("env: {A: 1.5}", "put quotes around it"),
        ("matrix: [1]", "matrix"),
        ("include: {a: 1}", "include"),
        ("include: [{}]", "the entry is empty"),
        ("include: [{n_gen: 4}]", "not a known key"),
        ("include: [{build: x}]", "not a known key"),
        ("include: [{kv_type: [f16, q8_0]}]", "one entry for each"),
        ("exclude: [{}]", "leave out every cell"),
        ("exclude: [{threads: '>x'}]", "not a whole number"),
        ("exclude: [{fa: '>on'}]", "not a number to compare with"),
        ("exclude: [{kv_type: f16, ctk: f16}]", "given twice"),
        ("exclude: [{threads: '>1,2'}]", "takes one value"),
        ("discard: yes", "neither auto, off nor"),
        ("builds: ['']", "1 to 4,096 characters"),
        ("include: [{kv_type: f16, ctv: f16}]", "given twice"),
        ("exclude: [{model: {}}]", "a name or a list of names"),
        ("on_finish: reboot", "on_finish"),
        ("bandwidth: fast", "not a bandwidth"),
        ("tests: []", "the list is empty"),
        ("tests: [pp1, pp1]", "given twice"),
        ("extends: 5", "must be the name of a file"),
        ("extends: gone.yaml", "cannot read 'gone.yaml'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(text: str, said: str) -> None:
    assert said in "\n".join(problems(text))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{}", "exactly one of"),
        ("{path: a, synth: b}", "exactly one of"),
        ("{path: 'a-{quant}.gguf'}", "no quants to fill it"),
        ("{path: a.gguf, quants: [Q4_0]}", "does not hold {quant}"),
        ("{glob: '*.gguf', quants: [Q4_0]}", "not with glob"),
        ("{path: a.gguf, quantz: [Q4_0]}", "did you mean 'quants'"),
        ("{path: a.gguf, quality: {metric: ppl}}", "'value' is missing"),
        ("{path: 5}", "put quotes around it"),
    ],
)
def test_models_that_make_no_sense_are_refused(entry: str, said: str) -> None:
    assert said in "\n".join(problems("", f"models: [{entry}]\n"))


def test_no_models_at_all_is_refused() -> None:
    assert "'models' is missing" in problems("", "name: x\n")[0]
    assert problems("", "models: []\n")


def test_an_exclude_becomes_conditions() -> None:
    (exclude,) = sweep(
        "exclude: [{threads: '>8', depth: [0, 1024], kv_type: q8_0, model: a*, n_gen: '!=0'}]"
    ).exclude

    where = dict(exclude.where)
    assert where["n_threads"] == Condition(operator=">", values=(8,))
    assert where["n_depth"] == Condition(values=(0, 1024))
    assert where["type_k"] == where["type_v"] == Condition(values=("q8_0",))
    assert where["model"] == Condition(values=("a*",))
    assert where["n_gen"] == Condition(operator="!=", values=(0,))


def test_a_comparison_may_name_a_word_of_the_machine() -> None:
    (exclude,) = sweep("exclude: [{threads: '>logical'}]").exclude

    assert dict(exclude.where)["n_threads"] == Condition(operator=">", values=("logical",))


def test_hostile_names_are_text() -> None:
    name = '"<script>$(rm -rf ~)\\n-é"'

    spec = sweep(f"name: {name}\n", 'models: [{path: "-a\\"\\n$(x).gguf", label: "<b>"}]\n')

    assert spec.name == "<script>$(rm -rf ~)\n-é"
    assert spec.models[0].path == '-a"\n$(x).gguf'


# -- extends


def loader(files: dict[str, str]) -> Any:
    return lambda name, _named_in: (files[name], name)


def test_extends_merges_the_base_below_the_sweep() -> None:
    files = {
        "base.yaml": "extends: root.yaml\nname: base\nmatrix: {threads: [1, 2]}\nrepetitions: 3\n",
        "root.yaml": HEAD + "matrix: {depth: [0, 8], threads: 9}\ntimeout: 5m\n",
    }

    spec = parse(
        "extends: base.yaml\nmatrix: {depth: [16]}\ntimeout: null\n", "s.yaml", loader(files)
    )

    assert dict(spec.axes) == {"n_threads": (1, 2), "n_depth": (16,)}
    assert (spec.repetitions, spec.timeout_s, spec.name) == (3, None, "s")


def test_a_fault_in_the_base_is_told_with_the_base_file() -> None:
    with pytest.raises(SweepFileError) as caught:
        parse("extends: b\n", "s.yaml", loader({"b": HEAD + "matrix: {dpeth: 1}\n"}))

    assert str(caught.value).startswith("b:2: matrix.dpeth:")


def test_a_circle_of_bases_is_refused() -> None:
    files = {"a": "extends: b\n", "b": "extends: a\n"}

    with pytest.raises(SweepFileError, match=r"goes in a circle: a -> b -> a"):
        parse(files["a"], "a", loader(files))


def test_a_base_that_is_no_text_and_a_chain_without_end_are_refused() -> None:
    def odd(_name: str, _named_in: str) -> tuple[str, str]:
        raise ValueError("it is not UTF-8 text")

    with pytest.raises(SweepFileError, match="it is not UTF-8 text"):
        parse("extends: b\n", "s.yaml", odd)
    with pytest.raises(SweepFileError, match="more than 16 files"):
        parse("extends: '1'\n", "0", lambda n, _: (f"extends: '{int(n) + 1}'\n", n))


# -- for run.json and for editors


def test_the_resolved_sweep_is_plain_json() -> None:
    spec = sweep("matrix: {threads: [1, physical]}\nexclude: [{threads: '>8'}]\n")

    resolved = json.loads(json.dumps(spec.to_resolved_dict()))

    assert resolved["axes"] == {"n_threads": [1, "physical"]}
    assert resolved["tests"] == ["pp512", "tg128"]
    assert resolved["models"][0]["path"] == "m.gguf"


def test_the_json_schema_knows_every_key_and_every_spelling() -> None:
    schema = json_schema()

    assert json.loads(json.dumps(schema)) == schema
    properties = schema["properties"]
    assert set(properties["matrix"]["properties"]) == {*CANONICAL, "kv_type"}
    assert properties["matrix"]["additionalProperties"] is False
    assert {"build", "n_gen", "model", "depth"} <= set(properties["exclude"]["items"]["properties"])
    assert "build" not in properties["include"]["items"]["properties"]
    assert all("description" in value for value in properties.values())


def test_rounds_may_be_left_to_what_is_measured() -> None:
    spec = sweep("rounds: auto\norder: interleaved\n")
    assert (spec.rounds, spec.n_rounds) == ("auto", 40)
    assert (sweep("rounds: 8\n").rounds, sweep("rounds: 8\n").n_rounds) == (8, 8)
    assert problems("rounds: often\n")[0].startswith("s.yaml:2: rounds")
