"""What may be written for an axis, a test, an include or an exclude, and what it means. Pure.

Takes plain values, gives canonical names and typed values, and notes every fault with its place.
Spellings come from `sweep.parameters`; words that depend on the machine (`physical`) are let
through as words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llamasweep.errors import quoted
from llamasweep.sweep.cell import Test, in_bench_order, ordered_axes
from llamasweep.sweep.document import Place
from llamasweep.sweep.parameters import BY_NAME, CANONICAL, Parameter, Scalar
from llamasweep.sweep.spec import AxisValues, Condition, Exclude, Include, Operator

MAX_AXIS_VALUES = 10_000
MAX_INT = 2**31 - 1
MAX_TOKENS = 10_000_000
MAX_TEXT = 4_096

MACHINE_WORDS: dict[str, tuple[str, ...]] = {
    "n_threads": ("physical", "logical", "performance", "half"),
}
"""Words that mean a number on any machine; which one, is passed to `matrix.expand`."""

FIXED_WORDS: dict[str, dict[str, int]] = {"n_gpu_layers": {"auto": -1, "all": 999}}
"""Words that mean the same number everywhere."""

SUBJECT_KEYS = ("model", "quant", "build", "test", "n_prompt", "n_gen")
KV_TYPE = "kv_type"
_RETIRED = dict.fromkeys(("mmap", "mmp", "direct_io", "dio", "mlock"), "load_mode")

_RANGE = re.compile(r"(-?\d{1,10})\s*-\s*(-?\d{1,10})(?:\s*([+*])\s*(\d{1,10}))?")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,9})")
_COMPARISON = re.compile(r"(>=|<=|!=|==|>|<)\s*(\S.*)")
_SHARES = re.compile(r"\d{1,9}(\.\d{1,9})?(/\d{1,9}(\.\d{1,9})?){0,15}")
_TEST = re.compile(r"(?:(pp)(\d{1,8}))|(?:(tg)(\d{1,8}))|(?:pg(\d{1,8})[+,](\d{1,8}))")
_TEST_SUM = re.compile(r"pp(\d{1,8})\+tg(\d{1,8})")
_ON = {"on", "yes", "true", "1", "enabled"}
_OFF = {"off", "no", "false", "0", "disabled"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing wrong; `place` is relative to the whole document."""

    place: Place
    message: str
    suggestion: str | None = None


@dataclass(kw_only=True, slots=True)
class Faults:
    """Collects faults, so that a reader can go on after one."""

    found: list[Fault] = field(default_factory=list)

    def add(self, place: Place, message: str, suggestion: str | None = None) -> None:
        self.found.append(Fault(place=place, message=message, suggestion=suggestion))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a typing mistake was meant to be, None if none is close."""
    lowered = {k.lower(): k for k in known}
    match = difflib.get_close_matches(word.lower()[:80], list(lowered), n=1, cutoff=0.6)
    return lowered[match[0]] if match else None


def parse_test(raw: object) -> Test:
    """pp512, tg128, pg512+128, pg512,128 or pp512+tg128. Raises ValueError with a sentence."""
    text = raw.strip() if isinstance(raw, str) else ""
    if match := _TEST_SUM.fullmatch(text):
        n_prompt, n_gen = int(match.group(1)), int(match.group(2))
    elif match := _TEST.fullmatch(text):
        _, pp, _, tg, pg_prompt, pg_gen = match.groups()
        n_prompt, n_gen = int(pp or pg_prompt or 0), int(tg or pg_gen or 0)
        if (pg_prompt and 0 in (n_prompt, n_gen)) or n_prompt + n_gen == 0:
            raise ValueError(f"{quoted(raw)} measures nothing; use pp and tg with 1 token or more")
    elif re.fullmatch(r"pg\d{1,8}", text):
        raise ValueError(f"{quoted(raw)} lacks its generated tokens; write {text}+128")
    else:
        raise ValueError(f"{quoted(raw)} is not a test; write pp512, tg128 or pg512+128")
    if n_prompt > MAX_TOKENS or n_gen > MAX_TOKENS:
        raise ValueError(f"{quoted(raw)} has more than {MAX_TOKENS:,} tokens")
    return Test(n_prompt=n_prompt, n_gen=n_gen)


def parse_value(parameter: Parameter, raw: object) -> tuple[Scalar, ...]:
    """The values that one item of an axis stands for; several for a range.

    Raises ValueError with a sentence.
    """
    if raw is None or isinstance(raw, dict | list):
        raise ValueError("a value must be a word or a number")
    if parameter.kind == "int":
        return _whole_numbers(parameter, raw)
    if parameter.kind == "bool":
        return (_switch(raw),)
    if parameter.kind == "choice":
        return (_choice(parameter, raw),)
    text = _text(raw)
    if parameter.scope == "model" and "," in text:
        raise ValueError(
            f"{quoted(raw)}: a comma starts another test in llama-bench; write a list for several "
            f"values, and {'/' if parameter.name != 'tensor_buft_overrides' else ';'} inside one"
        )
    if parameter.name == "tensor_split" and not _SHARES.fullmatch(text):
        raise ValueError(f"{quoted(raw)} is not a split; write up to 16 shares like 3/1")
    return (text,)


def _whole_numbers(parameter: Parameter, raw: object) -> tuple[Scalar, ...]:
    if isinstance(raw, bool):
        raise ValueError(f"{quoted(raw)} is not a whole number")
    if isinstance(raw, int):
        return (_bounded(parameter, raw),)
    text = str(raw).strip()
    word = text.lower()
    if word in FIXED_WORDS.get(parameter.name, {}):
        return (FIXED_WORDS[parameter.name][word],)
    if word in MACHINE_WORDS.get(parameter.name, ()):
        return (word,)
    if "," in text:
        return tuple(v for part in text.split(",") for v in _whole_numbers(parameter, part.strip()))
    if _WHOLE.fullmatch(text):
        return (_bounded(parameter, int(text)),)
    if match := _RANGE.fullmatch(text):
        first, last, operator, step = match.groups()
        values = expand_range(int(first), int(last), operator, int(step) if step else 1)
        return tuple(_bounded(parameter, v) for v in values)
    words = (*MACHINE_WORDS.get(parameter.name, ()), *FIXED_WORDS.get(parameter.name, ()))
    known = f" or one of {', '.join(words)}" if words else ""
    raise ValueError(
        f"{quoted(raw)} is not a whole number{known}; write plain decimal digits or a range "
        "such as 1-8*2 or 512-2048+512"
    )


def expand_range(first: int, last: int, operator: str | None, step: int) -> list[int]:
    """llama-bench's range, `last` included where a step meets it.

    Raises ValueError where it would be empty or never end.
    """
    if last < first:
        raise ValueError(f"the range {first}-{last} descends; write it upwards or as a list")
    if operator == "*":
        if step < 2:
            raise ValueError(f"multiplying by {step} never reaches {last}; use *2 or more")
        if first < 1:
            raise ValueError(f"a range that multiplies must start at 1 or more, not {first}")
    elif step < 1:
        raise ValueError("a step of 0 never ends; use +1 or more")
    values: list[int] = []
    value = first
    while value <= last:
        if len(values) >= MAX_AXIS_VALUES:
            raise ValueError(f"the range has more than {MAX_AXIS_VALUES:,} values")
        values.append(value)
        value = value * step if operator == "*" else value + step
    return values


def _bounded(parameter: Parameter, value: int) -> int:
    if parameter.minimum is not None and value < parameter.minimum:
        raise ValueError(f"{value} is below {parameter.minimum}, the least {parameter.name}")
    if value > MAX_INT:
        raise ValueError(f"{quoted(value)} is beyond {MAX_INT}")
    return value


def _switch(raw: object) -> bool:
    word = str(raw).strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    raise ValueError(f"{quoted(raw)} is not a switch; write on or off")


def _choice(parameter: Parameter, raw: object) -> str:
    word = str(raw).strip().lower()
    if "on" in parameter.choices:
        word = "on" if word in _ON else "off" if word in _OFF else word
        word = "auto" if word == "-1" else word
    if word not in parameter.choices:
        near = nearest(word, parameter.choices)
        hint = f"; did you mean {near}?" if near else ""
        raise ValueError(f"{quoted(raw)} is not one of {', '.join(parameter.choices)}{hint}")
    return word


def _text(raw: object) -> str:
    if isinstance(raw, float | bool):
        raise ValueError(f"{quoted(raw)} must be text; put quotes around it")
    text = str(raw)
    if not text or len(text) > MAX_TEXT:
        raise ValueError(f"the text must have 1 to {MAX_TEXT:,} characters")
    return text


def canonical_key(
    raw: str, place: Place, faults: Faults, subjects: tuple[str, ...] = ()
) -> str | None:
    """Canonical name of an axis or subject key; None, and a fault, where it is unknown."""
    key = raw.strip()
    name = CANONICAL.get(key) or CANONICAL.get(key.lower().replace("-", "_"))
    if name or key == KV_TYPE or key in subjects:
        return name or key
    known = (*CANONICAL, KV_TYPE, *subjects)
    suggestion = _RETIRED.get(key.lower()) or nearest(key, known)
    faults.add(place, f"{quoted(raw)} is not a known key here", suggestion)
    return None


def parse_axis(
    parameter: Parameter, raw: object, place: Place, faults: Faults
) -> tuple[Scalar, ...]:
    """The distinct values of one axis, in the order written."""
    items = raw if isinstance(raw, list) else [raw]
    if not items:
        faults.add(place, "the list is empty; leave the key out instead")
    values: list[Scalar] = []
    for index, item in enumerate(items):
        here = (*place, index) if isinstance(raw, list) else place
        try:
            values.extend(parse_value(parameter, item))
        except ValueError as fault:
            faults.add(here, str(fault))
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) < len(values):
        faults.add(place, "a value is given twice")
    if len(distinct) > MAX_AXIS_VALUES:
        faults.add(place, f"more than {MAX_AXIS_VALUES:,} values")
    return distinct


def parse_matrix(
    raw: Mapping[str, Any], place: Place, faults: Faults
) -> dict[str, tuple[Scalar, ...]]:
    """Canonical name -> values; the coupled axis stands under `kv_type`."""
    axes: dict[str, tuple[Scalar, ...]] = {}
    spelled: dict[str, str] = {}
    for key, value in raw.items():
        here = (*place, key)
        name = canonical_key(key, here, faults)
        if name is None:
            continue
        if name in spelled:
            faults.add(here, f"is the same axis as {spelled[name]!r}; give one of them")
            continue
        spelled[name] = key
        axes[name] = parse_axis(BY_NAME["type_k" if name == KV_TYPE else name], value, here, faults)
    clash = [spelled[name] for name in ("type_k", "type_v") if name in spelled]
    if KV_TYPE in spelled and clash:
        faults.add((*place, KV_TYPE), f"sets both types and cannot stand beside {clash[0]!r}")
    return axes


def axis_values(axes: Mapping[str, tuple[Scalar, ...]]) -> AxisValues:
    """Axes without the coupled one, in the order of `PARAMETERS`."""
    return ordered_axes({name: values for name, values in axes.items() if name != KV_TYPE})


def parse_tests(raw: object, place: Place, faults: Faults) -> tuple[Test, ...]:
    """Distinct tests: pp first, then tg, then pg, as llama-bench runs them."""
    items = raw if isinstance(raw, list) else [raw]
    tests: list[Test] = []
    for index, item in enumerate(items):
        here = (*place, index) if isinstance(raw, list) else place
        try:
            test = parse_test(item)
        except ValueError as fault:
            faults.add(here, str(fault))
            continue
        if test in tests:
            faults.add(here, f"the test {test.label} is given twice")
        else:
            tests.append(test)
    if not items:
        faults.add(place, "the list is empty; leave the key out for pp512 and tg128")
    return in_bench_order(tests)


def parse_include(raw: Mapping[str, Any], place: Place, faults: Faults) -> Include:
    """One entry of `include`."""
    axes: dict[str, tuple[Scalar, ...]] = {}
    subjects: dict[str, tuple[str, ...]] = {}
    tests: tuple[Test, ...] = ()
    for key, value in raw.items():
        here = (*place, key)
        name = canonical_key(key, here, faults, ("model", "quant", "test"))
        if name is None:
            continue
        if name == "test":
            tests = parse_tests(value, here, faults)
        elif name in ("model", "quant"):
            subjects[name] = _names(value, here, faults)
        else:
            for axis in _uncoupled(name):
                if axis in axes:
                    faults.add(here, f"{axis} is given twice")
                axes[axis] = parse_axis(BY_NAME[axis], value, here, faults)
    if not raw:
        faults.add(place, "the entry is empty")
    if KV_TYPE in raw and len(axes.get("type_k", ())) > 1:
        faults.add((*place, KV_TYPE), "takes one value here; write one entry for each")
    return Include(
        axes=axis_values(axes),
        models=subjects.get("model", ()),
        quants=subjects.get("quant", ()),
        tests=tests,
    )


def _uncoupled(name: str) -> tuple[str, ...]:
    return ("type_k", "type_v") if name == KV_TYPE else (name,)


def _names(raw: object, place: Place, faults: Faults) -> tuple[str, ...]:
    items = raw if isinstance(raw, list) else [raw]
    names = tuple(str(item) for item in items if isinstance(item, str | int))
    if len(names) < len(items) or not names:
        faults.add(place, "must be a name or a list of names")
    return names


def parse_exclude(raw: Mapping[str, Any], place: Place, faults: Faults) -> Exclude:
    """One entry of `exclude`; all its conditions must hold for a cell to be left out."""
    where: dict[str, Condition] = {}
    for key, value in raw.items():
        here = (*place, key)
        name = canonical_key(key, here, faults, SUBJECT_KEYS)
        for target in _uncoupled(name) if name else ():
            condition = _condition(target, value, here, faults)
            if target in where:
                faults.add(here, f"{target} is given twice")
            elif condition is not None:
                where[target] = condition
    if not raw:
        faults.add(place, "the entry is empty and would leave out every cell")
    return Exclude(where=tuple(sorted(where.items())))


def _condition(name: str, raw: object, place: Place, faults: Faults) -> Condition | None:
    comparison = _COMPARISON.fullmatch(raw.strip()) if isinstance(raw, str) else None
    operator: Operator = "in"
    if comparison:
        word = comparison.group(1)
        raw = _plain(comparison.group(2))
        operator = "in" if word == "==" else word  # type: ignore[assignment]
    before = len(faults.found)
    values = _condition_values(name, raw, place, faults)
    if len(faults.found) > before:
        return None
    if operator != "in" and len(values) != 1:
        faults.add(place, "a comparison takes one value")
        return None
    is_number = isinstance(values[0], int) or values[0] in MACHINE_WORDS.get(name, ())
    if operator in (">", ">=", "<", "<=") and not is_number:
        faults.add(place, f"{quoted(values[0])} is not a number to compare with")
        return None
    return Condition(operator=operator, values=values)


def _plain(text: str) -> object:
    return int(text) if _WHOLE.fullmatch(text.strip()) else text.strip()


_N_TOKENS = Parameter(name="tokens", kind="int", scope="context", minimum=0, doc="tokens of a test")


def _condition_values(name: str, raw: object, place: Place, faults: Faults) -> tuple[Scalar, ...]:
    if name in ("model", "quant", "build"):
        return _names(raw, place, faults)
    if name == "test":
        return tuple(test.label for test in parse_tests(raw, place, faults))
    parameter = _N_TOKENS if name in ("n_prompt", "n_gen") else BY_NAME[name]
    return parse_axis(parameter, raw, place, faults)
