"""The screen of `ceiling`: a figure that is not known is never shown as a number."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.ceilings.reference import quantised

from llamasweep.ceilings.answer import Answer, answer
from llamasweep.ceilings.answer_pencil import pencil_answer
from llamasweep.ceilings.decode import PencilModel
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import rig_of, with_peak
from llamasweep.cli.ceiling_lines import answer_lines, tps

NOTHING = re.compile(r"(?<![\d.,])0(\.0+)? (B|[kMGT]B|[kMGT]i?B|[kMGTP]?FLOP|t/s|ms)|[: ]0% of it")
"""A figure of nought where a measurement or a property of the hardware should stand."""


def exact(device: str = "RTX 4090") -> Answer:
    return answer(quantised("Qwen3-4B", "Q4_K_M"), Question(), rig_of([device]))


def pencil() -> Answer:
    model = PencilModel(params=4e9, active_params=4e9, bits_per_weight=4.5)
    return pencil_answer(model, Question(), rig_of(["RTX 4090"]))


def changed(found: Answer, part: str, **changes: Any) -> Answer:
    return found._replace(**{part: getattr(found, part)._replace(**changes)})


def screen(found: Answer) -> str:
    return "\n".join(answer_lines(found, "a model"))


def floats_of(part: str) -> list[str]:
    return [
        name
        for name in getattr(exact(), part)._fields
        if re.search("_per_|_s$|_tps$|fraction", name)
    ]


ABSENT = [(part, name) for part in ("decode", "prefill", "workload") for name in floats_of(part)]


@pytest.mark.parametrize(("part", "name"), ABSENT)
@pytest.mark.parametrize("kind", ["memory", "compute", "pencil"])
def test_a_missing_figure_is_never_shown_as_a_number(part: str, name: str, kind: str) -> None:
    found = pencil() if kind == "pencil" else changed(exact(), "decode", bound=kind)
    text = screen(changed(found, part, **{name: None}))
    assert not NOTHING.search(text), text
    assert "None" not in text


def test_nothing_is_missing_on_a_full_screen() -> None:
    text = screen(exact())
    assert "not known" not in text
    assert re.search(r"\n  [\d,.]+ GB/s ÷ 2\.5\d? GB per token = ", text), text


def test_a_formula_without_its_bandwidth_says_so_with_the_reason() -> None:
    found = changed(exact(), "decode", bandwidth_bytes_per_s=None)
    assert "\n  not known\n" in screen(found)
    reasons = {"decode.bandwidth_bytes_per_s": "nobody measured it"}
    text = screen(found._replace(reasons=reasons))
    assert "\n  not known: nobody measured it\n" in text
    assert "by pencil: not known: nobody measured it" in text


def test_bytes_that_are_not_known_are_not_split() -> None:
    text = screen(changed(exact(), "decode", weight_bytes_per_token=None))
    assert "each token reads not known" in text


def test_a_device_without_a_bandwidth_has_no_time() -> None:
    part = max(exact().placement, key=lambda part: part.read_bytes_per_token)
    parts = (part, part._replace(device="other", bandwidth_bytes_per_s=None))
    assert "\n  other: not known\n" in screen(exact()._replace(placement=parts))


def test_pencil_does_not_take_the_whole_model_for_its_active_weights() -> None:
    text = screen(changed(pencil(), "model", active_bytes_per_token=None))
    assert "active weights" not in text
    assert "not known" in text


def test_the_prompt_of_a_pencil_mixture_is_shown_by_its_active_weights() -> None:
    model = PencilModel(params=177e9, active_params=6e9, bits_per_weight=4.27)
    text = screen(pencil_answer(model, Question(), rig_of(["RTX 4090"])))
    assert re.search(r"about 55,\d00 t/s, by pencil: 661 TFLOPS ÷ 12\.0 GFLOP per token", text), (
        text
    )


def test_pencil_without_a_bandwidth_tells_why_there_is_no_figure() -> None:
    model = PencilModel(params=4e9, active_params=4e9, bits_per_weight=4.5)
    text = screen(pencil_answer(model, Question(), rig_of(["2 x RTX 3090"])))
    assert "Generating: no figure; pencil figures are of one memory" in text


def test_a_request_with_one_part_not_known_shows_the_other() -> None:
    found = exact()
    assert "until the first token, at best" in screen(changed(found, "workload", decode_s=None))
    assert "from the first token to the last" in screen(changed(found, "workload", ttft_s=None))
    assert "alone\n  not known" in screen(changed(found, "workload", prefill_fraction=None))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.00685, "0.0069 t/s"), (0.099, "0.099 t/s"), (0.1, "0.10 t/s"), (0.0, "0.00 t/s")],
)
def test_rates_far_below_one_keep_two_digits(value: float, shown: str) -> None:
    assert tps(value) == shown


@pytest.mark.parametrize("found", [exact(), pencil()], ids=["exact", "pencil"])
def test_rates_of_what_does_not_fit_say_whose_they_are(found: Answer) -> None:
    words = "those of a memory large enough"
    assert words in screen(changed(found, "memory", fits=False))
    assert words not in screen(changed(found, "memory", fits=True))
    assert words not in screen(changed(found, "memory", fits=None))


def test_a_prompt_that_memory_bounds_shows_the_division_that_gives_it() -> None:
    rig = with_peak(rig_of(bandwidth_bytes_per_s=1e9), 1e15)
    found = answer(quantised("Qwen3-4B", "Q4_K_M"), Question(n_prompt=10), rig)
    text = screen(found)
    assert found.prefill.bound == "memory"
    rate, n_bytes = found.prefill.ceiling_tps, found.prefill.bytes_per_token
    assert rate is not None
    assert n_bytes is not None
    assert rate == pytest.approx(1e9 / n_bytes, rel=0.01)
    assert re.search(r"bound by memory\n  1 GB/s ÷ \d+ MB per token = [\d.]+ t/s\n", text), text


def test_a_dense_model_over_two_devices_is_not_called_a_mixture() -> None:
    rig = rig_of(["RTX 3060 12GB", "DDR5-5600x2"])
    text = screen(answer(quantised("Qwen3-4B", "Q4_K_M"), Question(n_gpu_layers=2), rig))
    assert "mixture" not in text
    assert "handing over" in text
    assert "(1 layer, " in text


def test_what_rests_on_a_reference_is_not_called_a_bound() -> None:
    found = changed(changed(exact(), "prefill", is_reference=True), "workload", is_measured=False)
    assert "by that reference" in screen(found)
    assert "at best" not in screen(found)
    crowd = changed(
        found, "concurrency", streams=8, is_reference=True, bound="compute", ceiling_tps=90.0
    )
    assert "8 users at once, each behind 63 tokens: about 90.0 t/s together" in screen(crowd)
    assert "by the reference for compute" in screen(crowd)
    assert "at most 90.0 t/s" in screen(changed(crowd, "concurrency", bound="memory"))
