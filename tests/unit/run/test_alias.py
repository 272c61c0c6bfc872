from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.run import alias
from llamasweep.run.alias import plain_path


def link_of(model: Path, tmp_path: Path) -> Path:
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes(b"GGUF " + model.name.encode("utf-8", "surrogateescape"))
    return Path(plain_path(model, tmp_path / "links", "model"))


@pytest.mark.parametrize(
    "name",
    [
        "tiny.gguf",
        "Qwen3-0.6B_Q4_K_M.gguf",
        "a b (no)".replace("(no)", "c") + ".gguf",
        "x+y@z=1:2~.gguf",
    ],
)
def test_a_harmless_name_is_given_as_it_is(tmp_path: Path, name: str) -> None:
    assert link_of(tmp_path / name, tmp_path) == tmp_path / name
    assert not (tmp_path / "links").exists()


@pytest.mark.parametrize(
    "name",
    ["a,b.gguf", "a\nb.gguf", "a\tb.gguf", "ü.gguf", "模型.gguf", "a'b.gguf", 'a"b.gguf', "a\\b.gguf", "$(touch x).gguf",
     "<script>.gguf", "a;b.gguf", "a*b.gguf", "a%b.gguf", "\udcff.gguf"],
)  # fmt: skip
def test_a_name_that_would_break_the_line_or_the_output_is_given_through_a_link(
    tmp_path: Path, name: str
) -> None:
    link = link_of(tmp_path / name, tmp_path)
    assert link == tmp_path / "links" / "model.gguf"
    assert link.read_bytes() == (tmp_path / name).read_bytes()


def test_a_leading_dash_is_harmless_because_the_path_is_absolute(tmp_path: Path) -> None:
    path = str(link_of(tmp_path / "-rf.gguf", tmp_path))
    assert path == str(tmp_path / "-rf.gguf")
    assert path.startswith("/")


def test_a_folder_counts_as_much_as_the_name(tmp_path: Path) -> None:
    model = tmp_path / "a,b" / "tiny.gguf"
    assert link_of(model, tmp_path).read_bytes() == model.read_bytes()


def test_a_relative_path_leads_to_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.gguf").write_bytes(b"x")
    Path("plain.gguf").write_bytes(b"y")
    for name in ("a,b.gguf", "plain.gguf"):
        given = Path(plain_path(Path(name), tmp_path / "links", "model"))
        assert given.is_absolute()
        assert given.read_bytes() == Path(name).read_bytes()


def test_every_shard_of_a_split_model_gets_its_link(tmp_path: Path) -> None:
    names = [f"ü-{n:05d}-of-00003.gguf" for n in (1, 2, 3)]
    for name in names:
        (tmp_path / name).write_text(name)
    given = Path(plain_path(tmp_path / names[0], tmp_path / "links", "model"))
    assert given.name == "model-00001-of-00003.gguf"
    for n, name in enumerate(names, 1):
        link = given.with_name(f"model-{n:05d}-of-00003.gguf")
        assert link.read_text() == name


def test_a_later_shard_stays_the_shard_that_was_named(tmp_path: Path) -> None:
    """The engine must be able to say that it is not the first one."""
    for n in (1, 2):
        (tmp_path / f"ü-{n:05d}-of-00002.gguf").write_text(str(n))
    given = Path(plain_path(tmp_path / "ü-00002-of-00002.gguf", tmp_path / "links", "model"))
    assert given.read_text() == "2"


def test_a_missing_shard_is_left_for_the_engine_to_miss(tmp_path: Path) -> None:
    (tmp_path / "ü-00001-of-00002.gguf").touch()
    given = Path(plain_path(tmp_path / "ü-00001-of-00002.gguf", tmp_path / "links", "model"))
    assert given.exists()
    assert not given.with_name("model-00002-of-00002.gguf").exists()


def test_a_shard_count_beyond_reason_makes_no_flood_of_links(tmp_path: Path) -> None:
    (tmp_path / "ü-00001-of-99999.gguf").touch()
    plain_path(tmp_path / "ü-00001-of-99999.gguf", tmp_path / "links", "model")
    assert len(list((tmp_path / "links").iterdir())) <= 1


def test_a_link_of_before_is_replaced(tmp_path: Path) -> None:
    for name in ("ä.gguf", "ö.gguf"):
        link = link_of(tmp_path / name, tmp_path)
        assert link.read_bytes() == (tmp_path / name).read_bytes()


def test_windows_takes_the_name_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links need a privilege there."""
    monkeypatch.setattr(alias, "_CAN_LINK", False)
    assert link_of(tmp_path / "a,b.gguf", tmp_path) == tmp_path / "a,b.gguf"
