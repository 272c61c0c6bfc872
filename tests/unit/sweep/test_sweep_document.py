"""YAML as sweeps take it: no surprises of YAML 1.1, nothing unbounded, every place known."""

from __future__ import annotations

import pytest

from llamasweep.errors import SweepFileError
from llamasweep.sweep.document import MAX_BYTES, merged, read_document


def refused(text: str) -> str:
    with pytest.raises(SweepFileError) as caught:
        read_document(text, "s.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("07:00", "07:00"),
        ("1:30", "1:30"),
        ("1e3", "1e3"),
        ("010", "010"),
        ("0o10", "0o10"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("2024-01-01", "2024-01-01"),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("'12'", "12"),
        ("~", None),
        ("null", None),
        ("'null'", "null"),
    ],
)
def test_plain_values_mean_what_they_look_like(text: str, value: object) -> None:
    found = read_document(f"key: {text}", "s.yaml").data["key"]

    assert found == value
    assert type(found) is type(value)


def test_positions_are_those_of_the_file() -> None:
    document = read_document("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\n", "s.yaml")

    assert [document.problem(p, "m").line for p in (("a",), ("b", 0), ("b", 1, "d"))] == [1, 3, 5]
    assert document.problem(("b", 1, "zz", "q"), "m").line == 4, "nearest place around it"
    assert document.problem(("b", 1, "d"), "m").where == "b[1].d"


def test_all_duplicate_keys_are_told_with_their_first_line() -> None:
    message = refused("a: 1\nb: {c: 1, c: 2}\na: 3\n")

    assert "s.yaml:3: a: the key is given twice (first in line 1)" in message
    assert "b.c: the key is given twice" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("- a", "a sweep is a mapping"),
        ("a: [1", "not valid YAML"),
        ("a: !!python/object/apply:os.system [ls]", "the tag"),
        ("a: !secret x", "the tag"),
        ("a: !!binary aGk=", "the tag"),
        ("{? [a]: 1}", "a key must be a word"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge keys"),
        ("a: &x [*x]", "contains it"),
        ("a: " + "[" * 100 + "]" * 100, "nested deeper"),
        ("a: " + "[" * 20_000, "nested deeper"),
        ('a: "\\0"', "zero byte"),
        ("a: b\n---\nc: d\n", "not valid YAML"),
        ("a: \x01", "not valid YAML"),
        ("a: '" + "x" * MAX_BYTES + "'", "larger than"),
        ("a: *nowhere", "not valid YAML"),
    ],
)
def test_what_is_no_sweep_is_refused_with_a_sentence(text: str, said: str) -> None:
    assert said in refused(text)


def test_an_alias_bomb_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]

    assert "aliases expand to more than 200,000 values" in refused("\n".join(lines))


def test_a_document_of_too_many_values_is_refused_unfolded_or_not() -> None:
    assert "more than 60,000 keys and values" in refused("a: [" + "1," * 60_001 + "]")
    nested = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n" + "".join(
        f"a{i}: &a{i} [[[[[[[[[[*a{i - 1}]]]]]]]]]]\n" for i in range(1, 6)
    )
    assert "aliases nest deeper" in refused(nested)


def test_a_plain_alias_is_taken() -> None:
    assert read_document("a: &x [1, 2]\nb: *x", "s.yaml").data["b"] == [1, 2]


def test_mappings_merge_key_by_key_and_the_rest_is_replaced() -> None:
    base = read_document("m: {a: 1, b: [1, 2]}\nt: [x]\nn: 1\n", "base.yaml")
    over = read_document("m:\n  b: [3]\n  c: 4\nn: null\n", "over.yaml")

    document = merged(base, over)

    assert document.data == {"m": {"a": 1, "b": [3], "c": 4}, "t": ["x"]}
    assert document.problem(("m", "a"), "x").file == "base.yaml"
    assert document.problem(("m", "b", 0), "x").file == "over.yaml"
    assert document.problem(("t", 0), "x").file == "base.yaml"
