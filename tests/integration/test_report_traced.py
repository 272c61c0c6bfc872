"""Every number in the page's title and findings, made again from Parquet by pandas alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from tests.unit.report.factory import (
    Part,
    failed_parts,
    hostile_run,
    measured,
    run_of,
    sweep_parts,
)
from tests.unit.report.talks import talk_parts
from tests.unit.report.wide import served_parts

from llamasweep.report.findings import Finding
from llamasweep.report.told import FORMULAS, Number
from llamasweep.report.views import page
from llamasweep.results.records import RunData
from llamasweep.store.locate import load_run
from llamasweep.store.parquet import RunStore

FIXED = {0.70, 0.85, 0.03}
FAILED = ("failed", "timeout", "out_of_memory")


def rounds() -> list[Part]:
    """Two rounds of each cell, the second slower, so that no single attempt has the median of both."""
    first = sweep_parts(models=("m",), quants=("Q4_0",), threads=(1, 2), depths=(0, 512))
    again = []
    for attempt, samples in first:
        second = replace(attempt, attempt_id=f"again-{attempt.attempt_id}", round_index=1)
        again.append(
            (
                second,
                [
                    replace(
                        s,
                        attempt_id=second.attempt_id,
                        tps=s.tps * 0.9,
                        duration_ns=round(s.duration_ns / 0.9),
                    )
                    for s in samples
                ],
            )
        )
    return [*first, *again]


def axes() -> list[Part]:
    """One axis of numbers, one of words, one without an effect."""
    parts: list[Part] = []
    for n_ubatch, pp in ((128, 200.0), (512, 330.0), (2048, 410.0)):
        for type_k, tg in (("f16", 10.0), ("q8_0", 14.0)):
            for poll in (0, 50):
                for kind, tps in (("pp", pp), ("tg", tg * pp / 400)):
                    parts.append(
                        measured(
                            len(parts), [tps, tps * 1.01, tps * 0.99],
                            test_kind=kind, test_label="pp512" if kind == "pp" else "tg32",
                            n_prompt=512 if kind == "pp" else 0, n_gen=0 if kind == "pp" else 32,
                            requested={"n_ubatch": n_ubatch, "type_k": type_k, "poll": poll},
                        )
                    )  # fmt: skip
    return parts


def above() -> list[Part]:
    return [measured(n, [40.0 + n, 40.1 + n], requested={"n_threads": n}) for n in (1, 2, 3)]


RUNS: dict[str, RunData] = {
    "full": run_of([*sweep_parts(), *failed_parts()]),
    "gpu": run_of(sweep_parts(gpu=True, seed=7)),
    "failures": run_of(failed_parts()),
    "one": run_of([measured(1, [10.0, 10.1])]),
    "single repetitions": run_of(
        [measured(n, [10.0 + n], requested={"n_threads": n}) for n in (1, 2)]
    ),
    "rounds": run_of(rounds()),
    "axes": run_of(axes()),
    "above the ceiling": run_of(above()),
    "several users": run_of(served_parts()),
    "a conversation": run_of(talk_parts()),
    "no ceiling": run_of([measured(1, [18.0, 18.1], model_size_bytes=None)]),
    "hostile": hostile_run(),
    "empty": run_of([]),
}


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What lies on disk."""

    cells: pd.DataFrame
    samples: pd.DataFrame

    def median(self, attempts: Sequence[str]) -> float:
        kept = self.samples[self.samples.attempt_id.isin(attempts) & ~self.samples.is_discarded]
        return float((kept.n_tokens / (kept.duration_ns / 1e9)).median())

    def column(self, attempts: Sequence[str], name: str) -> float:
        return float(self.cells[self.cells.attempt_id == attempts[-1]][name].iloc[0])

    def questions(self) -> pd.DataFrame:
        """One line per cell and build, its last attempt."""
        return self.cells.drop_duplicates(["cell_id", "build_hash"], keep="last")


def _setting(tables: Tables, rows: Sequence[Sequence[str]], axis: str) -> float:
    return tables.column(rows[0], axis)


def _latency_column(tables: Tables, rows: Sequence[Sequence[str]]) -> str:
    kind = tables.cells[tables.cells.attempt_id == rows[0][-1]].test_kind.iloc[0]
    return "ttft_median_s" if kind == "pp" else "tpot_median_s"


Formula = Callable[[Tables, Sequence[Sequence[str]], str], float]
MADE_AGAIN: dict[str, Formula] = {
    "median": lambda t, rows, _: t.median(rows[0]),
    "share of ceiling": lambda t, rows, _: t.median(rows[0]) / t.column(rows[0], "ceiling_tps"),
    "share of pencil": lambda t, rows, _: (
        t.median(rows[0]) / t.column(rows[0], "pencil_ceiling_tps")
    ),
    "share of a stream": lambda t, rows, _: (
        t.median(rows[0])
        / t.column(rows[0], "concurrency")
        / (t.median(rows[1]) / t.column(rows[1], "concurrency"))
    ),
    "latency ratio": lambda t, rows, _: (
        t.column(rows[0], _latency_column(t, rows)) / t.column(rows[1], _latency_column(t, rows))
    ),
    "ratio": lambda t, rows, _: t.median(rows[0]) / t.median(rows[1]),
    "size ratio": lambda t, rows, _: (
        t.column(rows[0], "model_size_bytes") / t.column(rows[1], "model_size_bytes")
    ),
    "first token": lambda t, rows, _: t.column(rows[0], "ttft_median_s"),
    "turn": lambda t, rows, _: t.column(rows[0], "turn"),
    "n_depth": lambda t, rows, _: t.column(rows[0], "n_depth"),
    "n_threads": lambda t, rows, _: t.column(rows[0], "n_threads"),
    "setting": _setting,
    "rows": lambda _, rows, __: len({ids for row in rows for ids in row}) and len(rows),
    "all rows": lambda t, _, __: len(t.questions()),
    "models": lambda t, _, __: t.cells[t.cells.status == "ok"].model_label.nunique(),
}


def sentences(run: RunData) -> list[Finding]:
    view = page([run])
    return [view.headline_finding, *view.findings]


def stored(run: RunData, folder: Path) -> tuple[RunData, Tables]:
    """The run as it comes back from disk, and its tables as pandas reads them."""
    store = RunStore.create(folder, run.info)
    store.write_group("00001-g0", run.attempts, run.samples, run.readings)
    read = {
        name: pd.read_parquet(store.run_dir / f"{name}.parquet") for name in ("cells", "samples")
    }
    return load_run(store.run_dir), Tables(cells=read["cells"], samples=read["samples"])


def _shows(text: str, value: float) -> bool:
    """Whether the text is the value, or a hundred times it, rounded to the digits that it shows."""
    plain = text.replace("\u202f", "")
    places = len(plain.partition(".")[2])
    half = 0.5000001 * 10**-places
    return any(abs(float(plain) - number) <= half for number in (value, value * 100))


def _leftover(finding: Finding) -> str:
    """The sentence without its names and its numbers."""
    text = finding.text
    for name in sorted(finding.names, key=len, reverse=True):
        text = text.replace(name, " ")
    for number in finding.numbers:
        text = re.sub(rf"(?<![\d.]){re.escape(number.text)}(?![\d.]*\d)", " ", text, count=1)
    return text


@pytest.mark.parametrize("name", RUNS)
def test_each_number_of_the_findings_is_made_again_from_parquet(name: str, tmp_path: Path) -> None:
    run, tables = stored(RUNS[name], tmp_path)
    said = sentences(run)
    assert said
    for finding in said:
        assert not re.search(r"\d", _leftover(finding)), finding.text
        axis = finding.link.removeprefix("axis-")
        for number in finding.numbers:
            if number.of == "fixed":
                assert number.value in FIXED
            else:
                again = MADE_AGAIN[number.of](tables, number.rows, axis)
                assert math.isclose(again, number.value, rel_tol=1e-6), finding.text
            assert _shows(number.text, number.value), finding.text


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_that_a_finding_names_are_in_the_page(name: str) -> None:
    view = page([RUNS[name]])
    known = {line.anchor for line in view.table.lines}
    for finding in view.findings:
        assert set(finding.anchors) <= known
        if any(number.of not in ("fixed", "all rows") for number in finding.numbers):
            assert finding.anchors, finding.text


def test_counts_of_failures_and_of_rows_above_the_ceiling_are_those_of_the_tables(
    tmp_path: Path,
) -> None:
    run, tables = stored(run_of([*above(), *failed_parts()]), tmp_path)
    said = {finding.link: finding for finding in sentences(run)}
    questions = tables.questions()
    failures = said["failures"].numbers[0]
    assert failures.value == questions.status.isin(FAILED).sum() == 4
    (beyond,) = (f for f in said.values() if f.text.startswith("Above the ceiling"))
    rates = questions[questions.status == "ok"]
    assert beyond.numbers[0].value == (rates.median_tps / rates.ceiling_tps > 1.02).sum() == 3


def test_every_formula_is_described_and_made_again_somewhere() -> None:
    assert set(MADE_AGAIN) | {"fixed"} == set(FORMULAS)
    used = {number.of for run in RUNS.values() for f in sentences(run) for number in f.numbers}
    assert used == set(FORMULAS)


def test_a_number_that_is_not_what_its_rows_make_is_found_out(tmp_path: Path) -> None:
    run, tables = stored(RUNS["one"], tmp_path)
    (honest,) = [n for n in page([run]).headline_finding.numbers if n.of == "median"]
    wrong = Number(text="11.0", value=11.0, of=honest.of, rows=honest.rows)
    again = MADE_AGAIN[wrong.of](tables, wrong.rows, "")
    assert not math.isclose(again, wrong.value, rel_tol=1e-6)
    assert not _shows("10.2", honest.value)
