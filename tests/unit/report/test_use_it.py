from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import HOSTILE, hostile_run, lost, measured, run_of, sweep_parts

from llamasweep.report.figures import THIN
from llamasweep.report.use_it import MAX_MODELS, Use, UseCard, cards, use
from llamasweep.results.best import Purpose, best_of
from llamasweep.results.records import RunData

MODEL = '/models/it\'s a "file" $(touch pwned) `id` & more.gguf'
BENCH = "/opt/my builds/llama-bench"


def pp(number: int, tps: list[float], **changes: Any) -> Any:
    return measured(
        number, tps, test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0, **changes
    )


def at(n_threads: int, **more: Any) -> dict[str, Any]:
    return {"requested": {"n_threads": n_threads, **more}}


def run(*parts: Any, **changes: Any) -> RunData:
    plain = {
        "models": [{"content_hash": "a" * 32, "path": MODEL}],
        "builds": [{"content_hash": "b" * 32, "path": BENCH}],
    }
    return run_of(parts, **{**plain, **changes})


def shown(of: RunData) -> Use:
    found = use([of], {a.attempt_id: f"row-{i}" for i, a in enumerate(of.attempts, 1)})
    assert found is not None
    return found


def only_cards(of: RunData) -> tuple[UseCard, ...]:
    (model,) = shown(of).models
    return model.cards


def test_nothing_measured_has_no_section() -> None:
    assert use([run_of([])], {}) is None
    assert use([run_of([lost(1, status="failed")])], {}) is None


def test_the_fastest_stands_with_its_rate_and_what_it_beats() -> None:
    tg, pp_card, both = only_cards(
        run(
            measured(1, [10.0, 10.1, 10.2], **at(2)),
            measured(2, [12.0, 12.1, 12.2], **at(4)),
            pp(3, [99.0, 100.0, 101.0], **at(2)),
            pp(4, [79.0, 80.0, 81.0], **at(4)),
        )
    )
    assert (tg.title, tg.setting, tg.anchors) == ("Fastest generation", "threads 4", ("row-2",))
    assert tg.evidence == (
        f"tg32 at depth 0: 12.1 ± 0.1{THIN}t/s, n = 3, 52{THIN}% of the exact ceiling. "
        f"20{THIN}% faster than the next, threads 2 (10.1 ± 0.1{THIN}t/s).",
    )
    assert (pp_card.title, pp_card.setting) == ("Fastest prompt reading", "threads 2")
    assert both.title == "Both in one server"
    assert both.anchors == ("row-2", "row-3")
    assert shlex.split(both.server)[-4:] == ["-t", "4", "-tb", "2"]


def test_a_rate_above_a_reference_peak_is_not_called_a_share_of_a_ceiling() -> None:
    part, samples = pp(1, [150.0, 151.0, 152.0])
    of = replace(part, ceiling_tps=100.0, ceiling_is_reference=True, ceiling_bound="compute")
    (card,) = only_cards(run((of, samples)))
    assert "1.51 times the reference peak." in card.evidence[0]
    assert "ceiling" not in card.evidence[0]


def test_the_command_is_read_back_to_the_same_words_whatever_the_path() -> None:
    (card,) = only_cards(run(measured(1, [10.0, 10.1], **at(2, type_k="q8_0"))))
    assert shlex.split(card.server) == [
        "/opt/my builds/llama-server", "-m", MODEL, "-c", "4096", "-np", "1", "-t", "2", "-ctk", "q8_0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "path", "said"),
    [
        ("ollama", "/opt/ollama", "no llama-server of that build is known"),
        ("openai", "http://127.0.0.1:8080", "is not known: put its path first"),
    ],
)
def test_a_server_whose_place_is_not_known_is_said_to_be_so(
    engine: str, path: str, said: str
) -> None:
    builds = [{"content_hash": "b" * 32, "path": path}]
    (card,) = only_cards(run(measured(1, [10.0, 10.1], engine=engine), builds=builds))
    assert card.server.startswith("llama-server -m ")
    assert any(said in note for note in card.notes)


def test_a_server_that_was_measured_itself_is_named_by_its_path() -> None:
    builds = [{"content_hash": "b" * 32, "path": "/opt/b1/llama-server"}]
    (card,) = only_cards(run(measured(1, [10.0, 10.1], engine="llama-server"), builds=builds))
    assert card.server.startswith("/opt/b1/llama-server -m ")
    assert not any("not known" in note for note in card.notes)


def test_a_build_without_its_hash_is_found_by_its_label() -> None:
    builds = [{"label": "11434", "path": "/opt/b1/llama-bench"}]
    (card,) = only_cards(run(measured(1, [10.0, 10.1], build_label="11434"), builds=builds))
    assert card.server.startswith("/opt/b1/llama-server -m ")


def test_the_home_folder_is_left_to_the_shell() -> None:
    models = [{"content_hash": "a" * 32, "path": "~/my models/x.gguf"}]
    (card,) = only_cards(run(measured(1, [10.0, 10.1]), models=models))
    answer = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\0' {card.server}"],
        capture_output=True,
        check=True,
        env={**os.environ, "HOME": "/home/me"},
    )
    assert answer.stdout.split(b"\0")[2] == b"/home/me/my models/x.gguf"


def test_the_environment_of_the_sweep_stands_before_the_command() -> None:
    resolved = {"env": {"GGML_X": "a b"}, "extra_args": ["--no-warmup"]}
    whole = shown(run(measured(1, [10.0, 10.1]), sweep_resolved=resolved))
    assert shlex.split(whole.models[0].cards[0].server)[:3] == [
        "env",
        "GGML_X=a b",
        "/opt/my builds/llama-server",
    ]
    assert any("extra arguments" in note for note in whole.notes)


def test_ollama_is_told_what_it_can_be_told_and_the_rest_is_named() -> None:
    (card,) = only_cards(run(measured(1, [10.0, 10.1], **at(2, split_mode="row", flash_attn="on"))))
    assert card.ollama_server == "OLLAMA_NUM_PARALLEL=1 OLLAMA_FLASH_ATTENTION=1 ollama serve"
    assert card.ollama is not None
    assert card.ollama.split("\n")[:4] == [
        "cat > Modelfile.tiny-llama-q4_0 <<'END'",
        f"FROM {MODEL}",
        "PARAMETER num_ctx 4096",
        "PARAMETER num_thread 2",
    ]
    assert card.ollama_notes == (
        "Ollama cannot be told split_mode: what it then does may be slower.",
    )


def test_a_path_that_ollama_cannot_name_is_said_in_words() -> None:
    models = [{"content_hash": "a" * 32, "path": "a\nPARAMETER num_ctx 1"}]
    (card,) = only_cards(run(measured(1, [10.0, 10.1]), models=models))
    assert (card.ollama, card.ollama_server) == (None, None)
    assert "rename the file" in card.ollama_notes[0]


def test_a_path_that_was_not_recorded_is_said_to_be_missing() -> None:
    whole = shown(run(measured(1, [10.0, 10.1]), models=[]))
    assert "MODEL.gguf" in whole.models[0].cards[0].server
    assert any("did not record where the file is" in note for note in whole.notes)


def test_what_holds_for_one_model_alone_stands_with_it() -> None:
    made = measured(2, [10.0], model_hash="c", model_label="made")
    models = [
        {"content_hash": "a" * 32, "path": MODEL},
        {"content_hash": "c", "path": "c", "synth": "x"},
    ]
    whole = shown(run(measured(1, [10.0]), made, models=models))
    assert [len(model.notes) for model in whole.models] == [0, 1]
    assert whole.notes[0].startswith("-c 4096")


def test_a_tie_a_doubt_and_a_single_setting_are_said_to_be_so() -> None:
    (tie,) = only_cards(run(measured(1, [10.0, 10.1], **at(2)), measured(2, [9.9, 10.0], **at(4))))
    assert "A tie within the noise with threads 4" in tie.evidence[0]
    (alone,) = only_cards(run(measured(1, [10.0, 10.1])))
    assert alone.evidence[0].endswith("It is the only setting that was measured.")
    noisy = measured(2, [10.0, 14.0], **at(4), flags=("wide_spread",))
    (chosen,) = only_cards(run(measured(1, [5.0, 5.1], **at(2)), noisy))
    assert any("it bears a doubt (noisy) and is chosen all the same" in t for t in chosen.evidence)
    shaky = measured(2, [9.0, 11.0, 15.0], **at(4), flags=("busy_neighbour",))
    (other,) = only_cards(run(measured(1, [10.0, 10.1], **at(2)), shaky))
    assert any(
        text.startswith("tg32: faster, but not to be relied on and so not chosen: threads 4")
        for text in other.evidence
    )
    (doubted,) = only_cards(run(noisy))
    assert any(
        text.startswith("tg32: every setting that was measured") for text in doubted.evidence
    )


def test_the_cheapest_tells_what_it_saves_and_keeps() -> None:
    cards_of = only_cards(
        run(measured(1, [9.9, 9.9, 9.9], **at(2)), measured(2, [10.0, 10.1, 10.1], **at(6)))
    )
    assert [card.title for card in cards_of] == [
        "Fastest generation",
        f"Within 3{THIN}% of the fastest in generation, with 4 threads fewer",
    ]
    assert cards_of[1].evidence == (
        f"tg32 at depth 0: 9.90 ± 0.00{THIN}t/s, n = 3, 98{THIN}% of the fastest.",
    )


def test_only_what_is_asked_for_is_made() -> None:
    of = run(measured(1, [10.0, 10.1]), pp(2, [99.0, 100.0]))
    (best,) = best_of(of)
    prompts: tuple[Purpose, ...] = ("pp",)
    assert [card.title for card in cards(of, best, purposes=prompts)] == ["Fastest prompt reading"]
    assert [card.title for card in cards(of, best)] == ["Fastest for generation and for prompts"]


def test_many_models_are_bounded() -> None:
    parts = [measured(n, [10.0], model_hash=str(n)) for n in range(MAX_MODELS + 2)]
    view = shown(run_of(parts))
    assert (len(view.models), view.n_left_out) == (MAX_MODELS, 2)


def test_runs_are_told_apart() -> None:
    one = run_of([measured(1, [10.0])])
    found = use([one, one], {})
    assert found is not None
    assert [model.run_id for model in found.models] == [one.info.run_id] * 2


def test_hostile_names_stay_harmless() -> None:
    models = [{"content_hash": "a" * 32, "path": HOSTILE}]
    hostile = hostile_run()
    of = run_of([measured(1, [10.0], model_label=HOSTILE)], models=models)
    assert "\u202e" not in str(shown(of)) + str(shown(hostile))
    assert "\n" not in shown(of).models[0].cards[0].server


def test_a_whole_sweep_names_a_setting_for_each_model() -> None:
    view = shown(run_of(sweep_parts()))
    assert len(view.models) == 4
    assert all(model.cards for model in view.models)
