"""Whether AMX is left out of a native build where it would kill it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.builds.processor import WITHOUT_AMX, instruction_definitions, traps_on_amx


def _compiler(folder: Path, program: str) -> str:
    """A stand-in compiler whose output is `program`; the last argument is where it goes."""
    path = folder / "c++"
    path.write_text(
        "#!/bin/sh\nfor last; do :; done\ncat > \"$last\" <<'END'\n"
        + program
        + '\nEND\nchmod +x "$last"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_a_program_that_is_killed_means_that_amx_traps(tmp_path: Path) -> None:
    assert traps_on_amx(_compiler(tmp_path, "#!/bin/sh\nkill -ILL $$"))


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 0", "#!/bin/sh\nexit 3", "no program at all"])
def test_a_program_that_ends_by_itself_means_that_it_does_not(tmp_path: Path, program: str) -> None:
    assert not traps_on_amx(_compiler(tmp_path, program))


def test_without_a_working_compiler_nothing_is_said(tmp_path: Path) -> None:
    assert not traps_on_amx(None)
    assert not traps_on_amx(str(tmp_path / "missing"))


def test_amx_is_switched_off_only_where_it_traps_in_a_native_build() -> None:
    found = instruction_definitions(is_trapping=True, extra={})
    assert found == {"CMAKE_C_FLAGS": WITHOUT_AMX, "CMAKE_CXX_FLAGS": WITHOUT_AMX}
    assert instruction_definitions(is_trapping=False, extra={}) == {}
    assert instruction_definitions(is_trapping=True, extra={"GGML_NATIVE": "OFF"}) == {}


def test_flags_of_the_user_are_kept() -> None:
    found = instruction_definitions(is_trapping=True, extra={"CMAKE_C_FLAGS": "-g"})
    assert found["CMAKE_C_FLAGS"] == f"-g {WITHOUT_AMX}"
