"""Use it: the settings that measured best as commands to paste, with what speaks for them. Runs in, plain data out.

What is best is decided by `results.best`, how it is said by `results.server_command` and `results.ollama_settings`; here
are the words. The command line prints the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from llamasweep.report import use_words as words
from llamasweep.report.names import shell_line, shown
from llamasweep.results.best import PURPOSES, Choice, ModelBest, Purpose, best_of
from llamasweep.results.contenders import Contender
from llamasweep.results.machine_record import MachineRecord, entry_of
from llamasweep.results.ollama_settings import ollama_settings
from llamasweep.results.records import RunData
from llamasweep.results.server_command import server_beside, server_command
from llamasweep.results.server_flags import context_for

MAX_MODELS = 12
NO_PATH = "MODEL.gguf"
"""Stands in a command for a file whose place the run did not record; a note says so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UseCard:
    """One way to run a model. title: what it is good for. setting: what tells it from the others. evidence, notes:
    sentences. server, ollama: commands for a POSIX shell; ollama is None where Ollama cannot, and its notes say why.
    ollama_server: the command that starts Ollama's server, None where ollama is. anchors: rows of the page.
    """

    title: str
    setting: str
    evidence: tuple[str, ...]
    server: str
    notes: tuple[str, ...]
    ollama: str | None
    ollama_server: str | None
    ollama_notes: tuple[str, ...]
    anchors: tuple[str, ...]
    attempt_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUse:
    """One model of one run. run_id: None where the page has one run. notes: of all its commands, beside those of every model."""

    subject: str
    run_id: str | None
    cards: tuple[UseCard, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """The section. notes: those of all models. n_left_out: models beyond the bound; `llamasweep best` has them."""

    models: tuple[ModelUse, ...]
    notes: tuple[str, ...]
    n_left_out: int


def use(runs: Sequence[RunData], anchors: Mapping[str, str]) -> Use | None:
    """The section; None where nothing was measured. anchors: attempt id -> id of its row in the page."""
    found: list[tuple[RunData, ModelBest]] = [(run, best) for run in runs for best in best_of(run)]
    if not found:
        return None
    of_models = [notes(run, best) for run, best in found]
    common = tuple(note for note in of_models[0] if all(note in one for one in of_models))
    return Use(
        models=tuple(
            ModelUse(
                subject=subject(best),
                run_id=shown(run.info.run_id) if len(runs) > 1 else None,
                cards=cards(run, best, anchors=anchors),
                notes=tuple(note for note in noted if note not in common),
            )
            for (run, best), noted in zip(found[:MAX_MODELS], of_models, strict=False)
        ),
        notes=common,
        n_left_out=max(0, len(found) - MAX_MODELS),
    )


def cards(
    run: RunData,
    best: ModelBest,
    *,
    purposes: Collection[Purpose] = PURPOSES,
    anchors: Mapping[str, str] | None = None,
) -> tuple[UseCard, ...]:
    """The ways to run one model, for the purposes asked for."""
    maker = _Maker(run, best, anchors or {})
    chosen = [best.choices[purpose] for purpose in PURPOSES if purpose in purposes and purpose in best.choices]  # fmt: skip
    made: list[UseCard] = []
    if len(chosen) == 2 and best.one_for_all:
        made.append(maker.card(words.BOTH_TITLE, chosen, chosen[0].chosen))
    else:
        made += [maker.card(words.TITLES[one.purpose], [one], one.chosen) for one in chosen]
        if len(chosen) == 2 and best.differs_in_threads_alone:
            made.append(maker.together(chosen[0].chosen, chosen[1].chosen))
    if best.frugal is not None and set(best.frugal.within) & set(purposes):
        made.append(maker.frugal())
    return tuple(made)


class _Maker:
    """Cards of one model: everything but the choice is the same for them."""

    def __init__(self, run: RunData, best: ModelBest, anchors: Mapping[str, str]) -> None:
        self._run, self._best, self._anchors = run, best, anchors
        self._model = _entry_of_model(run, best)
        self._axes = words.axes_of(
            [
                row
                for choice in best.choices.values()
                for row in (choice.chosen, *choice.tied, choice.second, *choice.passed_over)
                if row is not None
            ]
            + list(best.frugal.by_purpose.values() if best.frugal else ())
        )

    def card(self, title: str, choices: Sequence[Choice], row: Contender) -> UseCard:
        evidence = [text for one in choices for text in words.evidence(one, self._axes)]
        rows = [one.chosen for one in choices]
        return self._card(title, row, evidence, rows)

    def together(self, tg: Contender, pp: Contender) -> UseCard:
        """One server with the threads of each."""
        evidence = words.together(tg, pp)
        return self._card(words.TOGETHER_TITLE, tg, evidence, [tg, pp], batch=pp.n_threads)

    def frugal(self) -> UseCard:
        frugal = self._best.frugal
        assert frugal is not None  # noqa: S101  (the caller looked)
        evidence = words.frugal(self._best, frugal)
        rows = list(frugal.by_purpose.values())
        return self._card(words.frugal_title(frugal), frugal.contender, evidence, rows)

    def _card(
        self,
        title: str,
        row: Contender,
        evidence: Sequence[str],
        rows: Sequence[Contender],
        batch: int | None = None,
    ) -> UseCard:
        n_context = context_for(self._best.n_context)
        model_path = self._model.word("path") or NO_PATH
        path = _entry_of_build(self._run, row).word("path")
        server_path = server_beside(path)
        server = server_command(
            row,
            server_path=server_path,
            model_path=model_path,
            n_context=n_context,
            n_threads_batch=batch,
        )
        ollama = ollama_settings(row, model_path=model_path, n_context=n_context)
        ids = tuple(dict.fromkeys(i for one in rows for i in one.attempt_ids))
        return UseCard(
            title=title,
            setting=words.setting(row, self._axes),
            evidence=tuple(evidence),
            server=shell_line([*_environment(self._run), *server.argv]),
            notes=(*server.notes, *words.unknown_server(server_path, row.engine)),
            ollama=words.ollama_script(ollama),
            ollama_server=words.ollama_server(ollama),
            ollama_notes=words.ollama_notes(ollama, has_batch_threads=batch is not None),
            anchors=tuple(dict.fromkeys(self._anchors[i] for i in ids if i in self._anchors)),
            attempt_ids=ids,
        )


def subject(best: ModelBest) -> str:
    """The model, and what measured it where that was not llama-bench."""
    label = shown(best.model_label, 80)
    return label if best.engine == "llama-bench" else f"{label}, by {shown(best.engine, 40)}"


def notes(run: RunData, best: ModelBest) -> tuple[str, ...]:
    """What holds for every command of a model."""
    model = _entry_of_model(run, best)
    streams = sorted({choice.chosen.load.n_streams for choice in best.choices.values()})
    n_context = context_for(best.n_context)
    found = [words.context(n_context, best.n_context, n_streams) for n_streams in streams]
    if best.n_other_loads:
        found.append(words.other_loads(best.n_other_loads))
    if model.word("path") is None:
        found.append(f"The run did not record where the file is: put its path for {NO_PATH}.")
    if model.word("synth") is not None:
        found.append(words.SYNTHETIC)
    if run.info.sweep_resolved.get("extra_args"):
        found.append(words.EXTRA_ARGS)
    return tuple(found)


def _entry_of_model(run: RunData, best: ModelBest) -> MachineRecord:
    by_hash = entry_of(run.info.models, "content_hash", best.model_hash)
    return by_hash if by_hash.plain else entry_of(run.info.models, "label", best.model_label)


def _entry_of_build(run: RunData, row: Contender) -> MachineRecord:
    by_hash = entry_of(run.info.builds, "content_hash", row.build_hash)
    return by_hash if by_hash.plain else entry_of(run.info.builds, "label", row.build_label)


def _environment(run: RunData) -> list[str]:
    """What the sweep set for the engine, as words before the command."""
    env = run.info.sweep_resolved.get("env")
    pairs = env.items() if isinstance(env, Mapping) else ()
    assignments = [f"{name}={value}" for name, value in pairs]
    return ["env", *assignments] if assignments else []
