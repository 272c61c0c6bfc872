"""The documents say what is true: exit codes, modules, columns, examples."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest
from tests.contract.source import PACKAGE, ROOT, modules, tree

from llamasweep import errors
from llamasweep.cli import VERBS, app
from llamasweep.results.records import Attempt, Sample, TelemetryFigures
from llamasweep.sweep import schema

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tests").rglob("README.md"),
    )
    if "node_modules" not in path.parts and "node_modules" not in path.parts
)


def test_the_readme_opens_with_the_two_commands() -> None:
    first = README.split("```")[1]
    commands = [line.split("#")[0].split() for line in first.splitlines()[1:]]
    assert commands == [["make", "sweep"], ["make", "test"]]


def test_exit_codes_in_the_readme_are_those_of_the_code() -> None:
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)}
    assert table == {value for name, value in vars(errors).items() if name.startswith("EXIT_")}


def test_every_error_has_a_documented_exit_code() -> None:
    def tree_of(kind: type[errors.LlamasweepError]) -> set[int]:
        return {kind.exit_code}.union(*(tree_of(sub) for sub in kind.__subclasses__()))

    table = {int(code) for code in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)}
    assert tree_of(errors.LlamasweepError) <= table


def test_verbs_in_the_readme_exist() -> None:
    code = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", README, flags=re.DOTALL)
    named = {verb for part in code for verb in re.findall(r"\bllamasweep ([a-z]+)", "".join(part))}
    assert named <= set(VERBS)
    assert {"doctor", "plan", "run", "report", "results", "builds", "schema"} <= named


def test_the_table_of_verbs_in_the_readme_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `llamasweep ([a-z-]+)` \| (.+) \|$", README, flags=re.MULTILINE)
    assert rows == [(verb, text) for verb, (_, text) in VERBS.items()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_a_page_can_be_typed(page: Path) -> None:
    wrong = []
    for line in _code_lines(page.read_text(encoding="utf-8")):
        for words in re.findall(r"(?:^|[|;&] *)llamasweep ((?:[\w./=,-]+ ?)+)", line):
            verb, *rest = words.split()
            if verb.startswith("--"):
                continue
            command = app.get_command(click.Context(app), verb)
            if isinstance(command, click.Group):
                command = command.get_command(click.Context(command), rest[0]) if rest else command
            options = {name for param in getattr(command, "params", ()) for name in param.opts}
            asked = {word.split("=")[0] for word in rest if word.startswith("--")} - {"--help"}
            if command is None or asked - options:
                wrong.append(line)
    assert not wrong


def _code_lines(text: str) -> list[str]:
    """Lines of shell blocks and inline code, without comments."""
    parts = re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, flags=re.DOTALL)
    return [line.split(" #")[0].strip() for part in parts for line in "".join(part).splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_named_in_a_page_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE))
    lines = _code_lines(page.read_text(encoding="utf-8"))
    assert {m for line in lines for m in re.findall(r"^make ([a-z0-9-]+)", line)} <= targets


def test_the_sweep_in_the_readme_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    spec = schema.parse(text, "README.md", _no_base)
    assert [test.label for test in spec.tests] == ["pp512", "tg128"]


def _no_base(*_: object) -> tuple[str, str]:
    raise AssertionError("the example extends nothing")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)]+)\)", text) if "://" not in t]
    assert not [t for t in targets if t and not (page.parent / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_named_in_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py|[a-z_]+\.py)`", text))
    here = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    here |= {path.name for path in page.parent.glob("*.py")}
    assert not named - here


@pytest.mark.parametrize("name", ["docs/architecture.md"])
def test_classes_named_in_the_architecture_exist(name: str) -> None:
    named = set(
        re.findall(
            r"`([A-Z][a-z]+[A-Za-z]*)(?:\.[a-z_]+)?`", (ROOT / name).read_text(encoding="utf-8")
        )
    )
    classes = {n.name for m in modules() for n in ast.walk(tree(m)) if isinstance(n, ast.ClassDef)}
    assert named
    assert not named - classes


def test_rooms_in_the_architecture_are_the_rooms() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z]+)/` \|", text, flags=re.MULTILINE))
    assert named == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_columns_in_the_formulas_exist() -> None:
    text = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ")][1:]
    named = {column for cell in rows for column in re.findall(r"`([a-z_]+)`", cell)}
    fields = {f for kind in (Attempt, Sample, TelemetryFigures) for f in kind.__dataclass_fields__}
    assert named
    assert not named - fields


def test_every_dependency_is_explained() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.split("\ndependencies = [")[1].split("]")[0]
    names = re.findall(r'"([A-Za-z0-9-]+)', listed)
    page = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    assert names
    assert not [name for name in names if name not in page]
