"""What a llama-bench says of itself, as text: flags from `--help`, number and commit from `--version`, devices.

Pure: text in, values out. It knows the shape of these texts from 2024 to 2026 and starts nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FLAG = r"-{1,2}[A-Za-z][\w-]*"
_VALUE = r"(?:<[^<>]*>|[A-Z])"
_OPTION_LINE = re.compile(rf"^ {{2}}({_FLAG}(?:(?:(?:\s+{_VALUE})?,\s*|\s+){_FLAG})*)(?P<rest>.*)$")
"""Spellings of one option at the start of a line; builds of early 2024 repeat the value between them
(`-ctk <t>, --cache-type-k <t>`)."""
_FLAG_WORD = re.compile(rf"(?<![^\s,]){_FLAG}")
_CONTINUATION_INDENT = " " * 8
_DEFAULT = re.compile(r"\(default: ?([^()]*(?:\([^()]*\)[^()]*)*)\)")
_DOMAIN = re.compile(r"^<([^<>]*\|[^<>]*)>")
_VERSION_LINE = re.compile(r"^version: (?P<rest>.+)$", re.MULTILINE)
_BUILD_AND_COMMIT = re.compile(r"\(build (?P<number>\d+), commit (?P<commit>[^\s)]+)\)")
_NUMBER_AND_COMMIT = re.compile(r"^(?P<number>\d+) \((?P<commit>[^\s)]+)\)")
_DEVICE_LINE = re.compile(r"^ {2}(?P<name>[A-Za-z][\w.-]*): ")
_BANNERS = {
    "ggml_cuda_init:": "CUDA",
    "ggml_vulkan:": "Vulkan",
    "ggml_metal_": "Metal",
    "ggml_sycl": "SYCL",
    "ggml_opencl:": "OpenCL",
}
_ALWAYS_THERE = frozenset({"-m", "-p", "-n", "-t", "-o"})


@dataclass(frozen=True, kw_only=True, slots=True)
class HelpText:
    """The flags of one `--help`.

    options: every spelling. option_help: spelling -> the rest of its entry, white space collapsed, lines that
    continue it joined; empty text where the help says nothing.
    """

    options: frozenset[str]
    option_help: tuple[tuple[str, str], ...]

    @property
    def is_llama_bench(self) -> bool:
        """Whether these are the flags of a llama-bench: the ones that every version has had."""
        return self.options >= _ALWAYS_THERE

    def of(self, flag: str) -> str | None:
        """The help of one flag, None where the help does not list it."""
        return dict(self.option_help).get(flag)


def parse_help(text: str) -> HelpText:
    """Read the flags from the text of `--help`.

    Lines before the usage (banners of GPU backends) are left out. A flag's line is indented by exactly two
    spaces; deeper lines continue the entry above them.
    """
    entries: list[tuple[list[str], list[str]]] = []
    for line in _from_usage(text).splitlines():
        match = _OPTION_LINE.match(line)
        if match:
            entries.append((_FLAG_WORD.findall(match[1]), [match["rest"]]))
        elif entries and line.startswith(_CONTINUATION_INDENT):
            entries[-1][1].append(line)
    option_help: dict[str, str] = {}
    for flags, parts in entries:
        described = " ".join(" ".join(parts).split())
        for flag in flags:
            option_help.setdefault(flag, described)
    return HelpText(options=frozenset(option_help), option_help=tuple(option_help.items()))


def default_value(described: str) -> str | None:
    """The `(default: …)` of an option's help; None where it states none, "" where it states an empty one."""
    match = _DEFAULT.search(described)
    return match[1].strip() if match else None


def value_domain(described: str) -> tuple[str, ...] | None:
    """The words of `<a|b|c>` at the start of an option's help, None where it lists no words."""
    match = _DOMAIN.match(described)
    return tuple(word.strip() for word in match[1].split("|")) if match else None


def default_threads(help_text: HelpText) -> int | None:
    """The number of threads that this build would take on this machine, None where the help does not say."""
    described = help_text.of("-t")
    value = default_value(described) if described else None
    return int(value) if value and value.isdecimal() else None


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionText:
    """What `--version` says. number 0 and commit "unknown" are None. first_line: as printed, None where there is none."""

    number: int | None
    commit: str | None
    first_line: str | None


def parse_version(text: str) -> VersionText:
    """Read `version: 0.6.0-dev (build 11434, commit sdist)` and the older `version: 4748 (abcdef1)`."""
    line = _VERSION_LINE.search(text)
    if line is None:
        return VersionText(number=None, commit=None, first_line=None)
    rest = line["rest"].strip()
    found = _BUILD_AND_COMMIT.search(rest) or _NUMBER_AND_COMMIT.match(rest)
    if found is None:
        return VersionText(number=None, commit=None, first_line=line[0].strip())
    commit = found["commit"]
    return VersionText(
        number=int(found["number"]) or None,
        commit=None if commit == "unknown" else commit,
        first_line=line[0].strip(),
    )


def parse_devices(text: str) -> tuple[str, ...] | None:
    """Names from `--list-devices`, such as ("CUDA0",); () where it lists none, None where the text is something else."""
    _, heading, after = text.partition("Available devices:")
    if not heading:
        return None
    names = (_DEVICE_LINE.match(line) for line in after.splitlines())
    return tuple(name["name"] for name in names if name)


def backends_of(devices: tuple[str, ...] | None, banners: str) -> tuple[str, ...] | None:
    """Backends as the device names and the banner lines betray them, in order.

    ("CPU",) for a build that lists no device and prints no banner; None where it can list no devices and prints no banner.
    """
    found = [name.rstrip("0123456789") or name for name in devices or ()]
    found += [backend for mark, backend in _BANNERS.items() if mark in banners]
    if found:
        return tuple(dict.fromkeys(found))
    return None if devices is None else ("CPU",)


def _from_usage(text: str) -> str:
    start = re.search(r"^usage:", text, re.MULTILINE | re.IGNORECASE)
    return text[start.start() :] if start else text
