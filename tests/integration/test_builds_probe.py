"""Programs of every kind are asked what they are: real processes, none of them an engine."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llamasweep.builds.probe import content_hash, probe
from llamasweep.errors import BuildError, EngineNotFoundError

HELP_TEXTS = Path(__file__).parents[1] / "golden" / "help"


def _script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable} -SE\nimport os, sys, time\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_new_build_tells_everything(fake_build: Callable[..., Path]) -> None:
    program = fake_build(build="b11434", number=11434, commit="sdist")
    build = probe(program)
    assert build.label == "b11434"
    assert (build.number, build.commit) == (11434, "sdist")
    assert build.path == str(program)
    assert build.argv_prefix == (str(program),)
    assert len(build.options) == 80
    assert build.knows("-lm")
    assert not build.knows("-mmp")
    assert dict(build.option_help)["-fa"] == "<on|off|auto> (default: auto)"
    assert build.devices == ()
    assert build.backends == ("CPU",)
    assert build.content_hash == hashlib.sha256(program.read_bytes()).hexdigest()[:32]


def test_an_old_build_leaves_null_what_it_cannot_tell(fake_build: Callable[..., Path]) -> None:
    build = probe(fake_build(build="b4748"))
    assert (build.number, build.commit, build.version) == (None, None, None)
    assert build.devices is None
    assert build.backends is None
    assert len(build.options) == 51
    assert build.label == f"llama-bench-{build.content_hash[:8]}"


def test_devices_of_a_gpu_build_are_named(fake_build: Callable[..., Path]) -> None:
    build = probe(fake_build(devices="  CUDA0: a card (24124 MiB, 23000 MiB free)\n"), label="mine")
    assert build.label == "mine"
    assert build.devices == ("CUDA0",)
    assert build.backends == ("CUDA",)


def test_the_unified_program_is_asked_for_its_bench(
    tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    bench = fake_build()
    program = _script(
        tmp_path / "llama",
        "if sys.argv[1:2] != ['bench']:\n"
        "    print('Usage: llama <command> [options]\\n\\nAvailable commands:\\n  serve  HTTP API')\n"
        "    sys.exit(0)\n"
        f"os.execv({str(bench)!r}, [{str(bench)!r}, *sys.argv[2:]])",
    )
    build = probe(program)
    assert build.argv_prefix == (str(program), "bench")
    assert len(build.options) == 80


WITHOUT_AVX2 = "system_info: n_threads = 2 | CPU : SSE3 = 1 | AVX = 1 | F16C = 1 | OPENMP = 1 | "


def test_a_server_beside_tells_what_the_build_was_compiled_for(
    tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program, asked = fake_build(), tmp_path / "asked"
    assert probe(program).cpu_features is None
    _script(
        program.parent / "llama-server",
        f"open({str(asked)!r}, 'a').write(repr(sys.argv[1:]) + '\\n')\n"
        f"if '-lv' not in sys.argv: print({WITHOUT_AVX2!r}, file=sys.stderr)\n"
        "sys.exit('error: failed to load model')",
    )

    assert probe(program).cpu_features == ("avx", "f16c", "pni")

    louder, plain = asked.read_text().splitlines()
    assert "'-lv'" in louder
    assert "'-lv'" not in plain
    assert f"{program}/none.gguf" in plain


@pytest.mark.parametrize(
    "body", ["sys.exit(0)", "print('x' * 5_000_000)", "os.kill(os.getpid(), 9)"]
)
def test_a_server_that_tells_nothing_leaves_the_instructions_unknown(
    fake_build: Callable[..., Path], body: str
) -> None:
    program = fake_build()
    _script(program.parent / "llama-server", body)
    assert probe(program).cpu_features is None


def test_a_folder_stands_for_the_program_in_it(
    tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program = fake_build()
    assert probe(program.parent).path == str(program)
    with pytest.raises(EngineNotFoundError, match="no llama-bench in the folder"):
        probe(tmp_path / "builds")


def test_a_missing_program_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(EngineNotFoundError, match="there is no llama-bench") as caught:
        probe(tmp_path / "nowhere")
    assert caught.value.hint is not None


def test_a_file_that_is_not_executable_says_what_to_do(tmp_path: Path) -> None:
    program = _script(tmp_path / "llama-bench", "")
    program.chmod(0o644)
    with pytest.raises(BuildError, match="not executable") as caught:
        probe(program)
    assert "chmod" in (caught.value.hint or "")


def test_a_program_for_another_machine_is_refused(tmp_path: Path) -> None:
    program = (
        tmp_path / "bench"
    )  # not the engine's name: the guard of these tests blocks binaries called so
    program.write_bytes(b"\x7fELF\x02\x01\x01" + b"\xff" * 100)
    program.chmod(0o755)
    with pytest.raises(BuildError, match="cannot be started"):
        probe(program)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = _script(
        tmp_path / "llama-bench",
        f"child = os.fork()\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\ntime.sleep(600)",
    )
    with pytest.raises(BuildError, match="did not answer `--help` within"):
        probe(program, timeout_s=1.0)
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    assert [pid for pid in started if _is_running(pid)] == []


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    program = _script(tmp_path / "llama-bench", "while True: print('x' * 1000)")
    with pytest.raises(BuildError, match="without end"):
        probe(program)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('hello'); sys.exit(3)", "'hello'; it ended with 3"),
        ("os.write(1, bytes(range(256)))", "ended with 0"),
        ("os.kill(os.getpid(), 11)", "printed nothing; it was ended by signal 11"),
        ("sys.exit('error while loading shared libraries: libllama.so')", "libllama.so"),
    ],
)
def test_garbage_is_quoted_in_the_refusal(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(BuildError, match="is not a llama-bench") as caught:
        probe(_script(tmp_path / "llama-bench", body))
    assert said in caught.value.message
    assert caught.value.message.isprintable()


def test_the_program_gets_a_clean_environment_an_empty_folder_and_no_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_THREADS", "7")
    monkeypatch.setenv("GGML_BACKEND_PATH", "/nowhere")
    seen = tmp_path / "seen"
    program = _script(
        tmp_path / "llama-bench",
        f"open({str(seen)!r}, 'w').write(repr((sorted(os.environ), os.listdir(), sys.stdin.read())))\n"
        f"print(open({str(HELP_TEXTS / 'b4748.txt')!r}).read())",
    )
    probe(program)
    names, files, stdin = eval(seen.read_text())  # noqa: S307  (what the script above wrote)
    assert "LLAMA_ARG_THREADS" not in names
    assert "GGML_BACKEND_PATH" not in names
    assert "GGML_NO_BACKTRACE" in names
    assert (files, stdin) == ([], "")


def test_the_hash_of_a_shared_build_covers_its_libraries(fake_build: Callable[..., Path]) -> None:
    program = fake_build()
    alone = content_hash(program)
    library = program.parent / "libggml-cuda.so"
    library.write_bytes(b"one")
    first = content_hash(program)
    library.write_bytes(b"two")
    assert len({alone, first, content_hash(program)}) == 3
    (program.parent / "README").write_bytes(b"no library")
    library.unlink()
    assert content_hash(program) == alone


def test_a_hostile_name_is_probed_like_any_other(
    tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    folder = tmp_path / "$(touch x) 'a' \"b\" ü\n-rf"
    folder.mkdir()
    program = folder / "-llama bench"
    program.write_text(fake_build().read_text(), encoding="utf-8")
    program.chmod(0o755)
    assert probe(program).path == str(program)
    assert list(tmp_path.glob("x")) == []


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state != "Z"
