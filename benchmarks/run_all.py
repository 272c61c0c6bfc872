"""Every benchmark in this folder, one after another; prints one JSON object with all of them.

A benchmark that fails is told with its last words, and the others run all the same; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NO_BENCHMARK = {"bare", "run_all", "__init__"}
TAKES_MINUTES = {"overhead", "sweep_wall"}


def measure(name: str, minutes: float) -> dict[str, Any]:
    """The JSON object that a benchmark prints as its last line, or why there is none."""
    bound = ["--minutes", str(minutes)] if name in TAKES_MINUTES else []
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *bound],
        cwd=HERE.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return {"benchmark": name, "failed_with": done.returncode, "last_lines": lines[-3:]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def main() -> None:
    """Run those named, or all."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=20, help="upper bound of each long one")
    options.add_argument("names", nargs="*", help="which; left out: all")
    chosen = options.parse_args()
    known = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NO_BENCHMARK)
    names = chosen.names or known
    unknown = set(names) - set(known)
    if unknown:
        options.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    found = {}
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        found[name] = measure(name, chosen.minutes)
    print(json.dumps(found, indent=2))
    sys.exit(any("failed_with" in figures for figures in found.values()))


if __name__ == "__main__":
    main()
