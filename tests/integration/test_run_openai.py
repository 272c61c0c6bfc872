"""Whole sweeps on an OpenAI-compatible server of known timing, with a key that must appear nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.timed_server import timed_server
from tests.integration.running import Desk

KEY = "a-secret-of-some-length"


def sweep(url: str, more: str = "", tests: str = "[tg8]") -> str:
    return (
        f"engine: openai\nbase_url: '{url}'\nmodels: [{{served: m}}]\ntests: {tests}\nrepetitions: 3\n"
        f"warmup: on\ntelemetry: off\nbandwidth: 20 GB/s\n{more}"
    )


def test_a_served_model_is_measured_by_the_client(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    with timed_server() as server:
        url = server.base_url(ttft_s=0.03, gap_s=0.02, n_tokens=9, n_prompt=16)
        ended = desk.run(desk.write_sweep(sweep(url)))
    assert ended.code == 0, ended.stderr
    (row,) = desk.rows()
    assert (row.engine, row.status, row.build_number) == ("openai", "ok", None)
    assert row.median_tps is not None
    assert (
        row.median_tps < 1.5 * 50
    )  # gaps are never shorter than 20 ms, but the first token may be seen late
    assert row.requests is not None
    assert row.requests.ttft_median_s is not None
    assert row.requests.ttft_median_s >= 0.03
    assert row.ceiling_tps is None
    assert "is not known" in row.reasons["ceiling_tps"]


def test_the_key_reaches_the_server_and_no_file(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    with timed_server() as server:
        url = server.base_url(n_tokens=9, n_prompt=16, fault="echo_key")
        path = desk.write_sweep(sweep(url, "key_variable: SOME_NAME\n"))
        ended = desk.call("run", "--plain", "--no-report", "--", str(path), env={"SOME_NAME": KEY})
    written = b"".join(f.read_bytes() for f in (tmp_path / "results").rglob("*") if f.is_file())
    assert KEY.encode() not in written
    assert KEY not in ended.stdout + ended.stderr
    (row,) = desk.rows()
    assert row.status == "failed"
    assert "(hidden)" in (row.error_message or "")


def test_a_key_that_is_not_there_is_the_reason_of_every_row(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    with timed_server() as server:
        url = server.base_url(n_tokens=9, n_prompt=16)
        desk.run(desk.write_sweep(sweep(url, "key_variable: NOBODY_SET_THIS\n", "[tg8, tg4]")))
    rows = desk.rows()
    assert len(rows) == 2
    assert all("holds no key" in (row.error_message or "") for row in rows)


@pytest.mark.parametrize("axis", ["threads: 2", "num_ctx: 512", "kv_type: f16"])
def test_settings_of_the_server_are_unsupported(tmp_path: Path, axis: str) -> None:
    desk = Desk(folder=tmp_path)
    with timed_server() as server:
        desk.run(desk.write_sweep(sweep(server.base_url(), f"matrix: {{{axis}}}\n")))
    (row,) = desk.rows()
    assert row.status == "unsupported"
    assert "started by somebody else" in (row.error_message or "")


def test_turns_behind_one_that_fails_are_tried_in_one_more_process_and_no_further(
    tmp_path: Path,
) -> None:
    """A window of 60 words cuts the third message; the conversation fails there whichever later turn is asked for."""
    desk = Desk(folder=tmp_path)
    with timed_server() as server:
        url = server.base_url(ttft_s=0.001, word_s=1e-5, gap_s=0.001, n_tokens=4, window=60)
        desk.run(desk.write_sweep(sweep(url, "matrix: {turns: 1-8}\n", "[pp24+tg4]")))
    rows = sorted(desk.rows(), key=lambda row: int(row.requested["turn"]))
    assert [row.status for row in rows] == ["ok"] * 2 + ["failed"] * 6
    assert {row.error_kind for row in rows[2:]} == {"prompt_truncated"}
    assert all("at turn 3: the server counts 60 tokens" in str(r.error_message) for r in rows[2:])
    assert len({row.log_path for row in rows if row.log_path is not None}) == 2
    given_up = [row for row in rows if "not tried again" in str(row.error_message)]
    assert [row.requested["turn"] for row in given_up] == [5, 6, 7, 8]
    assert all(str(rows[3].attempt_id) in str(row.error_message) for row in given_up)
