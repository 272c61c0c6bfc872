"""`llamasweep models`: which models are here, what a file holds, and making one without a download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from llamasweep.gguf.facts import ModelFacts
    from llamasweep.gguf.found import FoundModel

_JSON_OPTION = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


@click.group(name="models")
def command() -> None:
    """Find, inspect and generate models.

    \b
    Example:
      llamasweep models list
      llamasweep models synth Qwen3-4B --quant Q4_K_M
    """


@command.command(name="list")
@_JSON_OPTION
def list_models(is_json: bool) -> None:
    """The models in the usual places: caches of Hugging Face and llama.cpp, LM Studio, Ollama.

    \b
    Example:
      llamasweep models list --json
    """
    from llamasweep.gguf.found import find_models

    rows = [_found_row(model) for model in find_models()]
    if is_json:
        click.echo(json.dumps(rows, indent=2))
    elif not rows:
        click.echo("No models were found in the usual places.")
        click.echo("`llamasweep models synth SHAPE --quant Q` makes one without a download.")
    else:
        _print_found(rows)


def _found_row(model: FoundModel) -> dict[str, Any]:
    from llamasweep.errors import ModelFileError
    from llamasweep.gguf.header import n_file_bytes, read_model

    row: dict[str, Any] = {
        "path": str(model.path),
        "place": model.place,
        "name": model.name,
        "arch": None,
        "quant": None,
        "n_params": None,
        "n_file_bytes": None,
        "problem": None,
    }
    try:
        facts = read_model(model.path)
        row["n_file_bytes"] = n_file_bytes(model.path)
    except ModelFileError as problem:
        return {**row, "problem": problem.message}
    return {**row, "arch": facts.arch, "quant": facts.quant_short, "n_params": facts.n_params}


def _print_found(rows: list[dict[str, Any]]) -> None:
    from llamasweep.cli.terminal import printable, table_lines
    from llamasweep.units import format_bytes

    good = [row for row in rows if row["problem"] is None]
    table = [
        (
            row["quant"],
            format_bytes(row["n_file_bytes"]),
            f"{row['n_params'] / 1e9:.2f} B",
            row["arch"],
            f"Ollama: {row['name']}" if row["place"] == "Ollama" else row["place"],
            row["path"],
        )
        for row in good
    ]
    if table:
        for line in table_lines(("QUANT", "SIZE", "PARAMS", "ARCH", "PLACE", "PATH"), table):
            click.echo(line)
    for row in rows:
        if row["problem"] is not None:
            click.echo(f"cannot be used: {printable(row['problem'])}", err=True)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@_JSON_OPTION
def inspect(file: Path, is_json: bool) -> None:
    """What the head of a GGUF file says; of a split model, give the first shard.

    \b
    Example:
      llamasweep models inspect ~/models/Qwen3-4B-Q4_K_M.gguf --json
    """
    from llamasweep.gguf.header import content_hash, n_file_bytes, read_model

    path = file.expanduser()
    facts = read_model(path)
    about = _facts_row(facts)
    about["n_file_bytes"] = n_file_bytes(path)
    about["content_hash"] = content_hash(path)
    if is_json:
        about["metadata"] = {key: _plain(value) for key, value in facts.metadata}
        about["tensors"] = [
            {"name": t.name, "ne": list(t.ne), "type": t.ggml_type, "n_bytes": t.n_bytes}
            for t in facts.tensors
        ]
        click.echo(json.dumps(about, indent=2, allow_nan=False))
    else:
        _print_facts(about)


def _plain(value: object) -> object:
    """A metadata value for JSON, which knows no NaN and no infinity."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not -1e308 < value < 1e308:
        return str(value)
    return value


def _facts_row(facts: ModelFacts) -> dict[str, Any]:
    from collections import Counter

    n_tensors = Counter(tensor.ggml_type for tensor in facts.tensors)
    n_bytes: Counter[str] = Counter()
    for tensor in facts.tensors:
        n_bytes[tensor.ggml_type] += tensor.n_bytes
    return {
        "arch": facts.arch,
        "name": facts.name,
        "quant": facts.quant_short,
        "quant_llama_bench": facts.quant,
        "n_params": facts.n_params,
        "size_bytes": facts.size_bytes,
        "bits_per_weight": facts.bits_per_weight,
        "n_layers": facts.n_layers,
        "n_embd": facts.n_embd,
        "n_vocab": facts.n_vocab,
        "n_ctx_train": facts.n_ctx_train,
        "n_expert": facts.n_expert,
        "n_expert_used": facts.n_expert_used,
        "head_size_k": facts.head_size_k,
        "head_size_v": facts.head_size_v,
        "tied_embeddings": facts.tied_embeddings,
        "is_synthetic": facts.is_synthetic,
        "n_shards": facts.n_shards,
        "tensor_types": {
            kind: {"n_tensors": count, "n_bytes": n_bytes[kind]}
            for kind, count in n_tensors.most_common()
        },
    }


def _print_facts(about: dict[str, Any]) -> None:
    from llamasweep.cli.terminal import printable, table_lines
    from llamasweep.units import format_bytes

    quant = about["quant"]
    if about["quant_llama_bench"] != quant:
        quant = f"{quant} ({about['quant_llama_bench']})"
    experts = f"{about['n_expert']}, {about['n_expert_used']} used" if about["n_expert"] else "none"
    values = {
        "name": about["name"],
        "architecture": about["arch"],
        "quantisation": quant,
        "parameters": f"{about['n_params']:,} ({about['n_params'] / 1e9:.2f} B)",
        "tensor bytes": f"{about['size_bytes']:,} ({format_bytes(about['size_bytes'])})",
        "file bytes": f"{about['n_file_bytes']:,} ({format_bytes(about['n_file_bytes'])})",
        "bits per weight": f"{about['bits_per_weight']:.3f}",
        "layers": about["n_layers"],
        "embedding length": about["n_embd"],
        "vocabulary": about["n_vocab"],
        "trained context": about["n_ctx_train"],
        "experts": experts,
        "head size K, V": f"{about['head_size_k'] or 'unknown'}, {about['head_size_v'] or 'unknown'}",
        "tied embeddings": "yes" if about["tied_embeddings"] else "no",
        "generated here": "yes, random weights" if about["is_synthetic"] else "no",
        "shards": about["n_shards"],
        "content": about["content_hash"],
    }
    width = max(map(len, values))
    for name, value in values.items():
        click.echo(f"{name:<{width}}  {'unknown' if value is None else printable(value)}")
    click.echo()
    rows = [
        (kind, entry["n_tensors"], format_bytes(entry["n_bytes"]))
        for kind, entry in about["tensor_types"].items()
    ]
    for line in table_lines(("TYPE", "TENSORS", "SIZE"), rows):
        click.echo(line)


@command.command()
@click.argument("shape")
@click.option("--quant", required=True, help="Quantisation, such as Q4_K_M or F16.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; left out: the cache, where it is used again.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="Of the random weights.")  # fmt: skip
def synth(shape: str, quant: str, out: Path | None, seed: int) -> None:
    """Write a model of a known shape with random weights: as fast as the real one, useless for text.

    \b
    Example:
      llamasweep models synth tiny-llama --quant Q4_K_M
      llamasweep models synth Qwen3-4B --quant Q8_0 --out /tmp/qwen3.gguf
    """
    from llamasweep.cli.terminal import printable
    from llamasweep.gguf import synth as synthesis

    with _progress(f"{shape} {quant}") as tell:
        if out is None:
            path = synthesis.cached_model(shape, quant, seed=seed, on_progress=tell)
        else:
            path = out.expanduser()
            synthesis.write_model(shape, quant, path, seed=seed, on_progress=tell)
    click.echo(printable(path))


def _progress(label: str) -> Any:
    """A context manager that gives `on_progress(n_done_bytes, n_total_bytes)`."""
    import contextlib
    import sys

    @contextlib.contextmanager
    def bar() -> Iterator[Callable[[int, int], None]]:
        if not sys.stderr.isatty():
            yield lambda _done, _total: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Left

        from llamasweep.cli.terminal import printable

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), DownloadColumn(binary_units=True), Left())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(printable(label), total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)

    return bar()


@command.command()
@_JSON_OPTION
def shapes(is_json: bool) -> None:
    """The shapes that `synth` knows.

    \b
    Example:
      llamasweep models shapes
    """
    from llamasweep.cli.terminal import table_lines
    from llamasweep.gguf.shapes import planned_tensors, shape_names
    from llamasweep.units import format_bytes

    rows: list[dict[str, Any]] = []
    for name in shape_names():
        sizes = {q: sum(t.n_bytes for t in planned_tensors(name, q)) for q in ("Q4_K_M", "F16")}
        rows.append({"shape": name, "q4_k_m_bytes": sizes["Q4_K_M"], "f16_bytes": sizes["F16"]})
    if is_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = [
        (row["shape"], format_bytes(row["q4_k_m_bytes"]), format_bytes(row["f16_bytes"]))
        for row in rows
    ]
    for line in table_lines(("SHAPE", "AS Q4_K_M", "AS F16"), table):
        click.echo(line)
