"""Flags of rows and answers in words: what each doubt means and what to do about it. One table for report and command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class FlagWords:
    """word: two or three words for a table. meaning: what was seen and what to do, in sentences."""

    word: str
    meaning: str


_WORDS: dict[str, tuple[str, str]] = {
    "applied_differs": (
        "applied ≠ asked",
        "The engine ran with another value than the sweep asked for. Read the row by the applied value; "
        "the differences are listed below.",
    ),
    "clamped": (
        "clamped",
        "The engine cut a value down to what it can use, such as a batch above the context. "
        "The differences are listed below.",
    ),
    "wide_spread": (
        "noisy",
        "The repetitions lie far apart. Close other programs, fix the clock if you can, and measure these "
        "cells again with more repetitions.",
    ),
    "busy_neighbour": (
        "others busy",
        "Something else used the processor meanwhile. Measure these cells again on a quiet machine.",
    ),
    "throttled": (
        "throttled",
        "The device lowered its clock because of heat or its power limit. These are speeds of a hot machine; "
        "for a cool one set a cooldown.",
    ),
    "paged_from_disk": (
        "read from disk",
        "The engine read weights from disk while it was timed, most often because they do not fit in RAM. "
        "Take a smaller quantisation, or see what else fills the memory.",
    ),
    "first_sample_slow": (
        "slow start",
        "The first repetition is slower than the rest although the engine had warmed up. The sweep's "
        "discard setting says how such a start is treated.",
    ),
    "unpinned": (
        "not pinned",
        "The cores that the sweep asked for could not be had, so threads were free to move. Correct cpu_mask, or read "
        "these rows as unpinned.",
    ),
    "above_ceiling": (
        "above the ceiling",
        "Faster than the exact ceiling allows, so one of its assumptions is wrong; they are listed below. Most often the "
        "bandwidth is: it was measured too low, or the weights stay in a cache and need none.",
    ),
    "far_below_ceiling": (
        "far below the ceiling",
        "Less than 15 % of the exact ceiling. Is this the device that you think? Look for layers left on the processor, "
        "a build without its backend, or a busy machine.",
    ),
    "contaminated_memory": (
        "memory not free",
        "Device memory was not free again before the engine started, so other work may have been on the device. Close "
        "what uses it and measure these cells again.",
    ),
    "prompt_cached": (
        "prompt from a cache",
        "The server had read part of the prompt before, so its prompt rate is too high. Look for another client of the "
        "same server, or measure the cache on purpose with prompt_cache: warm.",
    ),
    "loaded_inside": (
        "loaded inside",
        "The model was loaded within a timed request. Something else made the server drop it; give it a server of its own.",
    ),
    "unloaded": (
        "unloaded",
        "The model was no longer loaded when the cell had ended. Another client or lack of memory threw it out.",
    ),
    "other_models_loaded": (
        "other models loaded",
        "The server held other models as well, which take memory and may compute. Unload them, or let a server be started.",
    ),
    "context_differs": (
        "another context",
        "The server allocated another window than it was asked for. Read the row by num_ctx as applied.",
    ),
    "cpu_gpu_split": (
        "CPU and GPU",
        "Part of the model lies on the processor and part on the GPU, so the slower of both rules. Take a smaller "
        "quantisation or window, or say the layers with n_gpu_layers.",
    ),
    "clocks_differ": (
        "clocks differ",
        "The server's own time of a generation and that at the client are more than a quarter apart: tokens reached the "
        "client in lumps, or something else held the client up.",
    ),
    "several_tokens_per_event": (
        "tokens in lumps",
        "Several tokens came in one event, so gaps between events are not those between tokens and are left out.",
    ),
    "tokens_counted": (
        "counted here",
        "The server does not tell how many tokens it sent; events were counted in their place.",
    ),
    "prompt_length_differs": (
        "other prompt length",
        "Prompts had some tokens more or less than asked for, by the server's own count, which stands in n_prompt_counted.",
    ),
    "prompt_not_counted": (
        "prompt not counted",
        "The server did not tell how many tokens of the prompt it read, so that nobody knows whether it was cut.",
    ),
    "thinking": (
        "thinking",
        "The model wrote thoughts although it was told not to; they count as generated tokens.",
    ),
    "version_unknown": (
        "version unknown",
        "Ollama does not tell its version (a plain Go build calls itself 0.0.0), and what its durations cover depends on it.",
    ),
    "coarse_clock": (
        "coarse clock",
        "This version of Ollama cuts durations to whole milliseconds. Read short tests with care, or update it.",
    ),
    "printed_rate_differs": (
        "printed rate differs",
        "A rate that Ollama printed is not its own count over its own duration. The row holds the computed one.",
    ),
    "no_same_weights": (
        "no llama-bench beside",
        "The sweep asks for llama-bench on the same file, but it gave no rate: the file cannot be read here, or llama-bench "
        "ended with an error, which the group's log may show.",
    ),
    "prompt_not_cached": (
        "prompt not cached",
        "The prompt was to come from the server's cache, and the server read it anew. Read the row as one of a new prompt.",
    ),
    "prompt_shared": (
        "shared prompt",
        "All streams began with one prompt, which was read once (`-pps`), and only its tokens are counted. Hold the row against "
        "others of that kind only.",
    ),
    "short_answer": (
        "short answer",
        "The model ended answers before the asked length, so there was less to time.",
    ),
    "round_failed": (
        "a round failed",
        "At least one round of this cell failed; the figures are of the rounds that succeeded.",
    ),
}

FLAGS: dict[str, FlagWords] = {
    flag: FlagWords(word=word, meaning=meaning) for flag, (word, meaning) in _WORDS.items()
}
FLAGS["noisy"] = FLAGS["wide_spread"]
FLAGS["contaminated"] = FLAGS["busy_neighbour"]
