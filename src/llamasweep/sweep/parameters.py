"""Every parameter that can vary, declared once.

The canonical name is the one in llama-bench's JSON (decision: architecture page, section 4). From this table
come the YAML's axes and their short words, the columns of the results, and the docs page. How a parameter is
spelled on a given build's command line is known by `engines.llama_bench`, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scalar = int | float | str | bool
"""Value of a parameter in a cell. `flash_attn` is "on", "off" or "auto"; switches are bool."""

Scope = Literal["process", "model", "context", "request"]
"""What a change costs llama-bench: a new process, a new model load, or only a new context; "request": nothing, a server is asked
in another way. A server is started anew for all but the last."""

Kind = Literal["int", "str", "bool", "choice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One axis.

    name: canonical name, as in cells and columns. words: other spellings that the YAML takes. kind: type of its
    values. scope: what a change costs. choices: allowed values of kind "choice" (empty otherwise).
    minimum: least int, None = unbounded. doc: one line for people. keeps_depth_state: False where a change of
    it makes llama-bench throw away its saved KV state.
    """

    name: str
    words: tuple[str, ...] = ()
    kind: Kind
    scope: Scope
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    doc: str
    keeps_depth_state: bool = True


_KV_TYPES = ("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl")

PARAMETERS: tuple[Parameter, ...] = (
    # -- process: fixed for one engine process
    Parameter(
        name="numa",
        kind="choice",
        scope="process",
        choices=("distribute", "isolate", "numactl"),
        doc="NUMA placement policy",
    ),
    Parameter(
        name="prio",
        words=("priority",),
        kind="int",
        scope="process",
        minimum=-1,
        doc="process priority, -1 to 3",
    ),
    Parameter(name="rpc", kind="str", scope="process", doc="RPC servers, host:port/host:port"),
    # -- model: a change loads the model again
    Parameter(
        name="fit_target",
        words=("fitt",),
        kind="int",
        scope="model",
        minimum=0,
        doc="fit to device memory with this margin, MiB",
    ),
    Parameter(
        name="fit_min_ctx",
        words=("fit_ctx", "fitc"),
        kind="int",
        scope="model",
        minimum=0,
        doc="least context for fit_target, tokens",
    ),
    Parameter(
        name="n_gpu_layers",
        words=("ngl", "gpu_layers"),
        kind="int",
        scope="model",
        minimum=-1,
        doc="layers on the GPU, -1 = auto",
    ),
    Parameter(
        name="n_cpu_moe",
        words=("ncmoe", "cpu_moe"),
        kind="int",
        scope="model",
        minimum=0,
        doc="layers whose experts stay on the CPU",
    ),
    Parameter(
        name="split_mode",
        words=("sm",),
        kind="choice",
        scope="model",
        choices=("none", "layer", "row", "tensor"),
        doc="how several GPUs share the model",
    ),
    Parameter(
        name="load_mode",
        words=("lm",),
        kind="choice",
        scope="model",
        choices=("auto", "none", "mmap", "mlock", "mmap+mlock", "dio"),
        doc="how weights reach memory",
    ),
    Parameter(
        name="lazy_mode",
        words=("lzm",),
        kind="choice",
        scope="model",
        choices=("on", "auto", "off"),
        doc="lazy reading of large tables",
    ),
    Parameter(
        name="main_gpu",
        words=("mg",),
        kind="int",
        scope="model",
        minimum=0,
        doc="index of the main GPU",
    ),
    Parameter(
        name="devices",
        words=("device", "dev"),
        kind="str",
        scope="model",
        doc="devices to use, A/B, or auto or none",
    ),
    Parameter(
        name="tensor_split", words=("ts",), kind="str", scope="model", doc="share per GPU, 3/1"
    ),
    Parameter(
        name="tensor_buft_overrides",
        words=("override_tensor", "ot"),
        kind="str",
        scope="model",
        doc="regex=buffer;regex=buffer",
    ),
    Parameter(name="no_host", kind="bool", scope="model", doc="bypass the host buffer"),
    Parameter(name="repack", kind="bool", scope="model", doc="repack weights for the CPU"),
    Parameter(
        name="concurrency",
        words=("streams", "n_parallel"),
        kind="int",
        scope="model",
        minimum=1,
        doc="streams at once: requests that a server answers, or sequences of llama-batched-bench",
    ),
    Parameter(
        name="num_ctx",
        words=("ctx_size",),
        kind="int",
        scope="model",
        minimum=1,
        doc="context window that Ollama allocates, tokens",
    ),
    # -- context: a change makes only a new context
    Parameter(
        name="embeddings", words=("embd",), kind="bool", scope="context", doc="embedding mode"
    ),
    Parameter(
        name="no_op_offload",
        words=("nopo",),
        kind="bool",
        scope="context",
        doc="keep large-batch operations of host weights on the CPU",
    ),
    Parameter(
        name="n_batch",
        words=("batch", "batch_size", "b"),
        kind="int",
        scope="context",
        minimum=1,
        doc="logical batch, tokens",
    ),
    Parameter(
        name="n_ubatch",
        words=("ubatch", "ubatch_size", "ub"),
        kind="int",
        scope="context",
        minimum=1,
        doc="physical batch, tokens",
    ),
    Parameter(
        name="type_k",
        words=("ctk", "cache_type_k"),
        kind="choice",
        scope="context",
        choices=_KV_TYPES,
        doc="type of K in the KV cache",
        keeps_depth_state=False,
    ),
    Parameter(
        name="type_v",
        words=("ctv", "cache_type_v"),
        kind="choice",
        scope="context",
        choices=_KV_TYPES,
        doc="type of V in the KV cache",
        keeps_depth_state=False,
    ),
    Parameter(
        name="no_kv_offload",
        words=("nkvo",),
        kind="bool",
        scope="context",
        doc="KV cache stays in RAM",
    ),
    Parameter(
        name="flash_attn",
        words=("fa",),
        kind="choice",
        scope="context",
        choices=("on", "off", "auto"),
        doc="flash attention",
        keeps_depth_state=False,
    ),
    Parameter(
        name="n_threads",
        words=("threads", "t"),
        kind="int",
        scope="context",
        minimum=1,
        doc="CPU threads",
    ),
    Parameter(
        name="cpu_mask", words=("C",), kind="str", scope="context", doc="CPU affinity mask, hex"
    ),
    Parameter(name="cpu_strict", kind="bool", scope="context", doc="strict CPU placement"),
    Parameter(
        name="n_depth",
        words=("depth", "d", "context_length"),
        kind="int",
        scope="context",
        minimum=0,
        doc="tokens in the KV cache before timing",
        keeps_depth_state=False,
    ),
    Parameter(
        name="poll",
        kind="int",
        scope="context",
        minimum=0,
        doc="polling level of waiting threads, 0 to 100",
    ),
    # -- request: another way to ask the same server
    Parameter(
        name="prompt_cache",
        kind="choice",
        scope="request",
        choices=("cold", "warm"),
        doc="whether a server has read the same prompt before",
    ),
    Parameter(
        name="turn",
        words=("turns",),
        kind="int",
        scope="request",
        minimum=1,
        doc="turn of a conversation that grows by the test each time",
    ),
)
"""In llama-bench's own loop order from the outermost inwards; those that only servers have stand where they cost as much."""

SERVER_ONLY = frozenset({"concurrency", "prompt_cache", "turn", "num_ctx"})
"""Parameters of servers, which llama-bench does not know."""

BY_NAME: dict[str, Parameter] = {p.name: p for p in PARAMETERS}
CANONICAL: dict[str, str] = {word: p.name for p in PARAMETERS for word in (p.name, *p.words)}
"""Every accepted spelling -> canonical name. `kv_type` (both type_k and type_v) is handled by `schema`."""
