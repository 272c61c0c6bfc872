"""Does AMX work here as llama.cpp uses it, on this processor?

A native build may load well and die of SIGILL at the first prompt where a virtual machine shows AMX and traps on it. A small
program that does the same tells before the build. What old GCCs do wrong is put right by `workarounds.cmake`, and here too.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_COMPILE_TIMEOUT_S = 60.0
_RUN_TIMEOUT_S = 10.0
_PROGRAM = r"""
#if defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__linux__)
#include <cstdint>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
struct Config {
    uint8_t palette = 0, start_row = 0, reserved[14] = {0};
    uint16_t row_bytes[16] = {0};
    uint8_t rows[16] = {0};
};
static unsigned char tile[1024] __attribute__((aligned(64)));
static void configure() {
    alignas(64) Config config = {};
    config.palette = 1;
    for (int i = 0; i < 8; ++i) {
        config.rows[i] = 16;
        config.row_bytes[i] = 64;
    }
    _tile_loadconfig(&config);
}
int main() {
    if (syscall(SYS_arch_prctl, 0x1023, 18)) return 0; // refused: ggml sees that too and does without
    configure();
    _tile_loadd(0, tile, 64);
    _tile_loadd(7, tile, 64);
    _tile_release();
    return 0;
}
#else
int main() { return 0; }
#endif
"""
WITHOUT_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


def traps_on_amx(compiler: str | None) -> bool:
    """True where a program that uses AMX as llama.cpp does, compiled for this very processor, is killed.

    compiler: of C++, None where there is none. False as well where nothing can be compiled or run: the build will tell.
    """
    if compiler is None or os.name != "posix":
        return False
    with tempfile.TemporaryDirectory(prefix="llamasweep-") as folder:
        source, program = Path(folder) / "tile.cpp", Path(folder) / "tile"
        source.write_text(_PROGRAM, encoding="ascii")
        try:
            if not _compile(compiler, source, program):
                return False
            ran = subprocess.run(
                [str(program)], capture_output=True, check=False, timeout=_RUN_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return ran.returncode < 0


def _compile(compiler: str, source: Path, program: Path) -> bool:
    """Compile with the options that `workarounds.cmake` gives to GCC; other compilers do not know them."""
    for options in (["-fno-tree-dse", "-fno-dse"], []):
        argv = [compiler, "-O3", "-march=native", *options, str(source), "-o", str(program)]
        done = subprocess.run(argv, capture_output=True, check=False, timeout=_COMPILE_TIMEOUT_S)
        if done.returncode == 0:
            return True
    return False


def instruction_definitions(*, is_trapping: bool, extra: Mapping[str, str]) -> dict[str, str]:
    """CMake definitions that keep a native build from using what traps.

    extra: the user's own definitions, whose compiler flags are kept.
    """
    if not is_trapping or extra.get("GGML_NATIVE", "ON") != "ON":
        return {}
    return {
        name: f"{extra[name]} {WITHOUT_AMX}" if name in extra else WITHOUT_AMX
        for name in ("CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS")
    }
