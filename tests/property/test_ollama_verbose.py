"""The reader of the verbose block: never falls over, and reads back whatever a block can say."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from llamasweep.engines.ollama_cli import VerboseBlock, parse_go_duration, parse_verbose

NAMES = tuple(VerboseBlock.__dataclass_fields__)[:7]
LABELS = {
    "total_duration_ns": "total duration",
    "load_duration_ns": "load duration",
    "prompt_eval_count": "prompt eval count",
    "prompt_eval_cached_count": "prompt eval cached",
    "prompt_eval_duration_ns": "prompt eval duration",
    "eval_count": "eval count",
    "eval_duration_ns": "eval duration",
}
NOISE = st.sampled_from(
    [b"", b"\x1b[?25l\x1b[?25h", b"\x1b[?2026h\x1b[1G\xe2\xa0\x8b \x1b[K\x1b[?2026l", b"\x1b[2K\x1b[1G", b"\r",
     b"\xff\xfe", b"> "]
)  # fmt: skip


def go_duration(n_ns: int) -> str:
    """As time.Duration.String() writes it: its own rules, written out another way than the reader's."""
    if n_ns < 1_000_000_000:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000)):
            if n_ns >= size:
                return _trimmed(n_ns, size) + unit
        return f"{n_ns}ns" if n_ns else "0s"
    n_minutes, rest = divmod(n_ns, 60_000_000_000)
    text = _trimmed(rest, 1_000_000_000) + "s"
    if n_minutes == 0:
        return text
    n_hours, n_minutes = divmod(n_minutes, 60)
    return (f"{n_hours}h" if n_hours else "") + f"{n_minutes}m{text}"


def _trimmed(n_ns: int, size: int) -> str:
    whole, part = divmod(n_ns, size)
    digits = str(part).zfill(len(str(size)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


@given(st.integers(0, 2**63 - 1))
@example(2**63 - 1)
@example(3_600_000_000_000)
def test_a_duration_that_go_prints_is_read_back(n_ns: int) -> None:
    assert parse_go_duration(go_duration(n_ns)) == n_ns


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 10**15)),
    st.lists(NOISE, min_size=9, max_size=9),
)
def test_any_subset_of_lines_between_any_noise_is_read_back(
    values: dict[str, int], noise: list[bytes]
) -> None:
    text = b""
    for name, between in zip(NAMES, noise, strict=False):
        text += between
        if name in values:
            is_time = name.endswith("_ns")
            value = go_duration(values[name]) if is_time else f"{values[name]} token(s)"
            text += f"{LABELS[name] + ':':<22}{value}\n".encode()
    found = parse_verbose(text + noise[-1])
    assert {n: getattr(found, n) for n in NAMES if getattr(found, n) is not None} == values
    assert found.n_blocks == (1 if values else 0)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fall_over(data: bytes) -> None:
    assert isinstance(parse_verbose(data), VerboseBlock)


WORDS = st.sampled_from(
    [b"total duration:", b"eval count:", b"prompt eval rate:", b" ", b"12", b".", b"m", b"s", b"\xc2\xb5s", b"ms", b"h", b"-",
     b"*", b" token(s)", b" tokens/s", b"\n", b"\x1b[1G", b"\x1b[", b"9" * 30, b"\x00", b"Average of "]
)  # fmt: skip


@given(st.lists(WORDS, max_size=60))
def test_pieces_of_a_block_in_any_order_make_no_impossible_value(pieces: list[bytes]) -> None:
    found = parse_verbose(b"".join(pieces))
    assert all(len(line) <= 1_000 for line in found.unknown_lines)
    assert found.eval_count is None or 0 <= found.eval_count < 2**63
    assert found.total_duration_ns is None or abs(found.total_duration_ns) < 2**63
    for rate in (found.prompt_eval_rate_tps, found.eval_rate_tps):
        assert rate is None or rate >= 0


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_block_that_is_cut_anywhere_gives_true_values_or_none(prefix: bytes, at: int) -> None:
    whole = (
        b"total duration:       1m53.5s\nload duration:        53ms\nprompt eval count:    123 token(s)\n"
        b"prompt eval duration: 91.933\xc2\xb5s\neval count:           456 token(s)\neval duration:        2h1m0s\n"
    )
    truth = parse_verbose(whole)
    found = parse_verbose(b"\n" + whole[:at])
    for name in NAMES:
        assert getattr(found, name) in (None, getattr(truth, name))
    assert isinstance(parse_verbose(prefix + whole), VerboseBlock)
