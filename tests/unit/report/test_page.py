"""The rendered page: parsed as a browser would, hostile or large, and asked whether anything would leave it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest
from tests.unit.report.factory import failed_parts, hostile_run, measured, run_of, sweep_parts

from llamasweep.report.render import chart_svg, render_report
from llamasweep.report.views import page
from llamasweep.results.records import RunData

VOID = {"meta", "link", "br", "hr", "img", "input"}
FETCHING = {
    "src",
    "srcset",
    "data",
    "poster",
    "action",
    "formaction",
    "background",
    "ping",
    "manifest",
}


@dataclass
class Parsed:
    """Elements with their attributes, texts by tag, and whether all tags were closed in order."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    badly_nested: list[str] = field(default_factory=list)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parsed = Parsed()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.parsed.badly_nested.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open:
            self.parsed.texts.setdefault(self._open[-1], []).append(data)


def parse(html: str) -> Parsed:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.parsed


def big_run(n_cells: int) -> RunData:
    models = [f"model-{i}" for i in range(n_cells // 24 + 1)]
    parts = sweep_parts(
        models=models, quants=("Q4_0", "Q8_0"), threads=(1, 2), depths=(0, 512, 2048)
    )
    return run_of(parts[:n_cells])


@pytest.fixture(scope="module")
def full() -> str:
    return render_report([run_of([*sweep_parts(), *failed_parts()], notes=["It was not quiet."])])


def test_tags_are_nested_and_ids_are_unique(full: str) -> None:
    parsed = parse(full)
    assert parsed.badly_nested == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_link_leads_to_a_place_in_the_page(full: str) -> None:
    parsed = parse(full)
    ids = {attributes["id"] for _, attributes in parsed.elements if "id" in attributes}
    targets = [attributes["href"] for attributes in parsed.all("a")]
    assert targets
    assert [t for t in targets if not t.startswith("#") or t[1:] not in ids] == []


def test_hostile_names_add_no_element_and_no_handler() -> None:
    hostile = parse(render_report([hostile_run()]))
    assert hostile.badly_nested == []
    assert [script.get("type") for script in hostile.all("script")] == [None, "application/json"]
    for _, attributes in hostile.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not re.search(r"[\"'<>\s=]", "".join(attributes.keys()))
    assert {tag for tag, _ in hostile.elements} <= {tag for tag, _ in parse(_plain()).elements}


def test_hostile_names_are_shown_with_nothing_hidden() -> None:
    html = render_report([hostile_run()])
    text = "".join(
        t
        for tag, texts in parse(html).texts.items()
        if tag not in ("script", "style")
        for t in texts
    )
    assert "<script>alert(1)</script>\\n\\u202egnp.exe\\u2028$(touch" in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\ud800-\udfff]", html)


def _plain() -> str:
    return render_report([run_of([*sweep_parts(), *failed_parts()], notes=["x"])])


@pytest.mark.parametrize("kind", ["full", "hostile"])
def test_nothing_would_be_fetched(kind: str, full: str) -> None:
    html = full if kind == "full" else render_report([hostile_run()])
    for tag, attributes in parse(html).elements:
        for name in FETCHING & set(attributes):
            pytest.fail(f"<{tag} {name}={attributes[name]!r}>")
        if tag == "link":
            assert attributes["href"] == "data:,"
        if "href" in attributes and tag != "link":
            assert attributes["href"].startswith("#")
        assert "url(http" not in attributes.get("style", "")
    outside = [
        u
        for u in re.findall(r"https?://[^\s\"'<>)]+", html)
        if not u.startswith("http://www.w3.org/")
    ]
    assert outside == []
    assert "@import" not in html


def test_the_policy_allows_the_pages_own_script_alone(full: str) -> None:
    parsed = parse(full)
    (policy,) = [
        m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"
    ]
    script, data = parsed.texts["script"]
    assert json.loads(data)["n_rows"] == 79
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]


def test_the_page_is_the_same_each_time() -> None:
    assert _plain() == _plain()


def test_200_cells_stay_under_2_megabytes() -> None:
    html = render_report([big_run(200)])
    assert len(html.encode()) < 2_000_000
    assert html.count('<tr id="row-') == 200


def test_absent_sections_are_not_in_the_page() -> None:
    html = render_report([run_of([measured(1, [10.0, 10.1])])])
    assert "What failed" not in html
    assert "Not tried" not in html
    assert 'id="axis-' not in html


def test_a_run_without_any_measurement_is_still_a_page() -> None:
    html = render_report([run_of(failed_parts())])
    assert "<h1" in html
    assert "Nothing could be measured" in html
    assert 'id="ceiling"' not in html


def test_prompts_alone_are_a_page() -> None:
    html = render_report(
        [
            run_of(
                [
                    measured(
                        1, [480.0, 485.0], test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0
                    )
                ]
            )
        ]
    )
    assert (
        "No exact ceiling of prompt reading: <bdi>no peak compute rate is known for this device</bdi>"
        in html
    )
    assert "No exact ceiling of generation" not in html


def test_generation_without_a_known_bandwidth_says_why_there_is_no_ceiling() -> None:
    html = render_report([run_of([measured(1, [18.0, 18.1], model_size_bytes=None)])])
    assert "No exact ceiling of generation: <bdi>the memory bandwidth is not known</bdi>" in html
    assert "A track ends at the exact ceiling" not in html


def test_an_empty_run_is_still_a_page() -> None:
    html = render_report([run_of([], n_cells_planned=12, finished_at=None)])
    assert "no cell was tried" in html
    assert "12 of 12 not done yet" in html
    assert "not finished" in html


def test_several_runs_stand_in_one_page() -> None:
    first = run_of(sweep_parts(threads=(2,)))
    other = run_of(
        [measured(n, [9.0, 9.1], run_id="other", cpu_name="Ryzen 5 5600G") for n in range(2)],
        run_id="other",
        sweep_name="o",
    )
    view = page([first, other])
    assert [head.where for head in view.heads] == ["AMD EPYC 7763", "Ryzen 5 5600G"]
    assert "2 machines" in view.title
    assert "run" in [column.title for column in view.table.columns]
    assert len(view.repeats) == 2


def test_a_page_needs_a_run() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        page([])


def test_a_gpu_build_is_named_by_its_gpu() -> None:
    run = run_of([measured(1, [1.0], build_backends="CUDA", gpu_name="NVIDIA RTX 4070")])
    assert page([run]).heads[0].where == "NVIDIA RTX 4070"


def test_a_machine_that_told_no_name_is_said_to_have_none() -> None:
    run = run_of([measured(1, [1.0], cpu_name=None)])
    assert page([run]).heads[0].where == "a machine that told no name"
    known = run_of(
        [measured(1, [1.0], cpu_name=None)], machine={"cpu_name": "Ryzen", "ram_bytes": None}
    )
    assert page([known]).heads[0].where == "Ryzen"
    assert ("ram_bytes", "not known") in page([known]).heads[0].facts


def test_ids_of_two_charts_do_not_meet() -> None:
    spec = page([run_of(sweep_parts())]).sections[0].charts[0].spec
    clipped = {
        **spec,
        "layer": [{**spec["layer"][0], "mark": {**spec["layer"][0]["mark"], "clip": True}}],
    }
    svg = chart_svg(clipped, "c7-")
    assert re.findall(r'id="(?!c7-)', svg) == []
    assert 'clip-path="url(#c7-' in svg


def test_charts_use_only_colours_that_both_themes_know(full: str) -> None:
    charts = re.findall(r"<figure.*?</figure>", full, re.DOTALL)
    assert charts
    used = {
        c.lower()
        for chart in charts
        for c in re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"', chart)
    }
    style = full[full.index("<style>") : full.index("</style>")].lower()
    assert {c for c in used if f'="{c}"]' not in style} == set()
