"""The words of `use_it`: what speaks for a setting, how it stands to the next, what a command leaves open. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.flags import flag_word
from llamasweep.report.names import AXIS_ORDER, load_words, shell_line, shown
from llamasweep.report.strips import setting_word
from llamasweep.results.best import Choice, Frugal, ModelBest, Purpose
from llamasweep.results.contenders import Contender, compare
from llamasweep.results.ollama_settings import OllamaSettings
from llamasweep.results.server_command import NO_SERVER_PATH

TITLES: dict[Purpose, str] = {"tg": "Fastest generation", "pp": "Fastest prompt reading"}
BOTH_TITLE = "Fastest for generation and for prompts"
TOGETHER_TITLE = "Both in one server"
SYNTHETIC = (
    "This model was generated with random weights, so put your own file in its place: the speed "
    "holds for a file of the same shape and quantisation."
)
EXTRA_ARGS = "The sweep gave llama-bench extra arguments of its own; they are not translated here."
_KINDS: dict[Purpose, str] = {"tg": "generation", "pp": "prompt reading"}
_MAX_NAMED = 3


def axes_of(rows: Sequence[Contender]) -> tuple[str, ...]:
    """Settings that tell the rows apart, in the usual order; `build` first where there are several."""
    names = sorted(
        {name for row in rows for name, _ in row.settings},
        key=lambda name: (AXIS_ORDER.get(name, len(AXIS_ORDER)), name),
    )
    axes = [name for name in names if len({row.get(name) for row in rows}) > 1]
    return (*(("build",) if len({row.build_hash for row in rows}) > 1 else ()), *axes)


def setting(row: Contender, axes: Sequence[str]) -> str:
    """`threads 6, K cache q8_0`; without axes, all that was asked for; '' for the engine's own choice."""
    if not axes:
        return ", ".join(setting_word(name, value) for name, value in row.settings)
    values = [row.build_label if axis == "build" else row.get(axis) for axis in axes]
    return ", ".join(setting_word(axis, value) for axis, value in zip(axes, values, strict=True))


def rate(row: Contender) -> str:
    """`41.2 ± 0.6 t/s`."""
    value = row.rate
    spread = f" ± {figures.spread(value.std, value.median)}" if value.std is not None else ""
    return f"{figures.number(value.median)}{spread}{figures.THIN}t/s"


def evidence(choice: Choice, axes: Sequence[str]) -> list[str]:
    """What was measured and against what, in one entry; then what speaks against it."""
    measured = (_measured(choice.chosen), _against(choice, axes), _untouched(choice))
    return [
        text
        for text in (
            " ".join(text for text in measured if text),
            _doubtful(choice, axes),
            _passed_over(choice, axes),
            _deepest(choice, axes),
        )
        if text
    ]


def together(tg: Contender, pp: Contender) -> list[str]:
    """Why one server can have both."""
    return [
        f"The two differ in their threads alone: {tg.n_threads} for generation ({rate(tg)}), "
        f"{pp.n_threads} for prompts ({rate(pp)}). llama-server takes both; each half was measured, "
        "the two together were not."
    ]


def frugal_title(frugal: Frugal) -> str:
    """What it costs less."""
    parts = []
    if frugal.saved_threads is not None:
        parts.append(figures.counted(frugal.saved_threads, "thread") + " fewer")
    if frugal.saved_memory_bytes is not None:
        parts.append(f"{figures.size(frugal.saved_memory_bytes)} less memory")
    where = "" if len(frugal.within) > 1 else f" in {_KINDS[frugal.within[0]]}"
    return f"Within 3{figures.THIN}% of the fastest{where}, with {' and '.join(parts)}"


def frugal(best: ModelBest, found: Frugal) -> list[str]:
    """What it keeps of each of the fastest."""
    sentences = []
    for purpose, row in found.by_purpose.items():
        fastest = best.choices[purpose].chosen
        share = figures.percent(row.rate.median / fastest.rate.median)
        sentences.append(
            f"{_place(row)}: {rate(row)}, n = {row.rate.n}, {share} of the fastest"
            + ("." if purpose in found.within else ", which is more than 3 % less.")
        )
    return sentences


def context(n_context: int, n_measured: int, n_streams: int) -> str:
    """What -c and -np stand for. n_context: tokens for each of n_streams requests."""
    room, asked = "prompt and answer", "one request at a time"
    if n_streams > 1:
        room = f"{figures.count(n_streams)} requests of {n_context} tokens"
        asked = f"{figures.count(n_streams)} requests at once"
    return (
        f"-c {n_context * n_streams} makes room for {room}; up to {figures.count(n_measured)} tokens of one request "
        f"were measured, and speed falls as the context fills. -np {n_streams}: {asked}, as measured."
    )


def other_loads(n_rows: int) -> str:
    """Why rows of other loads are no candidates."""
    verb, them = ("was", "it answers") if n_rows == 1 else ("were", "they answer")
    return (
        f"{figures.counted(n_rows, 'row')} {verb} not compared: {them} several requests at once, or a prompt that the "
        "server had read before, and one person gets another speed."
    )


def unknown_server(server_path: str, engine: str) -> tuple[str, ...]:
    """That a command names no build: a sentence, () where it has the path of one."""
    if server_path != NO_SERVER_PATH:
        return ()
    if engine == "ollama":
        return (
            "Ollama measured this with a llama.cpp of its own: no llama-server of that build is known, so put the path of "
            "yours, whose speed may differ.",
        )
    return ("Where the llama-server of this build is, is not known: put its path first.",)


def ollama_script(told: OllamaSettings) -> str | None:
    """Writes the Modelfile and makes a model of it; None where Ollama cannot name the file."""
    if told.modelfile is None:
        return None
    return (
        f"cat > Modelfile.{told.name} <<'END'\n{told.modelfile}END\n"
        f"ollama create {told.name} -f Modelfile.{told.name}\n"
        f"ollama run {told.name} --verbose"
    )


def ollama_server(told: OllamaSettings) -> str | None:
    """Starts the server with its variables; None where there is nothing to serve."""
    if told.modelfile is None:
        return None
    return shell_line([*(f"{name}={value}" for name, value in told.environment), "ollama", "serve"])


def ollama_notes(told: OllamaSettings, *, has_batch_threads: bool) -> tuple[str, ...]:
    """What Ollama cannot be told."""
    notes = []
    if told.modelfile is None:
        notes.append("A Modelfile cannot name this path: rename the file, then import it.")
    if has_batch_threads:
        notes.append("Ollama has one number of threads for both.")
    if told.missing:
        names = ", ".join(told.missing)
        notes.append(f"Ollama cannot be told {names}: what it then does may be slower.")
    return tuple(notes)


def _place(row: Contender) -> str:
    load = load_words(row.load)
    return f"{row.test} at depth {figures.count(row.n_depth)}" + (f", {load}" if load else "")


def _measured(row: Contender) -> str:
    text = f"{_place(row)}: {rate(row)}, n = {row.rate.n}"
    if row.ceiling_fraction is not None and "above_ceiling" not in row.doubts:
        text += f", {figures.share_of_ceiling(row.ceiling_fraction, is_reference=row.is_reference)}"
    return text + "."


def _against(choice: Choice, axes: Sequence[str]) -> str:
    if not choice.n_others:
        return "It is the only setting that was measured."
    if choice.tied:
        what = _named(choice.tied, axes)
        if choice.chosen.rate.n < 2:
            return f"Of single repetitions nothing more can be said: {what}."
        return f"A tie within the noise with {what}: take the one that costs you least."
    if choice.second is None:
        return ""
    gain = choice.chosen.rate.median / choice.second.rate.median - 1
    return f"{_more(gain)} the next, {_one(choice.second, axes)}."


def _untouched(choice: Choice) -> str:
    """Against what the engine does by itself."""
    other = choice.untouched
    if other is None or other in choice.tied or other is choice.second:
        return ""
    gain = choice.chosen.rate.median / other.rate.median - 1
    if compare(choice.chosen.rate, other.rate) != "faster":
        return f"Not clearly faster than the engine's own choice ({rate(other)})."
    return f"{_more(gain)} the engine's own choice ({rate(other)})."


def _doubtful(choice: Choice, axes: Sequence[str]) -> str:
    doubts, test = _doubts(choice.chosen), choice.chosen.test
    if choice.are_all_doubtful:
        return (
            f"{test}: every setting that was measured bears a doubt, this one: {doubts}. Measure again "
            "before you rely on it."
        )
    if choice.best_trusted is None:
        return ""
    return (
        f"{test}: it bears a doubt ({doubts}) and is chosen all the same, as each of its repetitions was "
        f"faster than any of the best without one, {_one(choice.best_trusted, axes)}. Measure again "
        "before you rely on the figure."
    )


def _passed_over(choice: Choice, axes: Sequence[str]) -> str:
    rows = choice.passed_over
    if not rows:
        return ""
    named = "; ".join(f"{_one(row, axes)}: {_doubts(row)}" for row in rows[:_MAX_NAMED])
    more = f"; and {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else ""
    return f"{rows[0].test}: faster, but not to be relied on and so not chosen: {named}{more}."


def _deepest(choice: Choice, axes: Sequence[str]) -> str:
    row = choice.deepest
    if row is None:
        return ""
    return f"At depth {figures.count(row.n_depth)} another is faster: {_one(row, axes)}."


def _more(gain: float) -> str:
    if gain < 1:
        return f"{figures.percent(gain)} faster than"
    return f"{figures.times(gain + 1)} as fast as"


def _one(row: Contender, axes: Sequence[str]) -> str:
    words = setting(row, axes) or "the engine's own choice"
    return f"{shown(words, 160)} ({rate(row)})"


def _named(rows: Sequence[Contender], axes: Sequence[str]) -> str:
    named = "; ".join(_one(row, axes) for row in rows[:_MAX_NAMED])
    more = f"; and {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else ""
    return named + more


def _doubts(row: Contender) -> str:
    return ", ".join(flag_word(doubt) for doubt in row.doubts)
