"""The closed list of kinds of findings, each with when it is said, the likely cause and the next step. Only words.

`docs/findings.md` is made from it; thresholds are named in the modules of checks and repeated here in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["alarm", "warning", "note"]

Kind = Literal[
    "slow_decode",
    "above_ceiling",
    "above_reference",
    "far_below_ceiling",
    "dequantisation_bound",
    "slower_build",
    "old_build",
    "missing_instructions",
    "partly_on_cpu",
    "gpu_unused",
    "gpu_waits_for_ram",
    "prompt_ops_on_cpu",
    "vram_full",
    "kv_cache_on_cpu",
    "more_threads_than_cpus",
    "smt_siblings",
    "threads_beyond_knee",
    "too_few_threads",
    "barrier_collapse",
    "busy_neighbour",
    "paged_from_disk",
    "swapping",
    "one_memory_channel",
    "memory_below_rated",
    "throttled",
    "falling_rate",
    "on_battery",
    "slow_governor",
    "small_ubatch",
    "depth_loss",
    "kv_growth",
    "small_active_set",
    "first_repetition_slow",
    "wide_spread",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class KindWords:
    """What is said of a kind.

    title: a few words. when: what must be seen before it is said. cause, next_step: where the check has no better
    ones for the row. explains: whether it can be the reason for a slow decode.
    """

    severity: Severity
    title: str
    when: str
    cause: str
    next_step: str
    explains: bool = False


KINDS: dict[Kind, KindWords] = {
    # -- against the ceiling
    "slow_decode": KindWords(
        severity="alarm",
        title="generation far slower than the memory allows",
        when="generation at a depth of at most 512 reaches less than 70 % of its ceiling, and each token takes over 10 ms "
        "longer than the ceiling says",
        cause="Unexplained: nothing that was recorded tells why.",
        next_step="Measure again on a quiet machine, with a newer build and with other numbers of threads.",
    ),
    "above_ceiling": KindWords(
        severity="alarm",
        title="above the ceiling",
        when="the median is more than 1.02 of the ceiling",
        cause="The ceiling rests on an assumption that does not hold here; the rate itself may be right.",
        next_step="Calibrate the machine again (llamasweep calibrate), or give the right bandwidth in the sweep.",
    ),
    "above_reference": KindWords(
        severity="note",
        title="faster than the reference peak",
        when="the median is more than 1.02 of a ceiling whose peak compute rate is a reference that faster units may beat",
        cause="The engine's kernels use faster units than the reference counts, such as int8 dot products or matrix tiles; no "
        "fault, and no assumption is broken.",
        next_step="Compare such shares between machines and builds; where you know the peak of those units, give it (compute).",
    ),
    "far_below_ceiling": KindWords(
        severity="warning",
        title="far below the ceiling",
        when="the median is less than 0.15 of the ceiling",
        cause="Is this the device that the ceiling was made for? Its bandwidth may belong to other memory than the one in use.",
        next_step="Compare the device that the engine names with the one that you meant, and the bandwidth in the sweep.",
    ),
    # -- the build and its kernels
    "dequantisation_bound": KindWords(
        severity="warning",
        title="bound by unpacking the weights",
        when="generation below 70 % of its ceiling and over 10 ms a token above it, on the CPU with an i-quant; or with any "
        "quantisation, where another one of the same model, under the same settings, loses less than half of that time",
        cause="The processor needs longer to unpack these weights than to read them, so the memory waits.",
        next_step="Take another quantisation of about the same size (a K-quant or Q4_0 on a CPU), or more threads where "
        "cores are free.",
        explains=True,
    ),
    "slower_build": KindWords(
        severity="warning",
        title="another build is faster on the same memory",
        when="a slow decode, while another build or backend in the same run, on memory of the same bandwidth, is at least "
        "1.3 times as fast on the same question",
        cause="This build, or the part of the machine that it uses, cannot draw what the memory gives.",
        next_step="Use the faster build.",
        explains=True,
    ),
    "old_build": KindWords(
        severity="warning",
        title="an old build",
        when="a slow decode with a llama.cpp build below 3100 (June 2024), or with OpenCL on a GPU that today's OpenCL "
        "backend does not run on",
        cause="Kernels of that time are slower on many devices; backends have been rewritten or replaced since.",
        next_step="Measure the same with a current build (llamasweep builds install).",
        explains=True,
    ),
    "missing_instructions": KindWords(
        severity="warning",
        title="a build without this processor's instructions",
        when="the processor has vector or matrix instructions that the build was not compiled for, and the row ran on it",
        cause="The build is made for older or for any processors, so each token costs more calculation than needed.",
        next_step="Compile it on this machine (llamasweep builds install), or take a build for this processor.",
        explains=True,
    ),
    # -- placement
    "partly_on_cpu": KindWords(
        severity="note",
        title="part of the model is on the CPU",
        when="fewer layers on the GPU than the model has, experts or named tensors kept on the CPU, or the KV cache in RAM",
        cause="What lies in RAM is read at RAM speed and calculated by the CPU; times add up.",
        next_step="Put more on the GPU if it has room: raise n_gpu_layers, lower n_cpu_moe, or take a smaller quantisation, "
        "context or KV type.",
        explains=True,
    ),
    "gpu_unused": KindWords(
        severity="warning",
        title="a GPU is there and was not used",
        when="the machine has a GPU with memory of its own, the row ran on the CPU, and the sweep did not ask for that",
        cause="The build has no backend for the GPU, or its driver does not answer.",
        next_step="Use a build with a backend for it (llamasweep doctor names the GPU, llamasweep builds list the backends).",
        explains=True,
    ),
    "gpu_waits_for_ram": KindWords(
        severity="warning",
        title="the GPU waits for the RAM",
        when="part of the layers is on the CPU, the GPU is less than half used, and reading that part takes at least 40 % of "
        "what the RAM gives",
        cause="The part in RAM takes most of each token's time; the GPU idles at a low clock meanwhile, which is no fault.",
        next_step="Move more layers to the GPU, or make the part in RAM smaller; a faster GPU would not help.",
        explains=True,
    ),
    "prompt_ops_on_cpu": KindWords(
        severity="warning",
        title="prompts are read on the CPU although a GPU is there",
        when="a prompt test with weights in RAM and no_op_offload switched on",
        cause="With op offload off, everything whose weights lie in RAM is calculated by the CPU, long prompts included.",
        next_step="Leave no_op_offload off and compare, with a larger n_ubatch.",
    ),
    "vram_full": KindWords(
        severity="warning",
        title="device memory is full",
        when="the peak of the only GPU's memory reaches 97 % of it",
        cause="Some drivers then move data to system memory without a word, which is many times slower.",
        next_step="Leave room: a smaller context, KV type or quantisation, or fewer layers on the GPU.",
        explains=True,
    ),
    "kv_cache_on_cpu": KindWords(
        severity="warning",
        title="attention falls back to the CPU for this KV type",
        when="a quantised KV cache on a GPU, and the same with an f16 cache is at least 1.3 times as fast; or the GPU is less "
        "than half used while the engine keeps more than one core busy and all layers are on the GPU",
        cause="The backend has no flash-attention kernel for these types of K and V, so the CPU does that part.",
        next_step="Take q8_0 or q4_0 for both K and V, or f16; a CUDA build with GGML_CUDA_FA_ALL_QUANTS has the others.",
        explains=True,
    ),
    # -- threads and neighbours
    "more_threads_than_cpus": KindWords(
        severity="warning",
        title="more threads than processors",
        when="n_threads is above the logical processors that the process may use, or above its CPU quota",
        cause="Threads wait for each other at every step, and one that is not running holds up all of them.",
        next_step="Use at most as many threads as there are processors for the engine.",
        explains=True,
    ),
    "smt_siblings": KindWords(
        severity="note",
        title="more threads than physical cores",
        when="n_threads is above the physical cores, and no row of the run shows that this is faster than fewer threads",
        cause="Two threads on one core share its units and its path to the memory, so that more of them seldom read faster.",
        next_step="Compare with as many threads as there are physical cores.",
        explains=True,
    ),
    "threads_beyond_knee": KindWords(
        severity="note",
        title="more threads than the memory needs",
        when="generation with more threads than reach 95 % of the memory bandwidth (calibration), and no row of the run shows "
        "that this is faster; or fewer threads are faster by more than 3 % in this run",
        cause="The memory is busy already; further threads only add waiting at the barriers.",
        next_step="Use the fewest threads that are as fast; the others stay free for other work.",
        explains=True,
    ),
    "too_few_threads": KindWords(
        severity="warning",
        title="fewer threads than the memory needs",
        when="generation on the CPU, while more threads are at least 1.1 times as fast in this run; or a slow decode with fewer "
        "threads than reach 95 % of the memory bandwidth (calibration), where the run has no row with more",
        cause="So few threads cannot draw, or cannot calculate with, what the memory gives.",
        next_step="Raise n_threads, up to the physical cores, until generation is no faster.",
        explains=True,
    ),
    "barrier_collapse": KindWords(
        severity="warning",
        title="threads held up by other load",
        when="others used at least 10 % of the processor; two or more threads and the other load together were more than the "
        "processors; and the row is below half of its ceiling, of its best repetition, of the same cell in another round, or of "
        "the same with fewer threads",
        cause="Each step waits for the slowest thread. One thread that loses its core to another program holds up all others, "
        "so a little load costs most of the speed.",
        next_step="Stop the other load and measure again; with load that must stay, leave a core free for it.",
        explains=True,
    ),
    "busy_neighbour": KindWords(
        severity="warning",
        title="others used the processor",
        when="everything but the engine used at least 10 % of the processor meanwhile, and no collapse shows",
        cause="Another program, or another guest of the same host, ran beside the measurement.",
        next_step="Measure these cells again on a quiet machine.",
        explains=True,
    ),
    # -- memory
    "paged_from_disk": KindWords(
        severity="warning",
        title="weights were read from disk while measuring",
        when="the engine had major page faults and read at least 16 MiB from disk in the measured phase",
        cause="Mapped weights were not, or no longer, in memory.",
        next_step="See what else fills the memory, or measure again: the first pass brings them in.",
        explains=True,
    ),
    "swapping": KindWords(
        severity="warning",
        title="the machine swapped",
        when="swap in use is 64 MiB or more above the least of the run, or it is that large while RAM is 90 % full",
        cause="Memory in use does not fit in RAM, so the system moves it to disk and back.",
        next_step="Close other programs, or take a smaller model, context or KV type.",
        explains=True,
    ),
    "one_memory_channel": KindWords(
        severity="warning",
        title="one memory channel",
        when="the firmware lists modules on one channel only, and the measured bandwidth is that of one channel",
        cause="All modules share one channel; the ceilings are right for it, and they are half of what the board may allow.",
        next_step="A second module like it in the other channel would give up to twice the bandwidth, and so of generation.",
    ),
    "memory_below_rated": KindWords(
        severity="warning",
        title="memory slower than its rated speed",
        when="the measured bandwidth is below 60 % of the specification, or the GPU's memory clock below 90 % of its highest",
        cause="Fewer channels work than are listed, the clock is below the rated one, or others used it when it was measured.",
        next_step="Look at the memory's profile (XMP, EXPO) and slots in the firmware, and calibrate again on a quiet machine.",
        explains=True,
    ),
    # -- power and heat
    "throttled": KindWords(
        severity="warning",
        title="throttled",
        when="at least 5 % of the readings tell of a thermal or power limit",
        cause="The device lowered its clock because of heat or its power limit.",
        next_step="Cool it, or set a cooldown in the sweep; as it is, these are speeds of a machine at its limit.",
        explains=True,
    ),
    "falling_rate": KindWords(
        severity="warning",
        title="slower with every repetition",
        when="five or more repetitions fall steadily (Mann-Kendall, p at most 0.01), by at least 5 % from the first third to "
        "the last",
        cause="Clocks that fall as the machine warms up do this, and so does other load that grows.",
        next_step="Set a cooldown between cells, and look at clocks and temperatures over time.",
        explains=True,
    ),
    "on_battery": KindWords(
        severity="warning",
        title="on battery",
        when="the machine ran on battery when the run started",
        cause="Laptops lower clocks and power limits on battery.",
        next_step="Plug it in and measure again.",
        explains=True,
    ),
    "slow_governor": KindWords(
        severity="warning",
        title="a governor that saves power",
        when="the CPU's frequency governor is powersave or conservative (of a driver that does not govern itself), or its energy "
        "preference is power or balance_power",
        cause="Clocks rise late or not at all.",
        next_step="Choose performance for the measurement (cpupower frequency-set -g performance, or the power profile).",
        explains=True,
    ),
    # -- settings and the test itself
    "small_ubatch": KindWords(
        severity="warning",
        title="n_ubatch too small for prompts",
        when="a prompt longer than n_ubatch, where the memory bounds it by the ceiling's arithmetic, or where a larger n_ubatch "
        "in the same run is at least 1.05 times as fast",
        cause="All weights are read again for every n_ubatch tokens.",
        next_step="Raise n_ubatch (and n_batch with it) as far as memory allows.",
    ),
    "depth_loss": KindWords(
        severity="warning",
        title="slower at depth than the KV cache explains",
        when="the share of the ceiling at the greatest depth is below 90 % of the share at the least",
        cause="Attention itself costs time beyond reading the cache: its kernel, the KV type, or flash attention being off.",
        next_step="Compare with flash_attn on and with an f16 cache.",
    ),
    "kv_growth": KindWords(
        severity="note",
        title="the growing KV cache explains the loss at depth",
        when="generation at depth is at least 5 % slower, and the share of the ceiling stays within 10 %",
        cause="Each token reads the whole cache; the ceiling falls by as much.",
        next_step="A smaller KV type (q8_0) is read faster; otherwise this is what depth costs.",
    ),
    "small_active_set": KindWords(
        severity="note",
        title="a small active set on fast memory",
        when="generation below 70 % of its ceiling with at most 10 ms a token above it, where reading takes at most 5 ms a "
        "token, on a GPU or on memory of 150 GB/s and more",
        cause="Each token reads so little that fixed costs per layer and launch take a large part; this is no fault.",
        next_step="Compare such rows with each other, not with the 70 to 85 % of large models.",
    ),
    "first_repetition_slow": KindWords(
        severity="note",
        title="a slow first repetition",
        when="the first repetition is more than 10 % and three scaled MADs below the median of at least three others",
        cause="Clocks, caches or pages were not level yet when it was measured.",
        next_step="Keep discard: auto, or warm up longer.",
    ),
    "wide_spread": KindWords(
        severity="warning",
        title="repetitions lie far apart",
        when="the scaled MAD of at least three repetitions is more than 5 % of their median",
        cause="Something changed between repetitions: other load, clocks, or threads moving between cores.",
        next_step="Measure on a quiet machine with more repetitions, and set cpu_mask where threads wander.",
    ),
}
"""In the order in which people should read them."""
