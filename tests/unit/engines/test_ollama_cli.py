"""The verbose block: every recorded file, with the values read by a person, and what is not a value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamasweep.engines.ollama_cli import VerboseBlock, parse_go_duration, parse_verbose

GOLDEN = Path(__file__).parents[2] / "golden"
POSTED = GOLDEN / "ollama_verbose"
RECORDED = GOLDEN / "ollama_recorded"

S, MS = 1_000_000_000, 1_000_000


def block(
    total: int | None,
    load: int | None,
    prompt: tuple[int | None, int | None, float | None],
    generated: tuple[int | None, int | None, float | None],
    *unknown: str,
) -> VerboseBlock:
    """prompt and generated: count, duration in ns, printed rate."""
    return VerboseBlock(
        total_duration_ns=total,
        load_duration_ns=load,
        prompt_eval_count=prompt[0],
        prompt_eval_duration_ns=prompt[1],
        printed_prompt_eval_rate_tps=prompt[2],
        eval_count=generated[0],
        eval_duration_ns=generated[1],
        printed_eval_rate_tps=generated[2],
        unknown_lines=unknown,
        n_blocks=1,
    )


NOTHING = (None, None, None)

POSTED_BLOCKS: dict[str, VerboseBlock] = {
    "01_ollama-issue1806.txt": block(
        5_088_275_983, 1_365_523, (11, 204_563_000, 53.77), (120, 4_876_787_000, 24.61)
    ),
    "02_llm-ollama-issue32.txt": block(
        147_989_997_625, 559_665_542, (13, 19_747_000_000, 0.66), (1133, 127_682_000_000, 8.87)
    ),
    "04_ollama-pr12742-after.txt": block(
        30_024_798_033,
        4_758_588_663,
        (32768, 7_779_621_548, 4212.03),
        (1769, 17_148_014_223, 103.16),
    ),
    "05_ollama-pr6122-cpp-runner.txt": block(
        1_929_017_000, 1_036_014_583, (48, 95_572_000, 502.24), (84, 796_532_000, 105.46)
    ),
    "07_open-webui-issue188.txt": block(
        1_279_118_717,
        891_933,
        (21, 231_416_000, 90.75),
        (25, 1_042_407_000, 23.98),
        "$ ollama run --verbose llama2",
    ),
    "08_ollama-issue7740-iter1.txt": block(
        12_926_399_200, 32_856_100, (13, 73_000_000, 178.08), (480, 12_810_000_000, 37.47)
    ),
    "10_ollama-issue11676.txt": block(
        333_640_378_603,
        64_144_910_501,
        (73, 13_035_602_434, 5.60),
        (859, 256_457_263_845, 3.35),
        "ollama run gpt-oss:120b --verbose 'why is the sky blue?'",
    ),
    "11_ollama-issue15395.txt": block(
        10_621_128_800,
        143_494_200,
        (16, 8_506_550_100, 1.88),
        (79, 1_832_557_200, None),
        "NAME                      ID              SIZE     PROCESSOR    CONTEXT    UNTIL",
        "gemma4:26b-a4b-it-q8_0    6bfaf9a8cb37    31 GB    100% GPU     128000     Forever",
        "ollama run gemma4:26b-a4b-it-q8_0 --verbose",
        "Thinking...",
        "...done thinking.",
        "eval rate:            43.11 t",
    ),
    "13_ollama-issue12913-run2.txt": block(
        5_245_348_617, 165_261_292, (68, 133_715_680, 508.54), (38, 4_917_218_578, 7.73)
    ),
    "14_nanobot-issue4867-run1.txt": block(
        12_979_596_599, 12_265_908_188, (10, 227_981_000, 43.86), (13, 458_981_000, 28.32)
    ),
    "16_nanobot-issue4867-run3.txt": block(770_455_149, 53_950_460, (703, None, None), NOTHING),
    "17_ollama-issue10746-070.txt": block(
        None, None, NOTHING, (74, 5_657_106_746, 13.08), "**0.7.0:**"
    ),
    "19_ollama-issue12504.txt": block(
        1_385_891_375_436, None, NOTHING, NOTHING, "0.12.4rc5", "load duration:        54.85"
    ),
    "20_ollama-issue1556.txt": block(
        18_273_218_027, None, (1180, 15_833_678_000, 74.52), (114, 2_391_734_000, 47.66)
    ),
    "22_ollama-issue721-termux.txt": replace(
        block(
            None,
            None,
            (None, None, 0.0),
            (None, None, 19.31),
            "==== Cortex-X1 2 threads ollama orca-mini run 1 ====",
            "pid 31136's current affinity list: 6,7",
            "==== Cortex-X1 2 threads ollama orca-mini run 2 ====",
            "pid 31136's current affinity list: 6,7",
            "==== Cortex-X1 2 threads ollama orca-mini run 3 ====",
        ),
        n_blocks=3,
    ),
    "23_aidatatools-pr9-pi4.txt": replace(
        block(
            None,
            None,
            NOTHING,
            (None, None, 3.11),
            "ollama_version: 0.1.42",
            "model_name =    qwen:1.8b",
            "Average of eval rate:  3.054  tokens/s",
        ),
        n_blocks=5,
    ),
    "25_ollama-pr11835-phi4.txt": block(
        3_341_959_745,
        18_165_612,
        (15, 475_000_000, 31.58),
        (26, 2_846_000_000, 9.14),
        "# ollama run phi4:14b",
        ">>> /set verbose",
        "Set 'verbose' mode.",
    ),
}
WITHOUT_BLOCK = {"26_gist-hammad93-cm4.txt": 7, "28_ollama-docs-api-usage.txt": 12}
"""File -> lines with a word: a table of the figures, and an answer of the API."""


@pytest.mark.parametrize("name", list(POSTED_BLOCKS))
def test_a_posted_block_gives_what_a_person_reads(name: str) -> None:
    assert parse_verbose((POSTED / name).read_bytes()) == POSTED_BLOCKS[name]


@pytest.mark.parametrize(("name", "n_lines"), WITHOUT_BLOCK.items())
def test_a_file_without_a_block_gives_nothing_but_its_lines(name: str, n_lines: int) -> None:
    found = parse_verbose((POSTED / name).read_bytes())
    assert replace(found, unknown_lines=()) == VerboseBlock()
    assert len(found.unknown_lines) == n_lines


def test_no_posted_file_is_left_out() -> None:
    files = {path.name for path in POSTED.glob("*.txt")}
    assert files == {*POSTED_BLOCKS, *WITHOUT_BLOCK}


RECORDED_BLOCKS: dict[str, VerboseBlock] = {
    "v0.11.4/run_empty_prompt": block(
        9_694_284, 1_160_546, (3, 1_016_401, 2951.59), (16, 6_926_529, 2309.96)
    ),
    "v0.11.4/run_first_load": block(
        303_112_699, 264_719_083, (32, 5_221_764, 6128.20), (64, 32_298_062, 1981.54)
    ),
    "v0.11.4/run_keepalive": block(
        37_625_003, 1_041_373, (12, 2_538_855, 4726.54), (64, 33_610_103, 1904.19)
    ),
    "v0.11.4/run_prompt_too_long": block(
        258_837_033, 877_936, (1024, 206_845_699, 4950.55), (32, 50_297_375, 636.22)
    ),
    "v0.11.4/run_warm_repeat": block(
        39_177_982, 827_250, (38, 1_635_351, 23236.60), (64, 36_242_217, 1765.90)
    ),
    "v0.11.4/run_warm_unique": block(
        41_808_688, 1_005_605, (38, 4_994_697, 7608.07), (64, 35_370_220, 1809.43)
    ),
    "v0.11.4/run_wordwrap": block(
        36_339_737, 1_052_666, (11, 1_940_815, 5667.72), (64, 32_981_970, 1940.45)
    ),
    "v0.24.0/run_first_load": block(
        329_406_649, 284_056_951, (31, 5_663_641, 5473.51), (64, 37_099_601, 1725.09)
    ),
    "v0.24.0/run_keepalive": block(
        39_245_632, 1_052_615, (11, 2_606_345, 4220.47), (64, 33_272_616, 1923.50)
    ),
    "v0.24.0/run_prompt_too_long": block(
        1_448_998_508, 3_107_220, (1024, 1_314_881_124, 778.78), (64, 111_081_455, 576.15)
    ),
    "v0.24.0/run_warm_repeat": block(
        32_038_046, 1_092_364, (37, 602_887, 61371.37), (44, 28_543_588, 1541.50)
    ),
    "v0.24.0/run_warm_unique": block(
        51_463_990, 1_325_321, (37, 6_972_477, 5306.58), (64, 40_050_401, 1597.99)
    ),
    "v0.24.0/run_wordwrap": block(
        39_410_278, 1_152_584, (10, 1_520_511, 6576.74), (64, 34_628_617, 1848.18)
    ),
    "v0.32.15/run_first_load": block(
        1_271_061_741, 1_243_231, (9, 325_759_000, 27.63), (32, 925_245_000, 34.59)
    ),
    "v0.32.15/run_keepalive": block(
        1_532_072_865, 1_098_926, (8, 45_965_000, 174.05), (32, 1_481_993_000, 21.59)
    ),
    "v0.32.15/run_prompt_too_long": block(
        2_328_015_123, 1_040_096_597, (258, 835_950_000, 308.63), (16, 423_959_000, 37.74)
    ),
    "v0.32.15/run_warm_repeat": block(
        601_804_425, 1_795_012, (9, 9_783_000, 919.96), (32, 582_396_000, 54.95)
    ),
    "v0.32.15/run_warm_unique": block(
        762_879_444, 1_192_315, (15, 23_648_000, 634.30), (32, 730_119_000, 43.83)
    ),
    "v0.32.15/run_wordwrap": block(
        579_480_518, 1_827_580, (15, 43_345_000, 346.06), (32, 530_431_000, 60.33)
    ),
}
RECORDED_REFUSALS = {
    "v0.11.4/run_keepalive_bad": 'Error: time: missing unit in duration "600"',
    "v0.11.4/run_server_down": (
        "Error: ollama server not responding - could not connect to ollama server, "
        "run 'ollama serve' to start it"
    ),
    "v0.11.4/run_think_unsupported": (
        "Error: 400 Bad Request: registry.ollama.ai/library/tiny-cell:latest does not support thinking"
    ),
    "v0.24.0/run_empty_prompt": None,
    "v0.24.0/run_keepalive_bad": 'Error: time: missing unit in duration "600"',
    "v0.24.0/run_server_down": (
        "Error: could not connect to ollama server, run 'ollama serve' to start it"
    ),
    "v0.24.0/run_think_unsupported": (
        'Error: 400 Bad Request: "tiny-cell" does not support thinking'
    ),
    "v0.32.15/run_empty_prompt": None,
    "v0.32.15/run_keepalive_bad": 'Error: time: missing unit in duration "600"',
    "v0.32.15/run_server_down": (
        "Error: could not connect to ollama server, run 'ollama serve' to start it"
    ),
    "v0.32.15/run_think_unsupported": 'Error: 400 Bad Request: "tiny" does not support thinking',
}
"""Calls of `ollama run` that printed no block, and the one line that they printed instead."""


@pytest.mark.parametrize("name", list(RECORDED_BLOCKS))
def test_a_recorded_block_gives_what_a_person_reads(name: str) -> None:
    assert parse_verbose((RECORDED / f"{name}.stderr").read_bytes()) == RECORDED_BLOCKS[name]


@pytest.mark.parametrize(("name", "line"), RECORDED_REFUSALS.items())
def test_a_recorded_call_without_a_block_gives_the_reason(name: str, line: str | None) -> None:
    found = parse_verbose((RECORDED / f"{name}.stderr").read_bytes())
    assert found == VerboseBlock(unknown_lines=() if line is None else (line,))


def test_no_recorded_call_is_left_out() -> None:
    files = {f"{path.parent.name}/{path.stem}" for path in RECORDED.glob("*/run_*.stderr")}
    assert files == {*RECORDED_BLOCKS, *RECORDED_REFUSALS}


@pytest.mark.parametrize("name", ["create", "create_truncated", "stop_missing", "ps"])
def test_other_calls_hold_no_block(name: str) -> None:
    for path in RECORDED.glob(f"*/{name}.stderr"):
        found = parse_verbose(path.read_bytes())
        assert replace(found, unknown_lines=()) == VerboseBlock()


@pytest.mark.parametrize("name", [*POSTED_BLOCKS, *RECORDED_BLOCKS])
def test_rates_that_were_printed_are_those_of_count_and_duration(name: str) -> None:
    found = POSTED_BLOCKS.get(name) or RECORDED_BLOCKS[name]
    assert found.disagreements == ()


LATER = b"""total duration:       1.5s
prompt eval count:    10 token(s)
prompt eval cached:   4 token(s)
prompt eval duration: 1s
prompt eval rate:     6.00 tokens/s
"""


def test_cached_tokens_are_not_in_the_rate() -> None:
    found = parse_verbose(LATER)
    assert found.prompt_eval_cached_count == 4
    assert found.prompt_eval_rate_tps == 6.0
    assert found.disagreements == ()


def test_a_printed_rate_that_is_not_count_over_duration_is_told() -> None:
    found = parse_verbose(LATER.replace(b"6.00", b"10.00"))
    assert found.disagreements == (
        "prompt eval rate: printed 10.00 tokens/s, count / duration is 6.00",
    )


def test_a_rate_without_its_duration_is_not_computed() -> None:
    found = parse_verbose(b"prompt eval count:    7 token(s)\neval count:           3 token(s)\n")
    assert (found.prompt_eval_count, found.eval_count) == (7, 3)
    assert (found.prompt_eval_rate_tps, found.eval_rate_tps) == (None, None)


def test_lines_of_other_versions_are_kept_and_do_not_disturb() -> None:
    text = (
        b"total duration:       2s\npeak memory:          1.5 GiB\nload duration:        1ms\n"
        b"sample count:         8 token(s)\nsample duration:      1ms\neval count:           8 token(s)\n"
    )
    found = parse_verbose(text)
    assert (found.total_duration_ns, found.load_duration_ns, found.eval_count) == (2 * S, MS, 8)
    assert found.unknown_lines == (
        "peak memory:          1.5 GiB",
        "sample count:         8 token(s)",
        "sample duration:      1ms",
    )


def test_spinner_frames_between_the_lines_do_not_disturb() -> None:
    frame = "\x1b[?2026h\x1b[?25l\x1b[1G⠋ \x1b[K\x1b[?25h\x1b[?2026l"
    lines = ["total duration:       5.5s", "eval count:           3 token(s)"]
    text = frame + f"\n{frame}".join(lines) + frame
    found = parse_verbose(text.encode())
    assert (found.total_duration_ns, found.eval_count) == (5_500_000_000, 3)
    assert found.unknown_lines == ()


def test_a_progress_text_that_was_overwritten_is_not_before_the_label() -> None:
    text = "\x1b[1Gpulling manifest ⠋ \x1b[K\x1b[2K\x1b[1Gtotal duration:       4s\n"
    found = parse_verbose(text.encode())
    assert found.total_duration_ns == 4 * S
    assert found.unknown_lines == ("pulling manifest ⠋",)


def test_the_last_of_several_blocks_counts_and_nothing_is_mixed() -> None:
    first = (
        b"total duration:       1s\nload duration:        9ms\neval count:           1 token(s)\n"
    )
    second = b"total duration:       2s\neval count:           2 token(s)\n"
    found = parse_verbose(first + second)
    assert (found.total_duration_ns, found.load_duration_ns, found.eval_count) == (2 * S, None, 2)
    assert found.n_blocks == 2


@pytest.mark.parametrize(
    ("text", "n_ns"),
    [
        ("1h2m3.456789012s", 3_723_456_789_012),
        ("1h0m0s", 3600 * S),
        ("72h3m0.5s", 72 * 3600 * S + 180 * S + S // 2),
        ("2m27.989997625s", 147_989_997_625),
        ("1m0s", 60 * S),
        ("1m4s", 64 * S),
        ("2m7.682s", 127_682_000_000),
        ("5m", 300 * S),
        ("19.747s", 19_747_000_000),
        ("4s", 4 * S),
        ("559.665542ms", 559_665_542),
        ("53ms", 53 * MS),
        ("891.933µs", 891_933),
        ("891.933μs", 891_933),
        ("877us", 877_000),
        ("950ns", 950),
        ("0s", 0),
        ("-1.5s", -1_500_000_000),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_every_form_that_go_prints_is_read_exactly(text: str, n_ns: int) -> None:
    assert parse_go_duration(text) == n_ns
    line = f"total duration:       {text}\n".encode()
    assert parse_verbose(line).total_duration_ns == n_ns


@pytest.mark.parametrize(
    "text",
    ["", "-", "54.85", "5", "s", "1.5h", "1d", "1m 4s", "5 s", "4s1m", "1e3s", "5.s", ".5s", "1m4", "٣s",
     "9223372037s", "999999999999999999h", "nan", "1s2s", "53 ms"],
)  # fmt: skip
def test_what_go_does_not_print_is_no_duration(text: str) -> None:
    assert parse_go_duration(text) is None


@pytest.mark.parametrize(
    "line",
    [
        b"total duration:       53m",
        b"total duration:       1h",
        b"total duration:       54.85",
        b"total duration:       1m4",
        b"total duration:",
        b"eval count:           13",
        b"eval count:           13 tok",
        b"eval count:           -3 token(s)",
        b"eval count:           1.5 token(s)",
        b"eval count:           9999999999999999999 token(s)",
        b"prompt eval rate:     43.11 t",
        b"prompt eval rate:     nan tokens/s",
        b"prompt eval rate:     +Inf tokens/s",
    ],
)
def test_a_value_that_is_cut_or_none_is_absent_and_its_line_kept(line: bytes) -> None:
    found = parse_verbose(line)
    assert replace(found, unknown_lines=(), n_blocks=0) == VerboseBlock()
    assert found.unknown_lines == (line.decode(),)


def test_a_flood_of_lines_stays_small() -> None:
    found = parse_verbose(b"noise line\n" * 200_000 + b"x" * 3_000_000)
    assert len(found.unknown_lines) == 1_000
    assert max(map(len, found.unknown_lines)) == 1_000
