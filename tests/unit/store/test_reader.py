"""Reading a run leaves nothing behind in the process that read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.store.records import attempt, run_info

from llamasweep.store.parquet import RunStore

_SCRIPT = """
import os, sys
from pathlib import Path
from llamasweep.store.locate import load_run
from llamasweep.store.parquet import RunStore

def count():
    return len(os.listdir("/proc/self/task"))

before = count()
run = load_run(Path(sys.argv[1]))
print(len(run.attempts), count() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_a_run_starts_no_threads_that_could_abort_the_process_at_its_end(
    tmp_path: Path,
) -> None:
    info = run_info()
    store = RunStore.create(tmp_path, info)
    store.write_group("g1", [attempt(run_id=info.run_id)])
    argv = [sys.executable, "-c", _SCRIPT, str(store.run_dir)]

    done = subprocess.run(argv, check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["1", "0"]
