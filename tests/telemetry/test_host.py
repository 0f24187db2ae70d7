import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui import __version__
from deploytui.session.identity import boot_id
from deploytui.telemetry.host import cpu_quota, memory_limit, read_host
from deploytui.telemetry.tree import sum_resident, tree, tree_rss

KEEPS = "import sys; kept = b'x' * (64 << 20); print('up', flush=True); sys.stdin.read()"
PARENT = (
    "import subprocess, sys\n"
    f"child = subprocess.Popen([sys.executable, '-c', {KEEPS!r}], stdin=subprocess.PIPE)\n"
    "sys.stdin.read(); child.communicate()\n"
)


def test_the_host_is_described() -> None:
    host = read_host()
    assert host.hostname
    assert host.boot_id == boot_id()
    assert host.cores is not None
    assert 1 <= host.cores <= (os.cpu_count() or 1)
    assert host.memory_bytes is not None
    assert host.memory_bytes > 64 << 20
    assert host.tool_version == __version__
    assert host.python.startswith("CPython 3.")


@pytest.mark.skipif(sys.platform != "linux", reason="control groups")
def test_limits_of_a_control_group_are_told(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert memory_limit(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n", encoding="utf-8")
    (tmp_path / "memory.max").write_text("8589934592\n", encoding="utf-8")
    assert cpu_quota(tmp_path) == 1.5
    assert memory_limit(tmp_path) == 8 << 30
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="utf-8")
    (tmp_path / "memory.max").write_text("max\n", encoding="utf-8")
    assert cpu_quota(tmp_path) is None
    assert memory_limit(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="control groups")
def test_limits_of_an_older_control_group_are_told(tmp_path: Path) -> None:
    for name in ("cpu", "memory"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("200000\n", encoding="utf-8")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n", encoding="utf-8")
    (tmp_path / "memory/memory.limit_in_bytes").write_text("9223372036854771712\n", encoding="utf-8")
    assert cpu_quota(tmp_path) == 2.0
    assert memory_limit(tmp_path) is None
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1\n", encoding="utf-8")
    assert cpu_quota(tmp_path) is None


def test_the_memory_of_a_tree_holds_its_grandchildren() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == "up\n"
            whole, own = tree_rss(parent.pid), sum_resident([parent.pid])
            assert whole is not None
            assert own is not None
            assert whole - own > 64 << 20
        finally:
            parent.communicate()
    assert tree_rss(parent.pid) is None


def test_what_is_gone_has_no_memory_rather_than_none_used() -> None:
    assert sum_resident([]) is None
    assert sum_resident([2**22 + 5]) is None
    assert sum_resident([os.getpid(), 2**22 + 5]) is not None
    assert tree(5, {}) == ()


def test_a_tree_is_the_root_and_all_below() -> None:
    assert set(tree(2, {1: 0, 2: 1, 3: 2, 4: 3, 5: 1})) == {2, 3, 4}
