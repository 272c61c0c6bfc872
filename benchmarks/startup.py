"""How long `llamasweep --help` takes, as a multiple of a bare interpreter's start. Aim: at most 6."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from benchmarks.bare import LLAMASWEEP, emit, parser, run

N_PAIRS = 25


def main() -> None:
    """Alternate both, and compare the medians."""
    parser(__doc__, minutes=1).parse_args()
    bare_s, help_s = [], []
    for _ in range(N_PAIRS):
        bare_s.append(run([sys.executable, "-c", "pass"], cwd=Path.cwd()).wall_s)
        help_s.append(run([LLAMASWEEP, "--help"], cwd=Path.cwd()).wall_s)
    emit(
        "startup",
        {
            "bare_interpreter_s": round(statistics.median(bare_s), 4),
            "help_s": round(statistics.median(help_s), 4),
            "ratio": round(statistics.median(help_s) / statistics.median(bare_s), 2),
            "ratio_aim_at_most": 6,
            "n_pairs": N_PAIRS,
        },
    )


if __name__ == "__main__":
    main()
