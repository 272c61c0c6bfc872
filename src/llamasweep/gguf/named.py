"""The facts of a model by whatever names it: a file, a web address, or a known shape.

A shape is planned, never written. What is not a model is refused with the reason.
"""

from __future__ import annotations

from pathlib import Path

from llamasweep.errors import ModelFileError, UsageError, quoted
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.remote_address import is_address

DEFAULT_QUANT = "Q4_K_M"
"""Of a shape where none is asked for."""


def read_named_model(name: str, *, quant: str | None = None) -> ModelFacts:
    """A model by its path (of a split one the first shard), its address, or the name of its shape.

    quant: of a shape only. A file goes before a shape of the same name. Raises ModelFileError,
    ModelSynthError for an unknown quantisation, UsageError for a quantisation of a file.
    """
    if is_address(name):
        _refuse_quant(quant)
        from llamasweep.gguf.remote import read_remote_model  # noqa: PLC0415  (brings http and TLS)

        return read_remote_model(name)
    path = _existing(name)
    if path is not None:
        _refuse_quant(quant)
        from llamasweep.gguf.header import read_model  # noqa: PLC0415  (not needed for shapes)

        return read_model(path)
    return _planned(name, quant or DEFAULT_QUANT)


def _refuse_quant(quant: str | None) -> None:
    if quant is not None:
        raise UsageError(
            "--quant belongs to the name of a shape; a file has its quantisation already",
            hint="Leave --quant out.",
        )


def _existing(name: str) -> Path | None:
    """The path, None where nothing of that name is there or can be."""
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: ~ of an unknown user
        return None


def _planned(name: str, quant: str) -> ModelFacts:
    from llamasweep.gguf import shapes  # noqa: PLC0415  (reads its table)

    known = {shape.casefold(): shape for shape in shapes.shape_names()}
    if name.casefold() not in known:
        import difflib  # noqa: PLC0415  (only a name that is not known needs it)

        near = difflib.get_close_matches(name[:200].casefold(), known, n=1)
        raise ModelFileError(
            f"{quoted(name)} is neither a file nor the name of a known shape",
            hint=f"Did you mean {known[near[0]]}?"
            if near
            else "`llamasweep models list` shows the models that are here; known shapes: "
            + ", ".join(s for s in known.values() if not s.startswith("tiny-"))
            + ".",
        )
    return shapes.planned_facts(name, quant)
