"""The measured rows as the table that llama-bench prints with `-o md`, to paste where people compare such tables.

Columns, names and widths are llama-bench's (b11434, `markdown_printer`); the rate is our median, which the last line says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.names import shown, value_word
from llamasweep.report.rows import Row, varying

_GIB, _MIB = 1 << 30, 1 << 20
_SHORT_NAMES = {
    "n_gpu_layers": "ngl",
    "split_mode": "sm",
    "n_threads": "threads",
    "no_kv_offload": "nkvo",
    "flash_attn": "fa",
    "load_mode": "lm",
    "embeddings": "embd",
    "no_op_offload": "nopo",
    "no_host": "noh",
    "repack": "rpk",
    "devices": "dev",
    "tensor_split": "ts",
    "tensor_buft_overrides": "ot",
}
_WIDTHS = {
    "model": -30,
    "backend": -10,
    "t/s": 20,
    "n_gpu_layers": 3,
    "n_threads": 7,
    "n_batch": 7,
    "n_ubatch": 8,
    "type_k": 6,
    "type_v": 6,
    "split_mode": 6,
    "load_mode": 10,
    "flash_attn": 3,
    "test": 15,
    "no_op_offload": 4,
    "no_host": 4,
    "repack": 3,
    "devices": -12,
}
"""Characters; below 0 where the column is aligned to the left. Any other column has 10 or the length of its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownTable:
    """head: two lines. lines: one per measured row, in the order of the rows. foot: builds and what the rate is."""

    head: tuple[str, str]
    lines: tuple[str, ...]
    foot: str

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join((*self.head, *self.lines, "", self.foot))


def markdown_table(rows: Sequence[Row], version: str) -> MarkdownTable:
    """The table of all measured rows; every setting that varies among them is a column."""
    timed = [row for row in rows if row.rates is not None]
    axes = [axis for axis in varying(timed) if axis not in ("n_depth", "run_id", "build")]
    if "n_threads" not in axes and any("n_threads" in row.settings for row in timed):
        axes.append("n_threads")
    builds = dict.fromkeys(_build(row) for row in timed)
    names = ["model", "size", "params", "backend", *axes]
    if len(builds) > 1:
        names.append("build")
    names += ["test", "t/s"]
    cells = [[_cell(row, name) for name in names] for row in timed]
    titles = [_SHORT_NAMES.get(name, name) for name in names]
    return MarkdownTable(
        head=(
            _line([_padded(title, name) for title, name in zip(titles, names, strict=True)]),
            _line([_rule(name) for name in names]),
        ),
        lines=tuple(
            _line([_padded(cell, name) for cell, name in zip(line, names, strict=True)])
            for line in cells
        ),
        foot=(
            f"build: {', '.join(builds) or 'none'}; t/s: median ± sample standard deviation of the repetitions kept, "
            f"llamasweep {_harmless(version)}"
        ),
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _width(name: str) -> int:
    return _WIDTHS.get(name, max(10, len(name)))


def _padded(text: str, name: str) -> str:
    width = _width(name)
    return text.ljust(-width) if width < 0 else text.rjust(width)


def _rule(name: str) -> str:
    width = _width(name)
    return "-" * -width if width < 0 else "-" * (width - 1) + ":"


def _cell(row: Row, name: str) -> str:
    if name in _FACTS:
        return _FACTS[name](row)
    value = row.settings.get(name)
    if value is None:
        value = row.attempt.applied.get(name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else _harmless(value_word(value))


def _test(row: Row) -> str:
    return row.attempt.test_label + (f" @ d{row.attempt.n_depth}" if row.attempt.n_depth else "")


def _rate(row: Row) -> str:
    rates = row.rates
    assert rates is not None  # noqa: S101  (made of measured rows)
    places = max(2, figures.decimals(rates.median))
    text = f"{rates.median:.{places}f}"
    return text if rates.std is None else f"{text} ± {rates.std:.{places}f}"


def _size(n_bytes: int | None) -> str:
    if n_bytes is None:
        return ""
    if n_bytes < _GIB:
        return f"{n_bytes / _MIB:.2f} MiB"
    return f"{n_bytes / _GIB:.2f} GiB"


def _params(n_params: int | None) -> str:
    if n_params is None:
        return ""
    return f"{n_params / 1e6:.2f} M" if n_params < 1e9 else f"{n_params / 1e9:.2f} B"


def _build(row: Row) -> str:
    attempt = row.attempt
    if attempt.build_commit and attempt.build_number is not None:
        return f"{_harmless(attempt.build_commit)} ({attempt.build_number})"
    return _harmless(attempt.build_label or "unknown")


def _harmless(text: str) -> str:
    """In one cell, whatever it holds: no line break, no column, no element."""
    return shown(text, 60).replace("|", "\\|").replace("<", "&lt;")


_FACTS: dict[str, Callable[[Row], str]] = {
    "model": lambda row: _harmless(row.attempt.model_type or row.attempt.model_label),
    "size": lambda row: _size(row.attempt.model_size_bytes),
    "params": lambda row: _params(row.attempt.model_n_params),
    "backend": lambda row: _harmless(row.attempt.build_backends or ""),
    "build": _build,
    "test": _test,
    "t/s": _rate,
}
