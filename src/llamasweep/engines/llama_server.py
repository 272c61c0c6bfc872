"""llama-server as an engine: which server is started for a group, and what a server cannot be asked. Pure."""

from __future__ import annotations

from llamasweep.engines.at_once import MAX_STREAMS
from llamasweep.engines.base import Call, CallOptions
from llamasweep.engines.driven import Driven, program_call
from llamasweep.engines.llama_bench_flags import model_restrictions
from llamasweep.results.server_flags import SPELLED, context_for
from llamasweep.sweep.blocks import TEST
from llamasweep.sweep.cell import Block, Group
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, Model

TAG_TOKENS = 32
"""Room for the tag at the start of every prompt, and for what a template adds."""
LONGEST_SYNTHETIC_TOKEN = 4
"""Letters of the longest token that a generated model may write, with up to 1.7 million tokens in its vocabulary."""
_TELLING_SINCE = 10488
"""Build from which on `-lv 4` does."""
OF_REQUESTS = frozenset({"n_depth", "concurrency", "prompt_cache", "turn"})
"""Axes of what a server is asked, and not of how it is started."""
DEPTH_OF_PROMPT = (
    "a server reads the whole prompt; ask for a longer one (pp4608) instead of pp512 at depth 4096"
)
DEPTH_OF_TURN = "a conversation grows by itself; leave the depth out, or the turns"


class LlamaServer(Driven):
    """We start a server for each group, with its settings, and ask it over HTTP."""

    name = "llama-server"

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        found = model_restrictions(block, model, build)
        found += depth_restrictions(block)
        found += stream_restrictions(block)
        return found + flag_restrictions("llama-server", block, build)

    def describe(self, group: Group, options: CallOptions) -> Call:
        return program_call(self.name, server_argv(group, options), group, options)


def depth_restrictions(block: Block) -> list[Restriction]:
    """What a prompt is to a server: prompts at a depth are one longer prompt, and are asked for as such."""
    axes = dict(block.axes)
    deep = frozenset(d for d in axes.get("n_depth", ()) if d != 0)
    prompts = frozenset(test for test in block.tests if test.n_prompt > 0)
    if not deep:
        return []
    if "turn" in axes:
        return [Restriction(reason=DEPTH_OF_TURN, where={"n_depth": deep})]
    if not prompts:
        return []
    return [Restriction(reason=DEPTH_OF_PROMPT, where={"n_depth": deep, TEST: prompts})]


def stream_restrictions(block: Block) -> list[Restriction]:
    """More streams than a client of ours can drive."""
    many = frozenset(n for n in dict(block.axes).get("concurrency", ()) if int(n) > MAX_STREAMS)
    if not many:
        return []
    reason = f"more than {MAX_STREAMS} requests at once are not measured"
    return [Restriction(reason=reason, where={"concurrency": many})]


def flag_restrictions(program: str, block: Block, build: Build) -> list[Restriction]:
    """Settings for which this build's program has no flag, by its own help."""
    found = []
    for name, values in block.axes:
        if name in OF_REQUESTS or name == "n_threads":
            continue
        refused = frozenset(value for value in values if not _is_sayable(name, value, build))
        if refused:
            reason = f"{program} of {build.label} has no flag for {name}"
            if name == "num_ctx":
                reason = f"num_ctx is Ollama's; {program} gets the context that the tests need"
            found.append(Restriction(reason=reason, where={name: refused}))
    return found


def _is_sayable(name: str, value: Scalar, build: Build) -> bool:
    spell = SPELLED.get(name)
    if spell is None:
        return False
    return all(build.knows(w) for w in spell(value, build.number)[:1] if w.startswith("-"))


def telling_words(build: Build) -> list[str]:
    """What makes a program tell the settings of its context, and nothing for each token."""
    if build.number is None or build.number < _TELLING_SINCE:
        return []
    return ["-lv", "4", "--no-log-prefix", "--log-colors", "off"]


def longest_request(block: Block, model: Model) -> int:
    """Tokens of the longest question of a block with its answer; of a conversation all that was said until its last turn.

    An answer comes back as text, and a generated model's vocabulary cuts that into one token for each letter.
    """
    axes = dict(block.axes)
    n_turns = max((int(turn) for turn in axes.get("turn", ())), default=1)
    depth = max((int(d) for d in axes.get("n_depth", ())), default=0)
    is_synthetic = model.facts is not None and model.facts.is_synthetic
    n_back = LONGEST_SYNTHETIC_TOKEN if is_synthetic and n_turns > 1 else 1
    longest = max(test.n_prompt + n_back * test.n_gen for test in block.tests)
    return n_turns * (longest + TAG_TOKENS) + depth


def server_argv(group: Group, options: CallOptions) -> tuple[str, ...]:
    """Without host and port, which the driver chooses. The context holds the longest test of the group in every slot."""
    block, build = group.block, group.build
    axes = {name: values[0] for name, values in block.axes if name not in ("prompt_cache", "turn")}
    n_streams = int(axes.get("concurrency", 1))
    longest = longest_request(block, group.model)
    argv = [build.path, "-m", options.model_path, "-np", str(n_streams)]
    argv += ["-c", str(context_for(longest) * n_streams)]
    if "n_threads" in axes:
        argv += ["-t", str(axes["n_threads"])]
    for name, value in axes.items():
        if name not in OF_REQUESTS and name in SPELLED:
            argv += SPELLED[name](value, build.number)
    if build.number is not None and build.number >= _TELLING_SINCE:
        argv += ["-lv", "4", "--no-log-prefix", "--log-colors", "off"]
    if build.knows("--cache-ram"):
        argv += ["--cache-ram", "0"]  # else it keeps gigabytes of prompts that come once
    if build.knows("--no-webui"):
        argv.append("--no-webui")
    if not options.warmup and build.knows("--no-warmup"):
        argv.append("--no-warmup")
    return (*argv, *options.extra_args)
