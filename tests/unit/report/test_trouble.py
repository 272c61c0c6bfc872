from __future__ import annotations

from tests.unit.report.factory import failed_parts, lost, run_of

from llamasweep.report.rows import rows_of
from llamasweep.report.trouble import MAX_FAILURES, failures, impossible


def test_each_failure_tells_reason_end_stderr_and_log() -> None:
    cards, left_out = failures(rows_of([run_of(failed_parts())]))
    assert left_out == 0
    assert [card.title for card in cards] == [
        "Failed: signal",
        "Failed: model missing",
        "Timed out: hang",
        "Out of memory",
    ]
    signal, missing, _, memory = cards
    assert signal.end == "ended by SIGSEGV"
    assert signal.stderr == "llama_model_load: loading\nsegmentation fault"
    assert signal.log_path == "logs/g0-1.jsonl"
    assert missing.end == "no exit code: the engine was not started for it"
    assert missing.stderr is None
    assert missing.log_path is None
    assert memory.end == "exit code 1"


def test_cells_that_failed_alike_share_a_card() -> None:
    parts = [
        lost(n, status="failed", error_message="the same", requested={"n_threads": n})
        for n in range(20)
    ]
    (card,), _ = failures(rows_of([run_of(parts)]))
    assert card.n_rows == 20
    assert len(card.rows) < 20
    assert card.rows[0] == ("row-1", "tiny-llama Q4_0, tg32, threads 0")


def test_messages_that_differ_in_numbers_alone_are_one_cause() -> None:
    parts = [
        lost(
            n,
            status="out_of_memory",
            error_kind="out_of_memory",
            error_message=f"cannot allocate {n}.5 GiB at 0x7f{n:02x} for a context of {n}\u202f000",
            exit_code=n % 2,
            log_path=f"logs/{n}.jsonl",
            requested={"n_threads": n},
        )
        for n in range(12)
    ]
    (card,), _ = failures(rows_of([run_of(parts)]))
    assert card.n_rows == 12
    assert card.message.startswith("cannot allocate 0.5 GiB")
    assert card.is_varied
    assert card.end == "exit code 0; exit code 1"
    assert card.n_logs == 12
    assert [anchor for anchor, _ in card.rows + card.more_rows] == [
        f"row-{n + 1}" for n in range(12)
    ]


def test_one_message_of_two_kinds_is_two_causes() -> None:
    parts = [
        lost(n, status="failed", error_kind=kind, error_message="it ended")
        for n, kind in enumerate(("signal", "garbage_output"))
    ]
    assert len(failures(rows_of([run_of(parts)]))[0]) == 2


def test_failures_are_bounded_and_the_rest_is_counted() -> None:
    words = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(MAX_FAILURES + 5)]
    parts = [
        lost(n, status="failed", error_message=f"reason {word}") for n, word in enumerate(words)
    ]
    cards, left_out = failures(rows_of([run_of(parts)]))
    assert len(cards) == MAX_FAILURES
    assert left_out == 5


def test_a_failure_without_a_message_says_that_none_was_recorded() -> None:
    (card,), _ = failures(rows_of([run_of([lost(1, status="failed")])]))
    assert card.message == "no message: no reason was recorded"


def test_impossible_cells_are_grouped_by_reason_most_first() -> None:
    groups = impossible(rows_of([run_of(failed_parts())]))
    assert [(g.title, g.reason, g.n_rows) for g in groups] == [
        ("Not possible here", "quantised V needs flash attention", 2),
        ("Skipped", "max_time was reached", 1),
    ]
