from __future__ import annotations

from pathlib import Path

import pytest

from llamasweep.run.memory_kills import oom_kill_count

VMSTAT = "nr_free_pages 100\noom_kill 3\nnr_dirty 7\n"
EVENTS = "low 0\nhigh 0\nmax 9\noom 5\noom_kill 2\noom_group_kill 0\n"


def tree(
    root: Path, *, vmstat: str | None = None, cgroup: str | None = None, events: str | None = None
) -> Path:
    """A /proc and a /sys whose own control group is user.slice/a."""
    for name, text in (
        ("proc/vmstat", vmstat),
        ("proc/self/cgroup", cgroup),
        ("sys/fs/cgroup/user.slice/a/memory.events", events),
    ):
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def test_kills_of_the_machine_and_of_our_group_both_make_the_count_grow(tmp_path: Path) -> None:
    root = tree(tmp_path, vmstat=VMSTAT, cgroup="0::/user.slice/a\n", events=EVENTS)
    before = oom_kill_count(root)
    assert before is not None
    tree(tmp_path, events=EVENTS.replace("oom_kill 2", "oom_kill 3"))
    assert oom_kill_count(root) == before + 1
    tree(tmp_path, vmstat=VMSTAT.replace("oom_kill 3", "oom_kill 4"))
    assert oom_kill_count(root) == before + 2


def test_one_of_the_two_is_enough(tmp_path: Path) -> None:
    assert oom_kill_count(tree(tmp_path / "a", vmstat=VMSTAT)) == 3
    grouped = tree(tmp_path / "b", cgroup="0::/user.slice/a\n", events=EVENTS)
    assert oom_kill_count(grouped) == 2


def test_the_group_of_the_unified_hierarchy_counts_wherever_its_line_stands(tmp_path: Path) -> None:
    lines = "12:pids:/other\n3:memory:/other\n0::/user.slice/a\n"
    assert oom_kill_count(tree(tmp_path, cgroup=lines, events=EVENTS)) == 2


def test_in_a_container_the_group_is_the_root(tmp_path: Path) -> None:
    tree(tmp_path, cgroup="0::/\n")
    events = tmp_path / "sys/fs/cgroup/memory.events"
    events.parent.mkdir(parents=True)
    events.write_text(EVENTS)
    assert oom_kill_count(tmp_path) == 2


@pytest.mark.parametrize("cgroup", ["", "1:name=systemd:/x\n", None])
def test_without_a_unified_group_the_root_of_the_tree_is_asked(
    tmp_path: Path, cgroup: str | None
) -> None:
    tree(tmp_path, cgroup=cgroup)
    events = tmp_path / "sys/fs/cgroup/memory.events"
    events.parent.mkdir(parents=True)
    events.write_text(EVENTS)
    assert oom_kill_count(tmp_path) == 2


def test_where_nothing_tells_the_count_is_unknown_and_not_zero(tmp_path: Path) -> None:
    assert oom_kill_count(tmp_path) is None
    assert oom_kill_count(tree(tmp_path, vmstat="nr_free_pages 1\n")) is None


@pytest.mark.parametrize("text", ["oom_kill many\n", "oom_kill\n", "oom_kill 1 2\n"])
def test_a_line_that_holds_no_number_is_unknown(tmp_path: Path, text: str) -> None:
    assert oom_kill_count(tree(tmp_path, vmstat=text)) is None


def test_bytes_that_are_no_text_are_unknown(tmp_path: Path) -> None:
    tree(tmp_path, vmstat="")
    (tmp_path / "proc/vmstat").write_bytes(b"\xff\xfe")
    assert oom_kill_count(tmp_path) is None
