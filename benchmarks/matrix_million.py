"""Time and memory of a one-million-cell matrix: validated, counted, grouped and given its ETA. Prints JSON.

Aim: under 5 s and under 1 GB for each case. Each case runs in a process of its own, so that peaks
do not mix.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

from llamasweep.gguf.facts import ModelFacts
from llamasweep.sweep.blocks import Restriction
from llamasweep.sweep.matrix import expand
from llamasweep.sweep.plan import make_plan
from llamasweep.sweep.predict import Rates
from llamasweep.sweep.schema import parse
from llamasweep.sweep.subjects import Build, Model, ModelSource

CASES = {
    "product": """
tests: [pp512, tg128]
matrix:
  ngl: 0-9
  depth: [0, 1024, 2048, 4096, 8192]
  kv_type: [f16, q8_0]
  fa: [on, off]
  threads: 1-25
  n_batch: [256, 512, 1024, 2048]
  n_ubatch: [64, 128, 256, 512, 1024]
  poll: [0, 25, 50, 75, 100]
""",
    "excludes_and_restrictions": """
tests: [pp512, tg128]
matrix:
  ngl: 0-9
  depth: [0, 1024, 2048, 4096, 8192]
  kv_type: [f16, q8_0]
  fa: [on, off]
  threads: 1-25
  n_batch: [256, 512, 1024, 2048]
  n_ubatch: [64, 128, 256, 512, 1024]
  poll: [0, 25, 50, 75, 100]
exclude:
  - {threads: ">20", depth: 8192}
  - {n_batch: 256, n_ubatch: ">256"}
  - {ngl: ">5", test: pp512, poll: 100}
  - {kv_type: q8_0, threads: [3, 5, 7], depth: ">=4096"}
include:
  - {depth: 1024, no_kv_offload: on}
  - {depth: 65536, threads: 8, test: tg128}
""",
    "thousand_groups_of_thousand_cells": """
tests: [pp512, tg128]
matrix:
  ngl: 0-999
  threads: 1-50
  n_ubatch: [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]
""",
    "million_groups_of_one_cell": """
tests: [tg128]
isolation: cell
matrix:
  ngl: 0-999
  depth: 0-99900+100
""",
    "thousand_depths_and_threads_interleaved": """
tests: [pp512]
order: interleaved
builds: [one, two]
matrix:
  depth: 0-99900+100
  threads: 1-500
""",
}
HEAD = "version: 1\nname: million\nmodels: [{path: m.gguf}]\n"


def measure(text: str) -> dict[str, Any]:
    """One case in this process: seconds without start and imports, peak memory, what came out."""
    source = ModelSource(label="m", path="m.gguf")
    facts = ModelFacts(
        arch="llama", name="m", quant="Q4_0", quant_short="Q4_0", n_params=8 * 10**9,
        size_bytes=4 * 10**9, n_layers=32, n_embd=4096, n_vocab=128_000, n_ctx_train=131_072,
        n_expert=0, n_expert_used=0, head_size_k=128, head_size_v=128, tied_embeddings=False,
        is_synthetic=True, n_shards=1, tensors=(),
        metadata=(("llama.attention.head_count_kv", 8),),
    )  # fmt: skip
    model = Model(source=source, content_hash="0" * 32, facts=facts)
    where = {"type_v": frozenset({"q8_0"}), "flash_attn": frozenset({"off"})}
    limits = [Restriction(reason="a quantised V cache needs flash attention", where=where)]

    started_s = time.perf_counter()
    spec = parse(HEAD + text, "million.yaml", lambda *_: ("", ""))
    blocks = expand(spec, [source], {})
    counted_s = time.perf_counter()
    n_cells = sum(block.n_cells for block in blocks)
    builds = [
        Build(label=label, path="/b", content_hash=label, argv_prefix=("/b",), options=frozenset())
        for label in spec.builds or ("one",)
    ]
    plan = make_plan(
        spec,
        blocks,
        models={source: model},
        builds=builds,
        restrictions=lambda _block, _model, _build: limits,
        rates=Rates(),
    )
    planned_s = time.perf_counter()
    first, last = plan.groups[0], plan.groups[-1]
    eta_s = plan.remaining_s(len(plan.groups) // 2, Rates())
    ended_s = time.perf_counter()
    return {
        "n_cells_of_the_matrix": n_cells,
        "n_cells_planned": plan.n_cells,
        "n_cells_unsupported": plan.n_unsupported,
        "n_groups": len(plan.groups),
        "n_cells_of_first_and_last_group": [first.n_cells, last.n_cells],
        "predicted_s": plan.predicted_s,
        "eta_at_half_s": eta_s,
        "validate_and_count_s": counted_s - started_s,
        "plan_s": planned_s - counted_s,
        "total_s": ended_s - started_s,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    """All cases, or with a name the one case in this process."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(CASES[sys.argv[1]])))
        return
    results = {}
    for case in CASES:
        started_s = time.perf_counter()
        argv = [sys.executable, __file__, case]
        answer = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        results[case] = {**json.loads(answer), "process_s": time.perf_counter() - started_s}
    print(json.dumps({"benchmark": "matrix_million", **results}))


if __name__ == "__main__":
    main()
