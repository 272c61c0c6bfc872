from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest
from tests.unit.report.factory import HOSTILE

from llamasweep.report import names


def test_hidden_and_reordering_characters_become_visible() -> None:
    assert names.shown("a\nb\u202ec\u200bd\udcff\x1b") == "a\\nb\\u202ec\\u200bd\\udcff\\x1b"


def test_letters_of_other_scripts_stay() -> None:
    assert names.shown("Schön-模型-مرحبا-e\u0301") == "Schön-模型-مرحبا-e\u0301"


def test_long_text_is_cut_in_the_middle_and_says_so() -> None:
    text = names.shown("a" * 500 + "end", limit=50)
    assert len(text) == 50
    assert "…" in text
    assert text.endswith("end")


def test_very_long_text_costs_no_more_than_its_bound() -> None:
    assert len(names.shown("\u202e" * 10_000_000, limit=100)) == 100


def test_a_block_keeps_its_last_lines_and_drops_terminal_colours() -> None:
    text = "\n".join(f"line {i}" for i in range(20)) + "\n\x1b[31mred\x1b[0m\tend\n"
    block = names.shown_block(text, max_lines=2)
    assert block == "… 19 earlier lines are in the log\nline 19\nred    end"


@pytest.mark.parametrize(
    ("label", "quant", "family"),
    [
        ("tiny-llama-Q4_0", "Q4_0", "tiny-llama"),
        ("tiny-llama Q4_0", "Q4_0", "tiny-llama"),
        ("Qwen3-4B-q4_k_m.gguf", "Q4_K_M", "Qwen3-4B"),
        ("llama (Q8_0)", "Q8_0", "llama"),
        ("Q8_0", "Q8_0", "Q8_0"),
        ("model-IQ4_0x", "Q4_0", "model-IQ4_0x"),
        ("model-Q4_K_M", "Q4_K", "model-Q4_K_M"),
        ("plain", "Q4_0", "plain"),
        ("plain", None, "plain"),
    ],
)
def test_family_is_the_label_without_its_quantisation(
    label: str, quant: str | None, family: str
) -> None:
    assert names.model_family(label, quant) == family


def test_values_read_as_people_write_them() -> None:
    assert [names.value_word(v) for v in (True, False, 2048, 0.5, "q8_0")] == [
        "on",
        "off",
        "2048",
        "0.5",
        "q8_0",
    ]
    assert names.axis_word("n_threads") == "threads"
    assert names.axis_word("rpc") == "rpc"
    assert names.axis_title("type_k") == "K cache"


@pytest.mark.parametrize(
    "argv",
    [
        ["plain", "with space", "-m", "it's", "", "$(touch pwned)", "`id`", "a\\b"],
        [HOSTILE, "tab\there", "'\n'", "\x85\x7f", "back\\slash\n"],
    ],
)
def test_shell_line_is_read_back_to_the_same_words(argv: Sequence[str]) -> None:
    line = names.shell_line(argv)
    assert "\n" not in line
    assert "\u202e" not in line
    answer = subprocess.run(
        ["/bin/bash", "-c", f"printf '%s\\0' {line}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    words = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert words == list(argv)
