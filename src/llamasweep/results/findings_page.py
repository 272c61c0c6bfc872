"""The part of docs/findings.md that is made from the kinds themselves."""

from __future__ import annotations

from llamasweep.results.finding_kinds import KINDS, Kind, KindWords

_HEAD = """# Findings: why a row is slow

Made from the code by `make golden`; do not edit.

A finding has a kind from the list below, a severity, evidence (the numbers it rests on), a likely cause, a
next step, and the attempts it is about. Nothing is said without evidence: where a column is absent, the kinds
that need it are silent, and rows without a rate have no findings. Rows are compared with others of the same
run only, never with rows that other load disturbed, and one counts as faster only where all its repetitions
are.

- **alarm**: the figure cannot be as it should. **warning**: something can be changed. **note**: it explains a
  figure that is no fault.
- Kinds marked † can be the reason for a slow decode; the alarm `slow_decode` names those that the same row
  has, or says "unexplained".

Some evidence stands in `run.json` and not in the table of cells: facts of the machine, its calibration
(`machine.calibration`), layers and experts of the models (`models[].n_layers`, `models[].n_expert`), and the
instructions that a build was compiled for (`builds[].cpu_features`; its llama-server tells). A run that was recorded without them
gets no `missing_instructions`, and `gpu_waits_for_ram` only where its own rows tell the layers.

## Kinds
"""


def kinds_page() -> str:
    """Head and table in Markdown."""
    rows = [
        "| kind | severity | said when | likely cause | next step |",
        "|---|---|---|---|---|",
        *(_line(kind, words) for kind, words in KINDS.items()),
    ]
    return _HEAD + "\n" + "\n".join(rows) + "\n"


def _line(kind: Kind, words: KindWords) -> str:
    mark = " †" if words.explains else ""
    cells = (
        f"`{kind}`{mark}: {words.title}",
        words.severity,
        words.when,
        words.cause,
        words.next_step,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
