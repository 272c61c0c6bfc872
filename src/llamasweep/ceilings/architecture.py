"""What each layer of a model keeps and looks back on, by architecture, as llama.cpp b11434 decides. Pure.

Heads, windows, reused caches, recurrent layers, latent attention, blocks that never run. Knows which
architectures it knows; any other is `NotModelledError`, never a guess. Sources: load_arch_hparams
of src/models/*.cpp, llama_model::create_memory, src/llama-hparams.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from llamasweep.ceilings.consistency import check_layers
from llamasweep.ceilings.metadata import Keys, once_per_model
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts

MAX_LAYERS = 512
"""LLAMA_MAX_LAYERS."""

STATE_BYTES_PER_ELEMENT = 4
"""Recurrent state is f32 whatever the cache types are."""

NO_WINDOW = 0
"""What files write, and llama.cpp takes, for attention over the whole context."""


class Window(NamedTuple):
    """Which layers of an architecture look back on a window only.

    period: every period-th layer is a full one, unless the file has an array; None = only the array
    tells. is_full_first: the full layer opens its period. n_tokens: width where the file does not
    say. is_fixed: that width whatever the file says. is_optional: no window without the key.
    n_layers: only models of this depth have one. is_chunked: a token sees its own chunk of the text.
    """

    period: int | None
    is_full_first: bool = False
    n_tokens: int | None = None
    is_fixed: bool = False
    is_optional: bool = False
    n_layers: int | None = None
    is_chunked: bool = False


WINDOWS: dict[str, Window] = {
    "gemma2": Window(period=2, n_tokens=4096),
    "gemma3": Window(period=6, is_optional=True),
    "gemma3n": Window(period=5),
    "gemma4": Window(period=None),
    "gpt-oss": Window(period=2),
    "llama4": Window(period=4, n_tokens=8192, is_fixed=True, is_chunked=True),
    "cohere2": Window(period=4),
    "cohere2moe": Window(period=4, is_full_first=True),
    "olmo2": Window(period=4, is_optional=True),
    "exaone4": Window(period=4, n_tokens=4096, n_layers=64),
    "exaone-moe": Window(period=4, n_tokens=128),
    "smallthinker": Window(
        period=4, is_full_first=True, n_tokens=4096, is_fixed=True, is_optional=True
    ),
    "laguna": Window(period=4, is_full_first=True, is_optional=True),
    "mellum": Window(period=4, is_optional=True),
    "afmoe": Window(period=4, is_optional=True),
    "plamo3": Window(period=8, is_optional=True),
    "mimo2": Window(period=None),
    "step35": Window(period=None),
}

RECURRENT = frozenset({"mamba", "mamba2"})
BY_KV_HEADS = frozenset({"jamba", "granitehybrid", "lfm2", "lfm2moe"})
BY_KV_HEADS_AND_FF = frozenset({"nemotron_h", "nemotron_h_moe"})
BY_INTERVAL = frozenset({"qwen3next", "qwen35", "qwen35moe"})
BOTH = frozenset({"falcon-h1"})
"""How an architecture tells its recurrent layers: all; those without KV heads; those without KV heads
and feed-forward; all but every n-th; every layer is recurrent and attends."""

INDEXED = frozenset({"deepseek32", "glm-dsa"})
"""Sparse attention: an indexer key per token beside the latent cache."""

GLM_WITH_SHARED_INDEX_N_CTX = 1048576
"""GLM-DSA files of this context length have an indexer in every fourth layer only (GLM 5.2)."""

PLAIN = frozenset(
    {
        *("apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "bloom"),
        *("chatglm", "codeshell", "command-r", "dbrx", "deci", "deepseek", "deepseek2", "dots1"),
        *("ernie4_5", "ernie4_5-moe", "exaone", "falcon", "gemma", "glm4", "glm4moe", "gpt2"),
        *("gptneox", "granite", "granitemoe", "grok", "hunyuan-dense", "hunyuan-moe", "hy_v3"),
        *("internlm2", "jais", "llama", "maincoder", "minicpm", "minicpm3", "minimax-m2"),
        *("mistral3", "mistral4", "mpt", "nemotron", "olmo", "olmoe", "openelm", "orion"),
        *("pangu-embedded", "phi2", "phi3", "phimoe", "plamo", "plm", "qwen", "qwen2", "qwen2moe"),
        *("qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "refact", "seed_oss"),
        *("smollm3", "stablelm", "starcoder", "starcoder2", "xverse"),
    }
)
"""Every layer attends to everything; a window that the file names is ignored (llama, phi3)."""

CHECKED = frozenset(
    {
        *("llama", "qwen3", "qwen3moe", "qwen3next", "qwen35", "gpt-oss", "gemma2", "gemma3"),
        *("gemma3n", "gemma4", "deepseek2", "deepseek32", "phi3", "glm4moe", "llama4", "falcon-h1"),
        *("lfm2", "mamba2", "nemotron_h_moe", "minimax-m2", "command-r"),
    }
)
"""Compared with llama.cpp's own figures, byte by byte; the others follow its source only."""

MODELLED = frozenset(WINDOWS) | PLAIN | RECURRENT | BY_KV_HEADS | BY_KV_HEADS_AND_FF
MODELLED |= BY_INTERVAL | BOTH | INDEXED

GEMMA3N_CACHED_LAYERS = 20
"""hparams.n_layer_kv_from_start of gemma3n, whatever the file says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """One block.

    window_tokens: tokens that it looks back on, itself among them; None = all. stores_kv: whether it
    has cells of its own. reads_kv_of: index of the layer whose cells it attends to (its own, or an
    earlier one that it reuses), None where it does not attend. stores_index: whether it keeps indexer
    keys. n_expert, n_expert_used: of its routed feed-forward, 0 without. ff_size, expert_ff_size: width of
    the dense and of an expert's feed-forward. is_run: False for blocks that only
    predict drafts (MTP), which a plain decode never enters.
    """

    index: int
    n_heads: int
    n_heads_kv: int
    head_size_k: int
    head_size_v: int
    window_tokens: int | None
    stores_kv: bool
    reads_kv_of: int | None
    stores_index: bool
    is_recurrent: bool
    n_expert: int
    n_expert_used: int
    ff_size: int
    expert_ff_size: int
    is_run: bool


class Architecture(NamedTuple):
    """The layers of a model, and what they share.

    is_mla: latent attention, the K row serves as V and no V is stored. index_size: elements of the
    indexer's key per layer and token, 0 without one; index_top_k: tokens that it lets through.
    state_elements: recurrent state per recurrent layer and sequence; state_width: of its input.
    is_chunked: windows are chunks of the text. is_checked: compared with llama.cpp's own figures, not
    only with its source.
    """

    name: str
    layers: tuple[Layer, ...]
    is_mla: bool
    index_size: int
    index_heads: int
    index_top_k: int
    state_elements: int
    state_width: int
    is_chunked: bool
    is_checked: bool

    @property
    def n_run(self) -> int:
        """Blocks that a decode enters."""
        return sum(layer.is_run for layer in self.layers)

    @property
    def window_tokens(self) -> int | None:
        """Width of the window, None where no layer has one."""
        return next((x.window_tokens for x in self.layers if x.window_tokens is not None), None)

    @property
    def widest_v(self) -> int:
        """Elements of the widest V row of any layer."""
        return max((layer.n_heads_kv * layer.head_size_v for layer in self.layers), default=0)


def not_modelled(facts: ModelFacts) -> str | None:
    """Why the exact arithmetic says nothing of this model, None where it covers it."""
    try:
        read_architecture(facts)
    except (NotModelledError, ModelFileError) as error:
        return error.message
    return None


@once_per_model
def read_architecture(facts: ModelFacts) -> Architecture:
    """The layers of this model.

    Raises NotModelledError for an architecture that is not covered, ModelFileError where metadata
    that it needs is absent or makes no sense.
    """
    if facts.arch not in MODELLED:
        raise NotModelledError(f"not modelled: the architecture {facts.arch[:64]!r}")
    keys = Keys(dict(facts.metadata), facts.arch)
    n_layers = facts.n_layers
    if n_layers is None:
        raise ModelFileError(f"the key '{facts.arch[:64]}.block_count' is missing")
    n_drafting = keys.number("nextn_predict_layers")
    if not 0 < n_layers <= MAX_LAYERS or n_drafting >= n_layers:
        raise ModelFileError(
            f"the file says {n_layers} layers ({n_drafting} of them for drafts); "
            f"1 to {MAX_LAYERS} make sense"
        )
    n_run = n_layers - n_drafting
    windows = _windows(keys, facts.arch, n_layers, n_run)
    is_indexed = facts.arch in INDEXED
    layers = _layers(keys, facts, windows, n_run)
    state_elements = _state_elements(keys, facts.arch)
    check_layers(facts, layers, state_elements)
    return Architecture(
        name=facts.arch,
        layers=layers,
        is_mla=bool(
            keys.number("attention.key_length_mla") and keys.number("attention.value_length_mla")
        ),
        index_size=keys.number("attention.indexer.key_length") if is_indexed else 0,
        index_heads=keys.number("attention.indexer.head_count") if is_indexed else 0,
        index_top_k=keys.number("attention.indexer.top_k") if is_indexed else 0,
        state_elements=state_elements,
        state_width=keys.number("ssm.inner_size"),
        is_chunked=facts.arch in WINDOWS and WINDOWS[facts.arch].is_chunked,
        is_checked=facts.arch in CHECKED,
    )


def _layers(
    keys: Keys, facts: ModelFacts, windows: tuple[int | None, ...], n_run: int
) -> tuple[Layer, ...]:
    n_layers = len(windows)
    heads = keys.per_layer("attention.head_count", n_layers)
    heads_kv = (
        keys.per_layer("attention.head_count_kv", n_layers)
        if keys.has("attention.head_count_kv")
        else heads
    )
    full = _head_sizes(keys, facts, heads[0])
    narrow = (
        keys.number("attention.key_length_swa", full[0]),
        keys.number("attention.value_length_swa", full[1]),
    )
    recurrent = _recurrent(keys, facts.arch, heads_kv, n_run)
    attends = _attending(keys, facts.arch, recurrent, n_run)
    sources = _kv_sources(keys, facts.arch, windows, attends)
    indexed = _indexed(keys, facts, n_layers, n_run)
    experts = keys.per_layer("expert_count", n_layers)
    used = keys.per_layer("expert_used_count", n_layers)
    widths = keys.per_layer("feed_forward_length", n_layers)
    expert_widths = keys.per_layer("expert_feed_forward_length", n_layers)
    return tuple(
        Layer(
            index=i,
            n_heads=heads[i],
            n_heads_kv=heads_kv[i],
            head_size_k=(full if windows[i] is None else narrow)[0],
            head_size_v=(full if windows[i] is None else narrow)[1],
            window_tokens=windows[i],
            stores_kv=sources[i] == i,
            reads_kv_of=sources[i],
            stores_index=indexed[i],
            is_recurrent=recurrent[i],
            n_expert=experts[i],
            n_expert_used=used[i] if experts[i] else 0,
            ff_size=widths[i],
            expert_ff_size=expert_widths[i],
            is_run=i < n_run,
        )
        for i in range(n_layers)
    )


def _head_sizes(keys: Keys, facts: ModelFacts, n_heads: int) -> tuple[int, int]:
    """key_length and value_length, by default embedding / heads of layer 0; 0 without heads."""
    if n_heads == 0:
        return 0, 0
    if facts.n_embd is None:
        raise ModelFileError("the embedding length is missing, from which head sizes follow")
    default = facts.n_embd // n_heads
    return (
        keys.number("attention.key_length", default),
        keys.number("attention.value_length", default),
    )


def _windows(keys: Keys, arch: str, n_layers: int, n_run: int) -> tuple[int | None, ...]:
    """Window of each layer in tokens; blocks for drafts have none unless an array says so."""
    rule = WINDOWS.get(arch)
    if rule is None:
        if arch in ("lfm2", "lfm2moe") and keys.number("attention.sliding_window"):
            raise NotModelledError(f"not modelled: {arch} with a sliding window")
        return (None,) * n_layers
    default = NO_WINDOW if rule.n_tokens is None else rule.n_tokens
    n_tokens = keys.number("attention.sliding_window", default)
    wants_none = (rule.is_optional or rule.is_fixed) and n_tokens == NO_WINDOW
    if wants_none or rule.n_layers not in (None, n_run):
        return (None,) * n_layers
    if rule.is_fixed:
        n_tokens = default
    if n_tokens == NO_WINDOW:
        raise ModelFileError(f"the key '{arch}.attention.sliding_window' is missing")
    pattern = "attention.sliding_window_pattern"
    if keys.is_array(pattern):
        narrow = tuple(map(bool, keys.per_layer(pattern, n_layers)))
    elif rule.period is None:
        raise ModelFileError(f"the array '{arch}.{pattern}' is missing")
    else:
        narrow = _periodic(keys.number(pattern, rule.period), rule.is_full_first, n_layers, n_run)
    return tuple(n_tokens if is_narrow else None for is_narrow in narrow)


def _periodic(period: int, is_full_first: bool, n_layers: int, n_run: int) -> tuple[bool, ...]:
    """llama_hparams::set_swa_pattern: period 0 = every layer has a window."""
    return tuple(
        i < n_run and (period == 0 or i % period != (0 if is_full_first else period - 1))
        for i in range(n_layers)
    )


def _recurrent(keys: Keys, arch: str, heads_kv: tuple[int, ...], n_run: int) -> tuple[bool, ...]:
    n_layers = len(heads_kv)
    if arch in RECURRENT | BOTH:
        return (True,) * n_layers
    if arch in BY_KV_HEADS:
        return tuple(heads == 0 for heads in heads_kv)
    if arch in BY_KV_HEADS_AND_FF:
        widths = keys.per_layer("feed_forward_length", n_layers)
        return tuple(i < n_run and heads_kv[i] == 0 and widths[i] == 0 for i in range(n_layers))
    if arch in BY_INTERVAL:
        told = "attention.recurrent_layers"
        if keys.has(told):
            return tuple(map(bool, keys.per_layer(told, n_layers)))
        interval = max(1, keys.number("full_attention_interval", 4))
        return tuple(i < n_run and (i + 1) % interval != 0 for i in range(n_layers))
    return (False,) * n_layers


def _attending(keys: Keys, arch: str, recurrent: tuple[bool, ...], n_run: int) -> tuple[bool, ...]:
    n_layers = len(recurrent)
    if arch in RECURRENT:
        return (False,) * n_layers
    if arch in BY_KV_HEADS_AND_FF:
        widths = keys.per_layer("feed_forward_length", n_layers)
        return tuple(i < n_run and not recurrent[i] and widths[i] == 0 for i in range(n_layers))
    return tuple(i < n_run and (arch in BOTH or not recurrent[i]) for i in range(n_layers))


def _kv_sources(
    keys: Keys, arch: str, windows: tuple[int | None, ...], attends: tuple[bool, ...]
) -> tuple[int | None, ...]:
    """Whose cells a layer attends to; the last layers of gemma3n and gemma4 reuse earlier ones."""
    n_layers = len(windows)
    n_cached = n_layers
    if arch == "gemma3n":
        n_cached = min(n_layers, GEMMA3N_CACHED_LAYERS)
    elif arch == "gemma4":
        n_cached = n_layers - keys.number("attention.shared_kv_layers")
    if n_cached < n_layers and n_cached < 2:
        raise ModelFileError("the file lets every layer reuse another one's KV cache")
    reused = {True: n_cached - 2, False: n_cached - 1}
    return tuple(
        None if not attends[i] else i if i < n_cached else reused[windows[i] is not None]
        for i in range(n_layers)
    )


def _indexed(keys: Keys, facts: ModelFacts, n_layers: int, n_run: int) -> tuple[bool, ...]:
    """Layers with an indexer of their own; the others of GLM 5.2 take over the choice of one before."""
    if facts.arch not in INDEXED:
        return (False,) * n_layers
    told = "attention.indexer.types"
    shares = facts.arch == "glm-dsa" and (
        keys.has(told) or keys.number("context_length") >= GLM_WITH_SHARED_INDEX_N_CTX
    )
    if not shares:
        return tuple(i < n_run for i in range(n_layers))
    own = (
        keys.per_layer(told, n_run)
        if keys.has(told)
        else tuple(int(i < 2 or (i - 2) % 4 == 0) for i in range(n_run))
    )
    return tuple(map(bool, own)) + (False,) * (n_layers - n_run)


def _state_elements(keys: Keys, arch: str) -> int:
    """Recurrent state of one layer and sequence (llama_hparams::n_embd_r + n_embd_s).

    Formulas: (l_cache - 1) x embedding for short convolutions, else (conv_kernel - 1) x (inner +
    2 x groups x state) + state x inner. 0 where the architecture has no recurrent layers.
    """
    if arch in ("lfm2", "lfm2moe"):
        return keys.number("embedding_length") * max(0, keys.number("shortconv.l_cache") - 1)
    if arch not in RECURRENT | BY_KV_HEADS | BY_KV_HEADS_AND_FF | BY_INTERVAL | BOTH:
        return 0
    inner, state = keys.number("ssm.inner_size"), keys.number("ssm.state_size")
    convolved = inner + 2 * keys.number("ssm.group_count") * state
    return max(0, keys.number("ssm.conv_kernel") - 1) * convolved + state * inner
