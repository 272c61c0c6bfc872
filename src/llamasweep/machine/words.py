"""What words such as `threads: physical` mean on this machine. Plain arithmetic on its facts."""

from __future__ import annotations

import math

from llamasweep.machine.facts import MachineFacts


def thread_words(facts: MachineFacts) -> dict[str, int]:
    """Each word as a number of threads, at least 1, never more than this process may use.

    physical: cores; where the system does not tell them, the logical CPUs. logical: hardware
    threads. performance: fast cores of a hybrid processor, else all cores. half: half the physical
    cores, rounded down. Affinity and the control group's quota (rounded down) bound all of them.
    """
    logical = facts.n_cores_logical or 1
    may_use = facts.n_cpus_allowed or logical
    if facts.cpu_quota is not None:
        may_use = min(may_use, math.floor(facts.cpu_quota))
    physical = facts.n_cores_allowed or facts.n_cores_physical or logical
    performance = min(facts.n_cores_performance or physical, physical)
    words = {
        "physical": physical,
        "logical": logical,
        "performance": performance,
        "half": min(physical, max(1, may_use)) // 2,
    }
    return {word: max(1, min(count, may_use)) for word, count in words.items()}
