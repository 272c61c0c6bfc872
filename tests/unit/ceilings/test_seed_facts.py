"""Every derivable figure of the articles that started the project, from the public functions.

A row of the table names the function that answers it. Figures must agree to the printed digits;
where the article does not add up, ours is written beside it. Measured rates are held against their
ceilings instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.unit.ceilings.reference import quantised, reference_models, rows

from llamasweep.ceilings.assumptions import Bandwidth, Peak, ridge_flop_per_byte
from llamasweep.ceilings.concurrency import (
    concurrency_ceiling,
    latency_cost,
    per_stream_tps,
    stream_rates,
    throughput_gain,
)
from llamasweep.ceilings.decode import (
    PencilModel,
    achieved_bytes_per_s,
    decode_ceiling,
    fraction_of,
    pencil_tps,
)
from llamasweep.ceilings.devices import find_device
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory, kv_read_bytes
from llamasweep.ceilings.memory_fit import tiered_tps
from llamasweep.ceilings.memory_words import parse_memory
from llamasweep.ceilings.peaks import matrix_units_flop_per_s, times_below_ridge
from llamasweep.ceilings.workload import (
    achieved_flop_per_s,
    time_of,
    tokens_of_words,
    tps_of_tpot,
    workload,
)
from llamasweep.gguf.facts import ModelFacts
from llamasweep.results.rates import summarise_rates


def nemo() -> ModelFacts:
    return reference_models()["Mistral-Nemo-12B"]


def llama2(quant: str) -> ModelFacts:
    return quantised("Llama-2-7B", quant)


def gbps(value: float) -> Bandwidth:
    return Bandwidth(bytes_per_s=value * 1e9, basis="spec")


def tflops(value: float) -> Peak:
    return Peak(flop_per_s=value * 1e12, basis="spec")


def stored(name: str, n_ctx: int) -> int:
    """Bytes of a reference model's f16 context."""
    return context_memory(reference_models()[name], ContextSettings(n_ctx=n_ctx)).stored_bytes


def per_token(name: str) -> int:
    return context_memory(reference_models()[name], ContextSettings(n_ctx=256)).bytes_per_token_full


def on_device(name: str) -> float:
    """Pencil ceiling of the article's model on a device of the table."""
    bandwidth = Bandwidth(bytes_per_s=find_device(name).bandwidth_bytes_per_s, basis="spec")
    return pencil_tps(nemo().size_bytes, bandwidth)


def ram_gbps(words: str) -> float:
    return parse_memory(words).bandwidth_bytes_per_s / 1e9


FLASH = PencilModel(params=177e9, active_params=6e9, bits_per_weight=4.27)
Q4_K_M = PencilModel(params=12.25e9, active_params=12.25e9, bits_per_weight=8 * 7.47 / 12.25)
F16 = PencilModel(params=1.0, active_params=1.0, bits_per_weight=16)
ADA = find_device("RTX 4070"), find_device("RTX 4090")
M1 = workload(1000, 2, prefill_tps=107.81, decode_tps=14.19)
H100_RIDGE = ridge_flop_per_byte(tflops(989), gbps(3350))
RTX_4070_RIDGE = ridge_flop_per_byte(tflops(58.3), gbps(504))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One row: what it is called, which function answers, its value in the row's unit.

    differs: our value to its digits where the article's does not follow from its own inputs.
    """

    quantity: str
    function: str
    value: Callable[[], float]
    differs: str | None = None


def _row(
    quantity: str, function: str, value: Callable[[], float], differs: str | None = None
) -> Answer:
    return Answer(quantity=quantity, function=function, value=value, differs=differs)


def _tensor(device: int) -> float:
    rate = ADA[device].fp16_tensor_fp16_accumulate_flop_per_s
    assert rate is not None
    return rate


ANSWERS = (
    _row("TPOT 20 ms as tokens per second", "workload.tps_of_tpot", lambda: tps_of_tpot(20)),
    _row(
        "mean of nine answers of 1 s and one of 9 s",
        "rates.summarise_rates",
        lambda: summarise_rates([1.0] * 9 + [9.0]).mean_tps or 0,
    ),
    _row(
        "KV cache bytes per token, Llama 3.1 8B at 16 bits",
        "kv_cache.context_memory",
        lambda: per_token("Llama-3.1-8B"),
    ),
    _row(
        "KV cache per token, Llama 3.1 8B",
        "kv_cache.context_memory",
        lambda: per_token("Llama-3.1-8B") / 1024,
    ),
    _row(
        "KV cache at 8K tokens, Llama 3.1 8B",
        "kv_cache.context_memory",
        lambda: stored("Llama-3.1-8B", 8192) / 1e9,
    ),
    _row(
        "KV cache at 128K tokens, Llama 3.1 8B",
        "kv_cache.context_memory",
        lambda: stored("Llama-3.1-8B", 131072) / 1e9,
    ),
    _row(
        "DDR4-3200 bandwidth, one channel",
        "memory_words.parse_memory",
        lambda: ram_gbps("DDR4-3200x1"),
    ),
    _row(
        "DDR4-3200 bandwidth, two channels",
        "memory_words.parse_memory",
        lambda: ram_gbps("DDR4-3200x2"),
    ),
    _row(
        "decode ceiling, qwen3 4b, one stick",
        "decode.pencil_tps",
        lambda: pencil_tps(2.5e9, gbps(25.6)),
    ),
    _row(
        "decode ceiling, qwen3 4b, two sticks",
        "decode.pencil_tps",
        lambda: pencil_tps(2.5e9, gbps(51.2)),
    ),
    _row(
        "KV cache per token, Qwen3-4B",
        "kv_cache.context_memory",
        lambda: per_token("Qwen3-4B") / 1024,
    ),
    _row(
        "KV cache at 4096 tokens, Qwen3-4B",
        "kv_cache.context_memory",
        lambda: stored("Qwen3-4B", 4096) / 1e9,
    ),
    _row(
        "decode ceiling with KV at 4096 tokens, two sticks",
        "decode.decode_ceiling",
        lambda: (
            decode_ceiling(
                reference_models()["Qwen3-4B"],
                ContextSettings(n_ctx=4096),
                n_depth=4095,
                n_gen=1,
                bandwidth=gbps(51.2),
            ).pencil_with_kv_tps
        ),
    ),
    _row(
        "Llama 2 7B 4-bit file",
        "facts.ModelFacts.size_bytes",
        lambda: llama2("Q4_0").size_bytes / 1e9,
    ),
    _row(
        "M1 decode ceiling, Llama 2 7B Q4_0",
        "decode.pencil_tps",
        lambda: pencil_tps(llama2("Q4_0").size_bytes, gbps(68)),
    ),
    _row(
        "M1 share of the ceiling, Q4_0",
        "decode.fraction_of",
        lambda: 100 * fraction_of(14.19, pencil_tps(llama2("Q4_0").size_bytes, gbps(68))),
    ),
    _row(
        "Llama 2 7B 8-bit file",
        "facts.ModelFacts.size_bytes",
        lambda: llama2("Q8_0").size_bytes / 1e9,
    ),
    _row("M1 prefill over decode", "workload.workload", lambda: M1.pp_over_tg),
    _row("TTFT of a 1000-token prompt on the M1", "workload.workload", lambda: M1.ttft_s),
    _row(
        "TTFT of a 1000-token prompt on an RTX 3060",
        "workload.time_of",
        lambda: time_of(1000, 2137.5),
    ),
    _row(
        "thin laptop bandwidth, low end",
        "memory_words.parse_memory",
        lambda: ram_gbps("DDR4-3200x2"),
    ),
    _row(
        "thin laptop bandwidth, high end",
        "memory_words.parse_memory",
        lambda: ram_gbps("DDR5-5600x2"),
    ),
    _row(
        "prefill time of a 12000-token prompt at 244 t/s",
        "workload.time_of",
        lambda: time_of(12000, 244),
        differs="49.2",
    ),
    _row("500-word post in tokens", "workload.tokens_of_words", lambda: tokens_of_words(500, 1.4)),
    _row(
        "400-word answer in tokens", "workload.tokens_of_words", lambda: tokens_of_words(400, 1.5)
    ),
    _row("600 tokens at 15 t/s", "workload.time_of", lambda: time_of(600, 15)),
    _row(
        "quad-channel DDR4 theoretical bandwidth",
        "memory_words.parse_memory",
        lambda: ram_gbps("DDR4-2666x4"),
    ),
    _row("shrink against 16 bits", "decode.PencilModel", lambda: FLASH.shrink_against(16)),
    _row(
        "file size of a 177B model at 4.27 bpw",
        "decode.PencilModel",
        lambda: FLASH.size_bytes / 1e9,
    ),
    _row(
        "collapse against RAM, about",
        "memory_fit.tiered_tps",
        lambda: tiered_tps(1e9, 0, gbps(50), gbps(0.05)) / tiered_tps(0, 1e9, gbps(50), gbps(0.05)),
    ),
    _row(
        "expected decode",
        "decode.PencilModel",
        lambda: FLASH.ceiling_tps(gbps(50)),
        differs="15.6",
    ),
    _row("bytes read per token", "decode.PencilModel", lambda: FLASH.bytes_per_token / 1e9),
    _row(
        "decode estimate of the cheat sheet",
        "decode.pencil_tps",
        lambda: pencil_tps(3.2e9, gbps(50)),
        differs="15.6",
    ),
    _row(
        "KV cache for 128k tokens",
        "kv_cache.context_memory",
        lambda: stored("Llama-3.1-8B", 131072) / stored("Llama-3.1-8B", 32768),
    ),
    _row(
        "KV per 1k tokens of Flash-Next",
        "kv_cache.context_memory",
        lambda: per_token("Qwen3-Next-80B-A3B") * 1000 / 1e3,
        differs="24576",
    ),
    _row("70B dense at Q4 on 50 GB/s", "decode.pencil_tps", lambda: pencil_tps(40e9, gbps(50))),
    _row(
        "70B MoE with 10B active on 50 GB/s",
        "decode.pencil_tps",
        lambda: pencil_tps(6e9, gbps(50)),
    ),
    _row(
        "file size as llama-bench prints it",
        "facts.ModelFacts.size_bytes",
        lambda: nemo().size_bytes / 2**30,
    ),
    _row("parameters", "facts.ModelFacts.n_params", lambda: nemo().n_params / 1e9),
    _row("file size in GB", "facts.ModelFacts.size_bytes", lambda: nemo().size_bytes / 1e9),
    _row(
        "file size as rounded in the text",
        "facts.ModelFacts.size_bytes",
        lambda: nemo().size_bytes / 1e9,
    ),
    _row(
        "bandwidth used in decode",
        "decode.achieved_bytes_per_s",
        lambda: achieved_bytes_per_s(29.22, nemo().size_bytes) / 1e9,
    ),
    _row(
        "share of M4 Pro bandwidth",
        "decode.fraction_of",
        lambda: 100 * fraction_of(29.22, on_device("Apple M4 Pro")),
    ),
    _row(
        "prefill compute rate",
        "workload.achieved_flop_per_s",
        lambda: achieved_flop_per_s(284.06, 2 * nemo().n_params) / 1e12,
    ),
    _row(
        "decode compute rate",
        "workload.achieved_flop_per_s",
        lambda: achieved_flop_per_s(29.22, 2 * nemo().n_params) / 1e12,
    ),
    _row(
        "work per byte, prefill over decode",
        "workload.workload",
        lambda: workload(512, 128, prefill_tps=284.06, decode_tps=29.22).pp_over_tg,
    ),
    _row("decode ceiling, Apple M4 Pro", "decode.pencil_tps", lambda: on_device("Apple M4 Pro")),
    _row("decode ceiling, RTX 4070", "decode.pencil_tps", lambda: on_device("RTX 4070")),
    _row("decode ceiling, L40S", "decode.pencil_tps", lambda: on_device("L40S")),
    _row("decode ceiling, RTX 4090", "decode.pencil_tps", lambda: on_device("RTX 4090")),
    _row("decode ceiling, H100 SXM", "decode.pencil_tps", lambda: on_device("H100 SXM")),
    _row(
        "M4 Pro ceiling in the answer section",
        "decode.pencil_tps",
        lambda: on_device("Apple M4 Pro"),
    ),
    _row(
        "KV bytes read at 32768 tokens (not printed; ceiling check)",
        "kv_cache.kv_read_bytes",
        lambda: kv_read_bytes(nemo(), ContextSettings(n_ctx=32768), 32767, 1) / 1e9,
    ),
    _row(
        "rate of one of 32 streams",
        "concurrency.per_stream_tps",
        lambda: per_stream_tps(194, 32),
    ),
    _row(
        "throughput gain of 32 streams",
        "concurrency.throughput_gain",
        lambda: throughput_gain(194, 28),
        differs="6.93",
    ),
    _row("latency cost of 32 streams", "concurrency.latency_cost", lambda: latency_cost(28, 6)),
    _row(
        "RTX 4090 over RTX 4070, FP16 tensor",
        "devices.find_device",
        lambda: _tensor(1) / _tensor(0),
    ),
    _row(
        "RTX 4090 over RTX 4070, bandwidth",
        "devices.find_device",
        lambda: ADA[1].bandwidth_bytes_per_s / ADA[0].bandwidth_bytes_per_s,
    ),
    _row(
        "RTX 4070 dense tensor, FP16 accumulate",
        "peaks.matrix_units_flop_per_s",
        lambda: matrix_units_flop_per_s(184, 128, 2.475e9) / 1e12,
    ),
    _row(
        "RTX 4070 dense tensor, FP32 accumulate",
        "peaks.matrix_units_flop_per_s",
        lambda: matrix_units_flop_per_s(184, 64, 2.475e9) / 1e12,
    ),
    _row("crossover of the H100", "assumptions.ridge_flop_per_byte", lambda: H100_RIDGE),
    _row(
        "crossover of the RTX 4070, FP32 accumulate",
        "assumptions.ridge_flop_per_byte",
        lambda: RTX_4070_RIDGE,
    ),
    _row(
        "crossover of the RTX 4070, FP16 accumulate",
        "assumptions.ridge_flop_per_byte",
        lambda: ridge_flop_per_byte(tflops(116.6), gbps(504)),
    ),
    _row(
        "bytes per parameter of Q4_K_M",
        "facts.ModelFacts.bits_per_weight",
        lambda: nemo().bits_per_weight / 8,
    ),
    _row(
        "decode intensity at Q4_K_M",
        "decode.PencilModel",
        lambda: Q4_K_M.decode_flop_per_byte,
    ),
    _row("decode intensity at 16 bits", "decode.PencilModel", lambda: F16.decode_flop_per_byte),
    _row(
        "below the crossover, low",
        "peaks.times_below_ridge",
        lambda: times_below_ridge(Q4_K_M.decode_flop_per_byte, RTX_4070_RIDGE),
        differs="35",
    ),
    _row(
        "below the crossover, high",
        "peaks.times_below_ridge",
        lambda: times_below_ridge(Q4_K_M.decode_flop_per_byte, H100_RIDGE),
    ),
)

FACTS = {row["quantity"]: row for row in rows("seed_facts.csv")}


def half_a_digit(printed: str) -> float:
    """Half a unit of the last printed digit, 0.05 for "10.2", and a hundredth of it for rounded inputs."""
    _, _, decimals = printed.partition(".")
    return 0.505 * 10.0 ** -len(decimals)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.quantity)
def test_the_articles_figure_comes_out(answer: Answer) -> None:
    row = FACTS[answer.quantity]
    printed = answer.differs or row["value"].split("-")[0] or f"{float(row['recomputed']):.2f}"
    assert answer.value() == pytest.approx(float(printed), abs=half_a_digit(printed))


def test_every_derivable_row_is_answered() -> None:
    derivable = {
        name for name, row in FACTS.items() if row["how_derived"] == "derived" or row["formula"]
    }
    assert not derivable - {answer.quantity for answer in ANSWERS}


def test_only_rows_with_a_note_differ() -> None:
    for answer in ANSWERS:
        if answer.differs is not None:
            assert FACTS[answer.quantity]["note"] or answer.quantity == "expected decode"


def test_the_functions_named_exist() -> None:
    import importlib

    for answer in ANSWERS:
        module, function = answer.function.split(".")[:2]
        room = {"facts": "gguf", "rates": "results"}.get(module, "ceilings")
        assert hasattr(importlib.import_module(f"llamasweep.{room}.{module}"), function)


CHAT = ContextSettings(n_ctx=4096)


def _exact(facts: ModelFacts, bandwidth_gbps: float, n_depth: int = 0) -> float:
    """Ceiling of tg128."""
    settings = ContextSettings(n_ctx=n_depth + 128)
    return decode_ceiling(
        facts, settings, n_depth=n_depth, n_gen=128, bandwidth=gbps(bandwidth_gbps)
    ).ceiling_tps


def _streams(n: int) -> tuple[float, float]:
    """Ceiling and estimate of the article's model on its machine, with its prefill rate."""
    both = concurrency_ceiling(
        nemo(), CHAT, n_streams=n, n_depth=512, bandwidth=gbps(273), prefill_tps=286
    )
    assert both.estimate_tps is not None
    return both.ceiling_tps, both.estimate_tps


@pytest.mark.parametrize(
    ("quantity", "ceiling_tps", "share"),
    [
        ("M1 decode, Llama 2 7B Q4_0", lambda: _exact(llama2("Q4_0"), 68), 0.79),
        ("M1 decode, Llama 2 7B Q8_0", lambda: _exact(llama2("Q8_0"), 68), 0.82),
        (
            "decode, Mistral NeMo 12B Q4_K_M, M4 Pro (tg128)",
            lambda: _exact(nemo(), 273),
            0.76,
        ),
        ("decode with an empty chat", lambda: _exact(nemo(), 273), 0.77),
        ("decode at 32768 tokens of history", lambda: _exact(nemo(), 273, 32768), 0.66),
        ("total of one stream", lambda: _streams(1)[0], 0.74),
        ("total of 32 streams", lambda: _streams(32)[0], 0.68),
    ],
)
def test_measured_rates_stay_below_their_ceilings(
    quantity: str, ceiling_tps: Callable[[], float], share: float
) -> None:
    measured = float(FACTS[quantity]["value"])
    assert fraction_of(measured, ceiling_tps()) == pytest.approx(share, abs=0.006)


def test_the_streams_of_the_article() -> None:
    ceiling, estimate = _streams(32)
    assert ceiling == 286
    assert 194 < estimate < 220
    assert 28 < _streams(1)[1] < _streams(1)[0]


def test_the_second_articles_slow_box_lies_in_the_range_that_a_disk_allows() -> None:
    measured = float(FACTS["decode with the model paging from SSD"]["value"])
    n_bytes = FLASH.bytes_per_token
    slowest = tiered_tps(0, n_bytes, gbps(50), gbps(0.05))
    fastest = tiered_tps(n_bytes, 0, gbps(50), gbps(3))
    assert slowest < measured < fastest


def _active(value: float) -> Callable[[], float]:
    return lambda: pencil_tps(7091837760, gbps(value))


SEEDS: dict[str, Callable[[], float]] = {
    "same, exact bytes (file 2491334144, KV 603979776)": lambda: pencil_tps(
        2491334144 + 603979776, gbps(51.2)
    ),
    "M1 ceiling Llama-2-7B Q8_0 (file 7160348672)": lambda: pencil_tps(
        llama2("Q8_0").size_bytes, gbps(68)
    ),
    "ceiling at 32768 depth M4 Pro f16 KV (5368709120 B)": lambda: decode_ceiling(
        nemo(), ContextSettings(n_ctx=32768), n_depth=32767, n_gen=1, bandwidth=gbps(273)
    ).pencil_with_kv_tps,
    **{
        f"exact ceiling {device} (active bytes 7091837760, excludes token_embd rows)": _active(n)
        for device, n in (
            ("M4 Pro", 273), ("RTX 4070", 504), ("L40S", 864), ("RTX 4090", 1008), ("H100 SXM", 3350),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("quantity", list(SEEDS))
def test_worked_numbers_of_the_reference(quantity: str) -> None:
    (row,) = (row for row in rows("seeds.csv") if row["quantity"] == quantity)
    assert SEEDS[quantity]() == pytest.approx(float(row["value"]), rel=1e-4)


@pytest.mark.parametrize(
    "row",
    rows("concurrency_m4pro.csv"),
    ids=lambda row: f"{row['streams']}-{row['tokens_of_history_each']}",
)
def test_streams_on_the_m4_pro(row: dict[str, str]) -> None:
    n_history = int(row["tokens_of_history_each"])
    rates = stream_rates(
        nemo().size_bytes, 163840 * n_history, int(row["streams"]), gbps(273), 286.0
    )
    assert rates.memory_tps == pytest.approx(float(row["memory_only_ceiling_tps"]), abs=0.06)
    assert rates.ceiling_tps == pytest.approx(float(row["roofline_ceiling_max_tps"]), abs=0.06)
    assert rates.estimate_tps == pytest.approx(float(row["additive_estimate_tps"]), abs=0.06)
    assert re.match("memory|compute", rates.bound)
