from __future__ import annotations

import re

import pytest
from tests.unit.engines.made import HELP_NAMES, PG, PP, TG, block, build, gpu_build, model

from llamasweep.engines.llama_bench_flags import FLAGS, restrictions, spell
from llamasweep.sweep.blocks import split
from llamasweep.sweep.cell import Block
from llamasweep.sweep.parameters import PARAMETERS, SERVER_ONLY, Scalar
from llamasweep.sweep.subjects import Build, Model

WITH_JSONL = tuple(name for name in HELP_NAMES if "0.2." not in name)
VALUES: dict[str, Scalar] = {
    "numa": "isolate", "prio": 1, "rpc": "a:1", "fit_target": 256, "fit_min_ctx": 512, "n_gpu_layers": 7,
    "n_cpu_moe": 2, "split_mode": "row", "load_mode": "mmap", "lazy_mode": "off", "main_gpu": 1,
    "devices": "CUDA0,CUDA1", "tensor_split": "3,1", "tensor_buft_overrides": "exps=CPU;attn=CPU", "no_host": True,
    "repack": False, "embeddings": True, "no_op_offload": True, "n_batch": 512, "n_ubatch": 256, "type_k": "q8_0",
    "type_v": "f16", "no_kv_offload": True, "flash_attn": "on", "n_threads": 2, "cpu_mask": "0x3",
    "cpu_strict": True, "n_depth": 64, "poll": 0,
}  # fmt: skip


def parts(
    of: Block, on: Build, subject: Model | None = None
) -> tuple[list[Block], dict[str, list[Block]]]:
    """(what can run, reason -> what cannot), as the plan splits it."""
    allowed, refused = split(of, restrictions(of, subject or model(), on))
    reasons: dict[str, list[Block]] = {}
    for piece, reason in refused:
        reasons.setdefault(reason, []).append(piece)
    return allowed, reasons


def reasons_of(of: Block, on: Build, subject: Model | None = None) -> list[str]:
    return list(parts(of, on, subject)[1])


def test_every_parameter_has_a_flag_and_a_value_to_try() -> None:
    assert set(FLAGS) == {p.name for p in PARAMETERS} - SERVER_ONLY == set(VALUES)


def test_what_only_servers_have_is_refused_with_the_way_to_measure_it() -> None:
    for name, value in (("concurrency", 4), ("prompt_cache", "warm")):
        allowed, refused = parts(block(PP, **{name: value}), build("b11434"))
        assert not allowed
        assert all("engine: llama-server" in reason for reason in refused)


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize("help_name", HELP_NAMES)
def test_a_parameter_is_said_with_a_listed_flag_or_refused_with_a_reason(
    help_name: str, name: str
) -> None:
    on = gpu_build(help_name)
    allowed, refused = parts(block(PP, **{name: VALUES[name]}), on)
    assert bool(allowed) != bool(refused)
    if not allowed:
        assert all(on.label in reason or "flash" in reason for reason in refused)
        return
    words = spell(on, name, (VALUES[name],))
    assert len(words) % 2 == 0
    assert words
    for flag in words[::2]:
        assert flag in on.options


@pytest.mark.parametrize("help_name", HELP_NAMES)
def test_a_word_that_is_said_is_one_that_the_help_lists(help_name: str) -> None:
    on = gpu_build(help_name)
    for parameter in PARAMETERS:
        for value in parameter.choices:
            of = block(PP, **{parameter.name: value})
            if reasons_of(of, on):
                continue
            words = spell(on, parameter.name, (value,))
            for flag, word in zip(words[::2], words[1::2], strict=True):
                domain = re.match(r"<([^<>]*\|[^<>]*)>", dict(on.option_help)[flag])
                assert domain is None or word in domain[1].split("|"), (flag, word)


def test_split_mode_tensor_is_refused_where_the_help_does_not_list_it() -> None:
    of = block(PP, split_mode=("layer", "tensor"))
    allowed, refused = parts(of, gpu_build("b8247"))
    assert [b.axes for b in allowed] == [(("split_mode", ("layer",)),)]
    assert list(refused) == ["b8247 does not take 'tensor' for -sm (split_mode)"]
    assert reasons_of(of, gpu_build("b11434")) == []


def test_the_process_priority_below_normal_is_refused_where_the_help_does_not_list_it() -> None:
    assert reasons_of(block(PP, prio=-1), build("b4748")) == [
        "b4748 does not take '-1' for --prio (prio)"
    ]
    assert reasons_of(block(PP, prio=-1), build("b11434")) == []


@pytest.mark.parametrize(
    ("help_name", "words"),
    [
        ("b4748", {"on": "1", "off": "0"}),
        ("b8247", {"on": "1", "off": "0"}),
        ("llama-cpp-python-0.3.16", {"on": "1", "off": "0"}),
        ("b9437", {"on": "on", "off": "off", "auto": "auto"}),
        ("b10151", {"on": "on", "off": "off", "auto": "auto"}),
        ("b11434", {"on": "on", "off": "off", "auto": "auto"}),
    ],
)
def test_flash_attention_is_a_digit_where_words_would_mean_off(
    help_name: str, words: dict[str, str]
) -> None:
    on = build(help_name)
    allowed, refused = parts(block(PP, flash_attn=("on", "off", "auto")), on)
    (names,) = {dict(b.axes)["flash_attn"] for b in allowed}
    assert {name: spell(on, "flash_attn", (name,)) for name in names} == {
        name: ["-fa", word] for name, word in words.items()
    }
    assert bool(refused) == ("auto" not in words)


def test_automatic_layers_are_refused_where_minus_one_is_no_number() -> None:
    of = block(PP, n_gpu_layers=(-1, 20))
    allowed, refused = parts(of, gpu_build("b8247"))
    assert [dict(b.axes)["n_gpu_layers"] for b in allowed] == [(20,)]
    assert list(refused) == ["b8247 has no automatic n_gpu_layers; give a number"]
    assert reasons_of(of, gpu_build("b9437")) == []
    assert spell(gpu_build(), "n_gpu_layers", (-1, 20)) == ["-ngl", "-1,20"]


@pytest.mark.parametrize(
    ("help_name", "mode", "words"),
    [
        ("b4748", "mmap", ["-mmp", "1"]),
        ("b4748", "none", ["-mmp", "0"]),
        ("b4748", "dio", None),
        ("b4748", "mlock", None),
        ("b8247", "mmap", ["-mmp", "1", "-dio", "0"]),
        ("b8247", "none", ["-mmp", "0", "-dio", "0"]),
        ("b8247", "dio", ["-dio", "1"]),
        ("b8247", "mmap+mlock", None),
        ("b8247", "auto", None),
        ("b10151", "mmap", ["-lm", "mmap"]),
        ("b10151", "auto", None),
        ("b11434", "auto", ["-lm", "auto"]),
        ("b11434", "mmap+mlock", ["-lm", "mmap+mlock"]),
    ],
)
def test_a_load_mode_is_said_as_the_build_says_it(
    help_name: str, mode: str, words: list[str] | None
) -> None:
    """Builds that know -dio have had it on by default for a while, and it takes precedence over -mmp."""
    on = build(help_name)
    reasons = reasons_of(block(PP, load_mode=mode), on)
    if words is None:
        assert len(reasons) == 1
        assert on.label in reasons[0]
    else:
        assert reasons == []
        assert spell(on, "load_mode", (mode,)) == words


def test_no_depth_needs_no_flag() -> None:
    old = build("b4748")
    of = block(PP, n_depth=(0, 64))
    allowed, refused = parts(of, old)
    assert [dict(b.axes)["n_depth"] for b in allowed] == [(0,)]
    assert list(refused) == ["b4748 does not know -d (n_depth)"]
    assert spell(old, "n_depth", (0,)) == []
    assert spell(build(), "n_depth", (0,)) == ["-d", "0"]
    assert spell(build(), "n_depth", (0, 64)) == ["-d", "0,64"]


def test_a_depth_beyond_the_engines_integers_is_refused() -> None:
    allowed, refused = parts(block(PP, n_depth=(2**31 - 1, 2**31)), build())
    assert [dict(b.axes)["n_depth"] for b in allowed] == [(2**31 - 1,)]
    assert list(refused) == ["this depth does not fit the engine's integers"]


@pytest.mark.parametrize(
    ("help_name", "flash_attn", "runs"),
    [
        ("b11434", None, True),  # the default, auto, turns it on
        ("b11434", ("auto",), True),
        ("b11434", ("on",), True),
        ("b11434", ("off",), False),
        ("b8247", None, False),  # off unless asked
        ("b8247", ("on",), True),
        ("b8247", ("off",), False),
        ("b8247", ("auto",), False),
        ("llama-cpp-python-0.2.60", None, False),  # knows none
    ],
)
def test_a_quantised_v_needs_flash_attention(
    help_name: str, flash_attn: tuple[Scalar, ...] | None, runs: bool
) -> None:
    axes: dict[str, Scalar | tuple[Scalar, ...]] = {"type_v": ("f16", "q8_0")}
    if flash_attn is not None:
        axes["flash_attn"] = flash_attn
    allowed, _ = parts(block(PP, **axes), build(help_name))
    quantised = [b for b in allowed if "q8_0" in dict(b.axes)["type_v"]]
    assert bool(quantised) == runs


def test_a_quantised_v_is_refused_only_where_flash_attention_is_off() -> None:
    of = block(PP, type_v=("f16", "q4_0"), flash_attn=("on", "off"))
    allowed, refused = parts(of, build())
    assert sum(b.n_cells for b in allowed) == 3
    assert list(refused) == ["a quantised V cache needs flash attention, which is off"]
    (piece,) = refused["a quantised V cache needs flash attention, which is off"]
    assert dict(piece.axes) == {"type_v": ("q4_0",), "flash_attn": ("off",)}


def test_a_quantised_k_needs_no_flash_attention() -> None:
    assert reasons_of(block(PP, type_k="q4_0", flash_attn="off"), build()) == []


@pytest.mark.parametrize("name", ["type_k", "type_v"])
def test_a_head_size_must_be_whole_blocks(name: str) -> None:
    of = block(PP, flash_attn="on", **{name: ("f16", "q8_0")})
    odd = model(head_size_k=80, head_size_v=80)
    allowed, refused = parts(of, build(), odd)
    assert [dict(b.axes)[name] for b in allowed] == [("f16",)]
    assert list(refused) == [f"head size 80 is not divisible by the block of 32 of this {name}"]
    assert reasons_of(of, build(), model(head_size_k=96, head_size_v=96)) == []
    assert reasons_of(of, build(), model(head_size_k=None, head_size_v=None)) == []


def test_a_model_without_facts_is_not_judged() -> None:
    from dataclasses import replace

    unreadable = replace(model(), facts=None)
    assert reasons_of(block(PP, type_k="q8_0"), build(), unreadable) == []


def test_a_cache_type_that_a_build_does_not_have_yet_is_refused() -> None:
    """The help does not list the types; bf16 came with b4051 (#10150)."""
    of = block(PP, type_k=("f16", "bf16"))
    assert reasons_of(of, build("b4748", number=4000, label="b4000")) == [
        "b4000 has no bf16 in the KV cache; it came with b4051"
    ]
    assert reasons_of(of, build("b4748")) == []
    assert reasons_of(of, build("b4748", number=None)) == []


def test_layers_need_a_gpu() -> None:
    of = block(PP, n_gpu_layers=(0, 10))
    allowed, refused = parts(of, build())
    assert [dict(b.axes)["n_gpu_layers"] for b in allowed] == [(0,)]
    assert list(refused) == ["b11434 sees no GPU to put layers on"]
    assert reasons_of(of, gpu_build()) == []
    assert reasons_of(block(PP, n_gpu_layers=-1), build()) == []


def test_layers_may_go_to_a_server_where_there_is_no_gpu() -> None:
    rpc = build(options=build().options | {"-rpc"})
    assert reasons_of(block(PP, rpc="host:50052", n_gpu_layers=10), rpc) == []


@pytest.mark.parametrize(
    ("backends", "devices", "expected"),
    [
        (("CPU",), (), True),
        (("CPU", "BLAS"), None, True),
        (None, None, False),
        (("CUDA",), None, False),
        (("CUDA",), ("CUDA0",), False),
        (None, (), True),
    ],
)
def test_what_counts_as_a_build_without_a_gpu(
    backends: tuple[str, ...] | None, devices: tuple[str, ...] | None, expected: bool
) -> None:
    assert build(backends=backends, devices=devices).is_cpu_only is expected


def test_an_override_with_a_comma_is_refused_and_says_what_to_write() -> None:
    (reason,) = reasons_of(block(PP, tensor_buft_overrides=("a=CPU,b=CPU",)), gpu_build())
    assert "';'" in reason
    assert spell(gpu_build(), "tensor_buft_overrides", ("a=CPU;b=CPU",)) == ["-ot", "a=CPU;b=CPU"]


def test_shares_and_devices_are_joined_with_slashes() -> None:
    assert spell(gpu_build(), "tensor_split", ("3,1", "1/1")) == ["-ts", "3/1,1/1"]
    assert spell(gpu_build(), "devices", ("CUDA0,CUDA1", "none")) == ["-dev", "CUDA0/CUDA1,none"]


def test_more_than_sixteen_shares_are_refused() -> None:
    good, bad = "/".join("1" * 16), ",".join("1" * 17)
    allowed, refused = parts(block(PP, tensor_split=(good, bad)), gpu_build())
    assert [dict(b.axes)["tensor_split"] for b in allowed] == [(good,)]
    assert list(refused) == ["tensor_split takes at most 16 parts"]


def test_switches_are_digits() -> None:
    assert spell(build(), "no_host", (True, False)) == ["--no-host", "1,0"]


@pytest.mark.parametrize("number", range(5212, 5221))
def test_the_nine_builds_that_crash_on_every_test_are_not_started(number: int) -> None:
    broken = build("llama-cpp-python-0.3.9", number=number, label=f"b{number}")
    for of in (block(PP, TG), block(PP, n_threads=(1, 2)), block(PP, n_depth=0)):
        allowed, refused = parts(of, broken)
        assert allowed == []
        assert [r for r in refused if "crashes on every test" in r]


@pytest.mark.parametrize("number", [5211, 5221, None])
def test_their_neighbours_are_started(number: int | None) -> None:
    assert reasons_of(block(PP, n_threads=2), build("llama-cpp-python-0.3.9", number=number)) == []


@pytest.mark.parametrize("help_name", ["llama-cpp-python-0.2.60", "llama-cpp-python-0.2.90"])
def test_a_build_that_cannot_write_jsonl_is_refused_whole(help_name: str) -> None:
    allowed, refused = parts(block(PP, TG), build(help_name))
    assert allowed == []
    assert list(refused) == [
        f"{help_name} has no `-o jsonl`, which tells single repetitions; b3661 and later have it"
    ]


@pytest.mark.parametrize("help_name", WITH_JSONL)
def test_a_plain_sweep_is_refused_by_no_build_that_writes_jsonl(help_name: str) -> None:
    assert reasons_of(block(PP, TG, PG, n_threads=(1, 2)), build(help_name)) == []


def test_a_build_whose_help_was_never_read_is_not_refused_for_its_output() -> None:
    """Its flags are refused one by one; what it prints is not known."""
    silent = build(option_help=())
    assert reasons_of(block(PP), silent) == []


def test_prompt_then_generation_is_refused_alone_where_it_cannot_be_said() -> None:
    no_pg = build(options=build().options - {"-pg"})
    allowed, refused = parts(block(PP, TG, PG), no_pg)
    assert [b.tests for b in allowed] == [(PP, TG)]
    assert list(refused) == ["b11434 does not know -pg (a prompt and then generation)"]
