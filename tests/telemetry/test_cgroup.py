"""Whom the kernel killed for want of memory, from files as it writes them."""

from pathlib import Path

from deploytui.telemetry.cgroup import oom_kills

EVENTS = "low 0\nhigh 0\nmax 12\noom 3\noom_kill {count}\noom_group_kill 0\n"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_our_group_of_version_2_is_read(tmp_path: Path) -> None:
    ours = written(tmp_path / "cgroup", "0::/slurm/job_1/step_0\n")
    written(tmp_path / "sys" / "slurm" / "job_1" / "step_0" / "memory.events", EVENTS.format(count=2))
    assert oom_kills(ours, tmp_path / "sys") == 2


def test_a_limit_above_our_group_counts_too(tmp_path: Path) -> None:
    ours = written(tmp_path / "cgroup", "0::/slurm/job_1/step_0\n")
    written(tmp_path / "sys" / "slurm" / "job_1" / "step_0" / "memory.events", EVENTS.format(count=0))
    written(tmp_path / "sys" / "slurm" / "job_1" / "memory.events", EVENTS.format(count=1))
    assert oom_kills(ours, tmp_path / "sys") == 1


def test_in_a_container_the_topmost_group_is_ours(tmp_path: Path) -> None:
    ours = written(tmp_path / "cgroup", "0::/../elsewhere\n")
    written(tmp_path / "sys" / "memory.events", EVENTS.format(count=4))
    assert oom_kills(ours, tmp_path / "sys") == 4


def test_version_1_counts_in_its_own_file(tmp_path: Path) -> None:
    ours = written(tmp_path / "cgroup", "5:cpu,cpuacct:/a\n4:memory:/job\n")
    control = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"
    written(tmp_path / "sys" / "memory" / "job" / "memory.oom_control", control)
    assert oom_kills(ours, tmp_path / "sys") == 7


def test_where_nothing_tells_the_count_is_unknown_and_not_0(tmp_path: Path) -> None:
    assert oom_kills(tmp_path / "cgroup", tmp_path) is None
    assert oom_kills(written(tmp_path / "cgroup", "0::/\n"), tmp_path) is None
    written(tmp_path / "memory.events", "oom_kill many\n")
    assert oom_kills(tmp_path / "cgroup", tmp_path) is None
