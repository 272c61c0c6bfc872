"""Everything before the first engine starts: what is there, what will be run, what cannot be, and how long it may take.

`plan` shows it, `run` measures it; both come through here, so that they cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llamasweep.builds.registry import Registry
from llamasweep.engines.known import engine_named
from llamasweep.errors import UsageError
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.words import thread_words
from llamasweep.results.records import Attempt
from llamasweep.results.request_load import request_load
from llamasweep.run.resolve import OnSynth, Subjects, resolve
from llamasweep.sweep.axes import parse_test, parse_value
from llamasweep.sweep.matrix import expand
from llamasweep.sweep.parameters import BY_NAME, Scalar
from llamasweep.sweep.plan import Plan, Surroundings, make_plan
from llamasweep.sweep.predict import Measured, Rates
from llamasweep.sweep.spec import Condition, Exclude, SweepSpec
from llamasweep.sweep.subjects import Model

AGAIN = " again"
"""Behind the name of a build where it takes turns with itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A sweep ready to run.

    spec: narrowed by `--only`. whole: as the file says. rates: what predictions are made from.
    """

    spec: SweepSpec
    whole: SweepSpec
    subjects: Subjects
    plan: Plan
    rates: Rates


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What the command line changes. only: (key, value) pairs; several of one key mean any of them.

    is_against_itself: the first build takes turns with itself, to see how much this machine scatters.
    """

    build_names: tuple[str, ...] = ()
    only: tuple[tuple[str, str], ...] = ()
    seed: int | None = None
    is_against_itself: bool = False


def prepare(
    spec: SweepSpec,
    *,
    wishes: Wishes,
    registry: Registry,
    facts: MachineFacts,
    history: Iterable[Attempt] = (),
    rates: Rates | None = None,
    generate: bool,
    on_synth: OnSynth | None = None,
) -> Prepared:
    """Resolve, expand and plan. rates: what is known of the machine. generate: write synthetic models that are missing.

    Raises SweepFileError, UsageError, EngineNotFoundError or BuildError.
    """
    whole, spec = spec, _narrowed(spec, wishes)
    subjects = resolve(
        spec,
        registry=registry,
        build_names=wishes.build_names,
        generate=generate,
        on_synth=on_synth,
        has_gpu=bool(facts.gpus),
    )
    subjects = _checked_builds(spec, subjects, wishes)
    quant_of = {s: m.facts.quant_short for s, m in subjects.models.items() if m.facts is not None}
    alike = (attempt for attempt in history if attempt.engine == spec.engine)
    rates = (rates or Rates()).updated(as_measured(alike, subjects.models.values()))
    words = thread_words(facts)
    blocks = expand(spec, list(subjects.models), words, quant_of=quant_of)
    plan = make_plan(
        spec,
        blocks,
        models=subjects.models,
        builds=subjects.builds,
        restrictions=engine_named(spec.engine).restrictions,
        rates=rates,
        surroundings=Surroundings(words=words, ram_bytes=facts.ram_bytes),
    )
    return Prepared(spec=spec, whole=whole, subjects=subjects, plan=plan, rates=rates)


def _checked_builds(spec: SweepSpec, subjects: Subjects, wishes: Wishes) -> Subjects:
    """The builds of the sweep, or one twice. Raises UsageError where `rounds: auto` has not two to tell apart."""
    if wishes.is_against_itself:
        build = subjects.builds[0]
        again = replace(build, label=f"{build.label}{AGAIN}")
        return replace(subjects, builds=(build, again))
    if spec.rounds == "auto" and len(subjects.builds) != 2:
        raise UsageError(
            f"`rounds: auto` tells two builds apart, and this sweep has {len(subjects.builds)}",
            hint="Name two that differ, or give a number of rounds; `llamasweep noise SWEEP` measures one against itself.",
        )
    return subjects


def as_measured(attempts: Iterable[Attempt], models: Iterable[Model]) -> list[Measured]:
    """Rows of models that are here, as predictions want them: of one new request."""
    by_hash = {m.content_hash: m for m in models if m.content_hash is not None}
    found = []
    for a in attempts:
        model = by_hash.get(a.model_hash or "")
        is_plain = request_load(a.requested).is_one_new_request
        if model is None or a.median_tps is None or not is_plain:
            continue
        threads = a.requested.get("n_threads")
        found.append(
            Measured(
                model=model,
                kind=a.test_kind,
                n_depth=a.n_depth,
                n_threads=int(threads) if threads is not None else None,
                tps=a.median_tps,
            )
        )
    return found


def _narrowed(spec: SweepSpec, wishes: Wishes) -> SweepSpec:
    """`--only` as excludes of everything else."""
    grouped: dict[str, tuple[Scalar, ...]] = {}
    named = {name for axes in (spec.axes, *(i.axes for i in spec.include)) for name, _ in axes}
    named |= {"type_k", "type_v"} if spec.kv_types else set()
    for key, text in wishes.only:
        if key in BY_NAME and key not in named:
            raise UsageError(
                f"--only {key}={text}: the sweep does not vary {key}",
                hint="Name an axis of its matrix, or model, quant, build or test.",
            )
        grouped[key] = (*grouped.get(key, ()), *_values(key, text))
    extra = tuple(
        Exclude(where=((key, Condition(operator="!=", values=values)),))
        for key, values in grouped.items()
    )
    seed = spec.seed if wishes.seed is None else wishes.seed
    return replace(spec, exclude=(*spec.exclude, *extra), seed=seed)


def _values(key: str, text: str) -> tuple[Scalar, ...]:
    """What the sweep file would hold for this word, several for a range. Raises ValueError with a sentence."""
    if key in BY_NAME:
        return parse_value(BY_NAME[key], text)
    if key in {"n_prompt", "n_gen"}:
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise ValueError(f"{text!r} is not a number of tokens")
        return (int(text),)
    return (parse_test(text).label if key == "test" else text,)


def parse_only(words: Sequence[str], canonical: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """`KEY=VALUE` words with keys in any spelling. Raises UsageError."""
    known = {
        **canonical,
        **{key: key for key in ("model", "quant", "build", "test", "n_prompt", "n_gen")},
    }
    pairs = []
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or key not in known:
            raise UsageError(
                f"--only {word!r} is not KEY=VALUE with a known key",
                hint=f"Keys are the sweep's axes and {', '.join(sorted(set(known) - set(canonical)))}.",
            )
        try:
            _values(known[key], value)
        except ValueError as problem:
            raise UsageError(
                f"--only {word!r}: {problem}", hint="Write the value as in the sweep file."
            ) from None
        pairs.append((known[key], value))
    return tuple(pairs)
