"""Secrets planted in every text of a run: none of them is in the page, its data, its pictures or the markdown."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import failed_parts, hostile_run, info, measured, run_of, sweep_parts
from tests.unit.report.readings_made import run_over_time

from llamasweep.report.hiding import Hider, file_name, is_path, names_in
from llamasweep.report.pictures import picture_svg, pictures
from llamasweep.report.redact import NOTE, redacted
from llamasweep.report.render import render_report
from llamasweep.report.rows import rows_of
from llamasweep.report.summary_markdown import summary_markdown
from llamasweep.report.views import page
from llamasweep.results.records import Attempt, RunData

SECRETS = (
    "zelda77",
    "hyrule-box",
    "castle.example",
    "SN0324918004021",
    "3f2c1b6e-9d55-4b1a-8a7e-0c9f5d2e7a11",
    "de:ad:be:ef:00:17",
    "192.168.77.31",
    "acme-secret",
    "Client Files",
    "link-alpha",
)
PLANTED = (
    "/home/zelda77/acme-secret/Client Files/tiny.gguf",
    "~zelda77/acme-secret/tiny.gguf",
    r"C:\Users\zelda77\acme-secret\tiny.gguf",
    "could not open '/srv/acme-secret/Client Files/tiny.gguf': no such file",
    "loading models/acme-secret/tiny.gguf on hyrule-box",
    "zelda77@hyrule-box.castle.example: serial number SN0324918004021",
    "GPU-3f2c1b6e-9d55-4b1a-8a7e-0c9f5d2e7a11 at de:ad:be:ef:00:17",
    "http://zelda77:pw@192.168.77.31:8080/acme-secret?key=1 and https://castle.example/tiny.gguf",
    "talks to 192.168.77.31 as ZELDA77",
)
TEXT = "\n".join(PLANTED)
OWN_WORDS = ("hyrule-box.castle.example", "link-alpha")
TEXT_FIELDS = [
    field.name
    for field in dataclasses.fields(Attempt)
    if field.type in ("str", "str | None")
    and field.name not in ("run_id", "attempt_id", "cell_id", "group_id", "test_kind", "status")
]
ARGV = [
    "/home/zelda77/acme-secret/llama-bench",
    "-m",
    "Client Files/acme-secret/tiny.gguf",
    "-o",
    "jsonl",
]


def planted_run() -> RunData:
    """Measured and failed cells with every secret in each of their texts, one field at a time and all together."""
    parts = []
    for number, name in enumerate(TEXT_FIELDS):
        text: dict[str, Any] = {name: f"{PLANTED[number % len(PLANTED)]} link-alpha"}
        parts.append(measured(number, [10.0, 10.2], **text))
    everywhere: dict[str, Any] = dict.fromkeys(TEXT_FIELDS, TEXT)
    failed, _ = failed_parts()[0]
    parts += [
        measured(200, [9.0, 9.1], **everywhere, flags=(TEXT,), differences=(TEXT,)),
        (replace(failed, **everywhere, reasons={"ceiling_tps": TEXT}), []),
    ]
    environment = {"HOME": "/home/zelda77", "A": TEXT}
    process = {"argv": [*ARGV, *PLANTED], "env": environment, "exit_signal": TEXT}
    return run_of(
        parts,
        sweep_name=TEXT,
        sweep_file=PLANTED[0],
        sweep_resolved={"models": [{"path": text, text: text} for text in PLANTED]},
        notes=[*PLANTED],
        machine={
            "hostname": "hyrule-box",
            "board_serial": "SN0324918004021",
            "text": TEXT,
            "gpus": [{"uuid": 7}],
        },
        builds=[{"path": ARGV[0]}],
        versions={TEXT: TEXT},
        groups=[{"group_id": "g0", "log_id": "00000-g0", **process}],
    )


def leaks(text: str) -> list[str]:
    """Secrets in a text, also where it escapes them."""
    plain = html.unescape(text) + text.replace("\\", "") + re.sub(r"<!-- -->", "", text)
    return [secret for secret in SECRETS if secret.casefold() in plain.casefold()]


@pytest.fixture(scope="module")
def shown() -> tuple[RunData, ...]:
    return redacted([planted_run()], OWN_WORDS)


def test_the_secrets_are_in_the_page_without_it() -> None:
    assert set(leaks(render_report([planted_run()]))) == set(SECRETS)


def test_no_secret_is_in_the_page_or_its_data(shown: tuple[RunData, ...]) -> None:
    text = render_report(shown)
    assert leaks(text) == []
    data = re.search(r'<script type="application/json" id="row-data">(.*?)</script>', text, re.S)
    assert data is not None
    assert leaks(json.dumps(json.loads(data[1]), ensure_ascii=False)) == []
    assert NOTE in html.unescape(text)


def test_no_secret_is_in_the_markdown_or_a_picture(shown: tuple[RunData, ...]) -> None:
    view = page(shown)
    assert leaks(summary_markdown(view, rows_of(shown))) == []
    drawn = pictures(view)
    assert drawn
    assert [name for picture in drawn for name in leaks(picture.name + picture_svg(picture))] == []


def test_figures_and_commands_stay() -> None:
    run = run_of([*sweep_parts(), *failed_parts()])
    (hidden,) = redacted([run], ("box",))
    assert [a.median_tps for a in hidden.attempts] == [a.median_tps for a in run.attempts]
    assert [a.test_kind for a in hidden.attempts] == [a.test_kind for a in run.attempts]
    assert hidden.samples == run.samples
    assert hidden.info.groups[0]["argv"] == ["llama-bench", "-m", "tiny-llama-Q4_0.gguf", "-o", "jsonl"]  # fmt: skip
    assert hidden.info.sweep_file == "quick.yaml"
    assert hidden.info.notes[-1] == NOTE


def test_a_person_called_like_a_word_of_ours_breaks_nothing() -> None:
    run = run_over_time(gpu=True)
    shown = redacted([run], ("ok", "tg", "power", "proc", "argv"))
    assert render_report(shown)
    assert [a.status for a in shown[0].attempts] == ["ok", "ok"]
    assert {r.metric for r in shown[0].readings} == {r.metric for r in run.readings}


def test_a_hostile_run_can_be_redacted() -> None:
    assert render_report(redacted([hostile_run()], ("x" * 500, "", "(", "\\")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25.0 t/s at 41.8 GB/s, n/a", "25.0 t/s at 41.8 GB/s, n/a"),
        ("no cpufreq in /sys/devices/system/cpu", "no cpufreq in /sys/devices/system/cpu"),
        ("logs/00001-g0.jsonl", "logs/00001-g0.jsonl"),
        ("see /opt/my stuff/x.gguf", "see (hidden) x.gguf"),
        ("cannot read /data/team/x.gguf: gone", "cannot read x.gguf: gone"),
        ("models/team/x.gguf", "x.gguf"),
        ("no model at models/team/x.gguf", "no model at x.gguf"),
        ("unsloth/Qwen3-4B-GGUF", "unsloth/Qwen3-4B-GGUF"),
        ("https://huggingface.co/a/b.gguf", "https://huggingface.co/a/b.gguf"),
        ("https://intra.net/a/b.gguf", "https://(hidden)"),
        ("CUDA0/CUDA1", "CUDA0/CUDA1"),
        ("3/1", "3/1"),
        ("driver 550.54.15", "driver 550.54.15"),
        (
            "at 192.168.7.3:50052, 10.1.2.3 and 172.16.0.9",
            "at (hidden):50052, (hidden) and (hidden)",
        ),
        ("100.64.3.9 or 169.254.7.7", "(hidden) or (hidden)"),
        ("fe80::1c2a:7 and [fd00:12::9]:50052", "(hidden) and [(hidden)]:50052"),
        ("2001:db8:0:1:2:3:4:5", "(hidden)"),
        ("127.0.0.1:8080, ::1, 0.0.0.0, 0.1.2.3", "127.0.0.1:8080, ::1, 0.0.0.0, 0.1.2.3"),
        ("at 18:27:14, ggml::add, a::b, 8.8.8.8", "at 18:27:14, ggml::add, a::b, 8.8.8.8"),
        ("pp512 @ d4096", "pp512 @ d4096"),
    ],
)
def test_what_is_hidden_and_what_is_not(text: str, expected: str) -> None:
    assert Hider([], [])(text) == expected


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a/b c.gguf", True), ("/home/x", True), ("GB/s", False), ("https://a/b.gguf", False), ("/proc/x/y.gz", False)],
)  # fmt: skip
def test_a_path_is_known_by_its_form(text: str, is_one: bool) -> None:
    assert is_path(text) is is_one


def test_machines_named_without_a_scheme_are_hidden_everywhere() -> None:
    told = "gpubox:50052/[fd00::7]:50052/node.lab.example:50053/127.0.0.1:50054"
    part = measured(
        1,
        [10.0, 10.1],
        requested={"rpc": told},
        error_message="Failed to connect to gpubox: node.lab.example is away",
    )
    groups = [{"group_id": "g0", "log_id": "g0", "argv": ["llama-bench", "-rpc", "renderbox:1"]}]
    run = run_of(
        [part],
        sweep_resolved={"matrix": {"rpc": [told, "attic:50052"]}, "base_url": "http://cellar:8080"},
        notes=["attic, cellar and renderbox were busy"],
        groups=groups,
    )
    text = render_report(redacted([run]))
    names = ("gpubox", "fd00::7", "node.lab", "attic", "cellar", "renderbox")
    assert [name for name in names if name in text] == []
    assert "127.0.0.1:50054" in text


def test_a_folder_is_no_file_name() -> None:
    assert file_name("/srv/acme") == "(hidden)"
    assert file_name("/opt/x/llama-bench") == "llama-bench"
    assert file_name(r"C:\x\y.gguf") == "y.gguf"


def test_a_name_goes_inside_of_words_where_it_is_long_enough() -> None:
    hide = Hider(["malon", "al", "llama"], [])
    assert hide("xmalon2.gguf by al, with llama-bench and final") == (
        "x(hidden)2.gguf by (hidden), with llama-bench and final"
    )


def test_names_are_known_from_homes_and_logins() -> None:
    assert names_in(["/home/ann/x", r"C:\Users\bob\y", "carl@box.example", "@ d512"]) == {
        "ann",
        "bob",
        "carl",
        "box.example",
    }


def test_redacting_again_changes_nothing_but_the_note() -> None:
    once = redacted([planted_run()], OWN_WORDS)
    twice = redacted(once, OWN_WORDS)
    assert twice[0].attempts == once[0].attempts
    assert info().notes == []
