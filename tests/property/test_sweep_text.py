"""Whatever text is given, a sweep is read or refused with sentences, and nothing else happens."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from llamasweep.errors import SweepFileError
from llamasweep.sweep.schema import SweepKeys, parse

KEYS = (
    *SweepKeys.model_fields,
    "dpeth",
    "threads",
    "path",
    "synth",
    "quants",
    "interval",
    "kv_type",
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "on", "pp512", "1-8*2", ">8", "90s", "8 GiB", "q8_0", "physical"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def no_base(_name: str, _named_in: str) -> tuple[str, str]:
    raise FileNotFoundError(2, "no such file")


def read(text: str) -> None:
    told = None
    try:
        spec = parse(text, "s.yaml", no_base)
    except SweepFileError as error:
        told = error.problems
    if told is None:
        assert spec.models
    else:
        assert told
        assert all(p.message and p.where for p in told)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=6))
def test_any_document_is_read_or_refused(document: dict[str, Any]) -> None:
    read(yaml.safe_dump({"models": [{"path": "m"}], **document}, allow_unicode=True))
