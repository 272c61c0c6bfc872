"""What builds say of the instructions that they were compiled for, in the words of several versions."""

from __future__ import annotations

import pytest

from llamasweep.builds.cpu_features import parse_system_info

NEW = (
    "0.00.004.992 I cmn  common_param: system_info: n_threads = 2 (n_threads_batch = 2) / 2 | CPU : SSE3 = 1 | "
    "SSSE3 = 1 | AVX = 1 | AVX_VNNI = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | BMI2 = 1 | AVX512 = 1 | AVX512_VBMI = 1 | "
    "AVX512_VNNI = 1 | AVX512_BF16 = 1 | AMX_INT8 = 1 | LLAMAFILE = 1 | OPENMP = 1 | REPACK = 1 | "
)
OLD = (
    "system_info: n_threads = 8 (n_threads_batch = 8) / 16 | AVX = 1 | AVX_VNNI = 0 | AVX2 = 0 | AVX512 = 0 | "
    "FMA = 0 | NEON = 0 | SVE = 0 | F16C = 1 | SSE3 = 1 | SSSE3 = 1 | LLAMAFILE = 1 | "
)
WITH_GPU = "system_info: n_threads = 8 | CUDA : ARCHS = 890 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 | "
ARM = "system_info: n_threads = 4 | CPU : NEON = 1 | ARM_FMA = 1 | MATMUL_INT8 = 1 | SVE_CNT = 16 | DOTPROD = 1 | "


@pytest.mark.parametrize(
    ("text", "features"),
    [
        (
            f"banner\n{NEW}\nerror: no model\n",
            (
                "amx_int8",
                "avx",
                "avx2",
                "avx512_bf16",
                "avx512_vnni",
                "avx512f",
                "avx512vbmi",
                "avx_vnni",
                "bmi2",
                "f16c",
                "fma",
                "pni",
                "ssse3",
            ),
        ),
        (OLD, ("avx", "f16c", "pni", "ssse3")),
        (WITH_GPU, ("avx2", "pni")),
        (ARM, ("asimd", "asimddp", "i8mm")),
        ("system_info: n_threads = 2 | CPU : OPENMP = 1 | REPACK = 1 | ", ()),
        ("system_info: n_threads = 2", None),
        ("AVX2 = 1", None),
        ("", None),
    ],
)
def test_instructions_are_read_from_the_line_of_the_system(
    text: str, features: tuple[str, ...] | None
) -> None:
    assert parse_system_info(text) == features
