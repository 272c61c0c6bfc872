"""`llamasweep bisect --git` and `bisect-step` on a small repository whose commits compile to fake engines."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.fakes.checkout import git, missing_tools, write_checkout
from tests.fakes.models import write_model
from tests.integration.running import Desk, engines_alive

from llamasweep.builds.compilation import Steps
from llamasweep.builds.git_checkout import open_checkout
from llamasweep.builds.git_line import git_line
from llamasweep.cache import cache_root
from llamasweep.errors import UsageError

pytestmark = pytest.mark.skipif(
    bool(missing_tools()), reason=f"needs {', '.join(missing_tools())} on PATH"
)

_LONGEST_WAIT_S = 60.0
FAST = {"tg_tps": 4000, "noise": 0.0}
SLOW = {"tg_tps": 3600, "noise": 0.0}
SWEEP = (
    "version: 1\nbandwidth: 10 GB/s\ntelemetry: off\nrepetitions: 1\nwarmup: off\ntests: [tg16]\n"
)


@pytest.fixture
def sweep(desk: Desk, tmp_path: Path) -> Path:
    model = write_model(tmp_path / "m.gguf", {})
    return desk.write_sweep(f"{SWEEP}models: [{{path: {json.dumps(str(model))}}}]\n")


def _state(folder: Path) -> dict[str, str]:
    """Every file of a checkout, that of git itself included, with its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_commit_is_found_past_one_that_does_not_compile_and_the_checkout_is_not_changed(
    desk: Desk, sweep: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "llama.cpp"
    commits = write_checkout(checkout, [FAST, FAST, FAST, None, SLOW, SLOW, SLOW])
    git(checkout, "checkout", "--quiet", commits[1])
    (checkout / "mine.txt").write_text("work in progress")
    before = _state(checkout)
    words = ("bisect", "--plain", "--git", str(checkout), "--good", commits[0], "--bad", "main")

    ended = desk.call(*words, "--json", "--", str(sweep), env={"GIT_DIR": str(tmp_path / "no")})

    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    short = [commit[:12] for commit in commits]
    assert told["suspects"] == short[3:5]
    assert told["titles"] == {short[3]: "change 4", short[4]: "change 5"}
    skipped = next(step for step in told["steps"] if step["outcome"] == "skip")
    assert (skipped["build"], skipped["n_rounds"]) == (short[3], 0)
    assert "this commit does not configure" in skipped["reason"]
    assert "7 commits of" in ended.stderr
    assert "are compiled when they are asked for" in ended.stderr
    assert _state(checkout) == before
    rows = desk.rows()
    assert {r.build_commit for r in rows if r.build_label == short[0]} == {commits[0]}
    assert set(Counter((r.build_label, r.round_index) for r in rows).values()) == {1}

    again = desk.call(*words, "--", str(sweep))

    assert again.code == 0
    assert f"  {short[4]}  change 5" in again.stdout
    assert "measurements in all, 0 now" in again.stdout
    assert "compiling" not in again.stderr

    other = desk.call(*words, "--", str(sweep), env={"CXXFLAGS": "-O1"})  # the fakes do not care

    assert other.code == 0, other.stderr
    assert f"compiling {short[0]}" in other.stderr
    assert "measurements in all, 0 now" in other.stdout


def test_ctrl_c_while_a_commit_is_compiled_ends_the_compiler_and_the_same_command_goes_on(
    desk: Desk, sweep: Path, tmp_path: Path
) -> None:
    checkout, hang = tmp_path / "llama.cpp", tmp_path / "hang"
    hang.touch()
    commits = write_checkout(checkout, [FAST, SLOW], hang=hang)
    words = ("bisect", "--plain", "--git", str(checkout), "--good", commits[0], "--bad", "main")
    process = desk.start(*words, "--", str(sweep))
    began = tmp_path / "hang.began"
    end_s = time.monotonic() + _LONGEST_WAIT_S
    while not began.exists() and time.monotonic() < end_s:
        time.sleep(0.01)

    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=_LONGEST_WAIT_S)

    assert process.returncode == 130, stderr
    assert not engines_alive([str(cache_root() / "git")])
    hang.unlink()
    ended = desk.call(*words, "--max-time", "1ms", "--", str(sweep))
    assert ended.code == 4, ended.stderr
    assert "Time is up; the same command continues" in ended.stdout
    assert f"compiling {commits[1][:12]}" in ended.stderr


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("main", "main~1", "is not before the bad one"),
        ("main", "main", "it is the same"),
        ("nothing", "main", "names no commit"),
        ("--upload-pack=x", "main", "is no commit"),
    ],
)
def test_ends_that_are_no_commits_in_order_are_refused(
    desk: Desk, sweep: Path, tmp_path: Path, good: str, bad: str, words: str
) -> None:
    checkout = tmp_path / "llama.cpp"
    write_checkout(checkout, [FAST, SLOW])

    ended = desk.call(
        "bisect", "--git", str(checkout), f"--good={good}", f"--bad={bad}", "--", str(sweep)
    )

    assert ended.code == 2, ended.stderr
    assert words in ended.stderr


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no git checkout"):
        open_checkout(tmp_path, cache_root())
    with pytest.raises(UsageError, match="is no folder"):
        open_checkout(tmp_path / "missing", cache_root())


def test_commits_of_a_bare_repository_are_compiled_as_those_of_a_checkout(tmp_path: Path) -> None:
    commits = write_checkout(tmp_path / "llama.cpp", [FAST, SLOW])
    bare = tmp_path / "llama.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "llama.cpp"), str(bare))
    before = _state(bare)

    line = git_line(bare, commits[0], "main", backend="cpu", on_progress=lambda _: None)

    assert line.what == f"2 commits of {bare}"
    build = line.build(line.name_of("main"))
    assert (build.number, build.commit) == (2, commits[1])
    assert _state(bare) == before
    with pytest.raises(UsageError, match="is no git checkout") as inside:
        open_checkout(tmp_path / "llama.cpp" / ".git", cache_root())
    assert "the folder that holds .git" in (inside.value.hint or "")


def test_a_shallow_checkout_is_called_so_and_works_as_far_as_it_goes(tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "shallow"
    commits = write_checkout(whole, [FAST, FAST, FAST, SLOW])
    git(tmp_path, "clone", "--quiet", "--depth", "2", f"file://{whole}", str(folder))
    checkout = open_checkout(folder, cache_root())

    assert checkout.between(commits[2], commits[3]) == commits[2:]
    with pytest.raises(UsageError, match="it is shallow") as missing:
        checkout.commit(commits[0])
    assert missing.value.hint is not None
    assert f"git -C {folder} fetch --unshallow" in missing.value.hint
    steps = Steps(log=tmp_path / "log", on_progress=lambda _: None)
    checkout.take(commits[3], steps)
    git(folder, "fetch", "--quiet", "--unshallow")
    assert checkout.between(checkout.commit("main~3"), commits[3]) == commits
    checkout.take(commits[0], steps)
    assert git(checkout.copy, "rev-parse", "HEAD") == commits[0]


def test_a_gap_in_the_history_of_a_shallow_checkout_is_not_passed_over(tmp_path: Path) -> None:
    """The good commit is there by way of a branch, while the first parents between are cut off."""
    whole, folder = tmp_path / "whole", tmp_path / "shallow"
    commits = write_checkout(whole, [FAST, FAST, FAST])
    git(whole, "checkout", "--quiet", "-b", "side", commits[0])
    git(whole, "commit", "--quiet", "--allow-empty", "--message", "aside")
    git(whole, "checkout", "--quiet", "main")
    git(whole, "merge", "--quiet", "--no-ff", "--message", "merged", "side")
    git(tmp_path, "clone", "--quiet", f"file://{whole}", str(folder))
    (folder / ".git" / "shallow").write_text(f"{commits[2]}\n")
    checkout = open_checkout(folder, cache_root())

    with pytest.raises(UsageError, match=r"are missing in .*; it is shallow"):
        checkout.between(commits[0], checkout.commit("main"))


def test_a_side_branch_is_followed_along_first_parents(tmp_path: Path) -> None:
    folder = tmp_path / "llama.cpp"
    commits = write_checkout(folder, [FAST, FAST])
    git(folder, "checkout", "--quiet", "-b", "side", commits[0])
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "aside")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merged", "side")
    checkout = open_checkout(folder, cache_root())
    merged = checkout.commit("main")

    found = checkout.between(commits[0], merged)

    assert found == [*commits, merged]
    assert checkout.title(merged) == "merged"


def test_git_bisect_run_finds_the_commit_with_steps_of_ours(
    desk: Desk, sweep: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "llama.cpp"
    commits = write_checkout(checkout, [FAST, FAST, FAST, SLOW, SLOW])
    step = desk.command("bisect-step", "--plain", "--good", commits[0], "--bad", commits[-1])
    results = ("--results", str(desk.folder / "results"))
    git(checkout, "bisect", "start", commits[-1], commits[0])

    told = git(checkout, "bisect", "run", *step, *results, "--", str(sweep))

    assert f"{commits[3]} is the first bad commit" in told
    rows = desk.rows()
    assert len(list((desk.folder / "results").iterdir())) == 1
    assert {r.build_label for r in rows} == {c[:12] for c in (*commits[:1], *commits[2:5])}
    assert set(Counter((r.build_label, r.round_index) for r in rows).values()) == {1}
    again = desk.call(*step[3:], *results, "--git", str(checkout), "--", str(sweep))
    assert len(desk.rows()) == len(rows)
    assert again.code == int(git(checkout, "rev-parse", "HEAD") in commits[3:])


def test_a_step_is_skipped_or_stops_the_search_with_the_code_that_git_reads(
    desk: Desk, sweep: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "llama.cpp"
    commits = write_checkout(checkout, [FAST, None, SLOW, {**FAST, "noise": 0.001}])
    git(checkout, "checkout", "--quiet", commits[1])
    ends = ("--good", commits[0], "--bad", commits[3])
    words = ("bisect-step", "--plain", "--git", str(checkout))

    def code(*more: str) -> int:
        return desk.call(*words, *more, "--", str(sweep)).code

    same = desk.call(*words, *ends, "--", str(sweep))
    assert same.code == 255
    assert "not slower than the good one for sure" in same.stderr
    assert code("--good", commits[0], "--bad", commits[2]) == 125
    assert code("--good", "nothing", "--bad", commits[2]) == 255
    assert code(*ends, "--no-such-option") == 255
    assert code(*ends, "--build", "x") == 255
    assert desk.call(*words, *ends, "--", "missing.yaml").code == 255
    assert code("--good", commits[0], "--bad", commits[1]) == 255
