"""The node a session runs on."""

import os
import platform
import re
import sys
from pathlib import Path

import psutil

from deploytui import __version__
from deploytui.record.facts import Host
from deploytui.session.identity import boot_id, hostname
from deploytui.telemetry.tree import tree_rss
from deploytui.units import GIB

__all__ = ["cpu_quota", "memory_free", "memory_limit", "read_host", "tree_rss"]

CGROUP = Path("/sys/fs/cgroup")
MODEL = re.compile(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", re.MULTILINE)


def read_host() -> Host:
    """Facts of this node; cores and memory are what this process may use of them."""
    quota, limit = cpu_quota(), memory_limit()
    total = psutil.virtual_memory().total
    return Host(
        hostname=hostname(),
        boot_id=boot_id(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_model(),
        cores=_cores(quota),
        memory_bytes=total if limit is None else min(total, limit),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        tool_version=__version__,
        container=_container(quota, limit if limit is not None and limit < total else None),
    )


def cpu_quota(root: Path = CGROUP) -> float | None:
    """CPUs' worth of time the control group may use; None without a limit."""
    for folder in _own_groups(root):
        words = _read(folder / "cpu.max").split()
        if len(words) == 2 and words[0] != "max":
            return int(words[0]) / int(words[1])
    quota, period = _read(root / "cpu/cpu.cfs_quota_us"), _read(root / "cpu/cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None


def memory_limit(root: Path = CGROUP) -> int | None:
    """Bytes the control group may use; None without a limit."""
    limits = [_read(folder / "memory.max") for folder in _own_groups(root)]
    limits.append(_read(root / "memory/memory.limit_in_bytes"))
    # Version 1 writes a number near 2**63 for `no limit`.
    known = [int(text) for text in limits if text.isdecimal() and int(text) < 1 << 60]
    return min(known) if known else None


def memory_free(root: Path = CGROUP) -> int:
    """Bytes that can be taken without swapping, within the limits of the control group and those above it."""
    rooms = [_room(folder, "memory.max", "memory.current", "inactive_file") for folder in _own_groups(root)]
    old = root / "memory"
    rooms.append(_room(old, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    return max(0, min([psutil.virtual_memory().available, *(room for room in rooms if room is not None)]))


def _room(folder: Path, limit_file: str, used_file: str, cache_row: str) -> int | None:
    """What a control group may still take [bytes]; pages of files that nobody uses are given back first."""
    limit, used = _read(folder / limit_file), _read(folder / used_file)
    if not (limit.isdecimal() and used.isdecimal()) or int(limit) >= 1 << 60:
        return None
    rows = dict(line.split() for line in _read(folder / "memory.stat").splitlines() if len(line.split()) == 2)
    return int(limit) - int(used) + int(rows.get(cache_row, 0))


def _own_groups(root: Path) -> list[Path]:
    """The folder of this process's control group and of those above it, innermost first (version 2)."""
    line = next((line for line in _read(Path("/proc/self/cgroup")).splitlines() if line.startswith("0::")), "0::/")
    inner = root / line[3:].strip("/")
    return [folder for folder in (inner, *inner.parents) if folder.is_relative_to(root)]


def _cores(quota: float | None) -> int | None:
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return usable if usable is None or quota is None else min(usable, max(1, round(quota)))


def _cpu_model() -> str | None:
    found = MODEL.search(_read(Path("/proc/cpuinfo")))
    return found.group(1).strip() if found else platform.processor() or None


def _container(quota: float | None, limit: int | None) -> str | None:
    """The kind of container with its limits, such as `docker, 2 CPUs, 8.0 GiB`; None outside and without limits."""
    limits = [f"{quota:g} CPUs"] if quota is not None else []
    limits += [f"{limit / GIB:.1f} GiB"] if limit is not None else []
    kind = _container_kind()
    return ", ".join([kind or "control group", *limits]) if kind or limits else None


def _container_kind() -> str | None:
    for name in ("APPTAINER_NAME", "SINGULARITY_NAME"):
        if os.environ.get(name):
            return "apptainer"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if Path("/run/.containerenv").exists():
        return "podman"
    return "docker" if Path("/.dockerenv").exists() else os.environ.get("container") or None  # noqa: SIM112


def _read(path: Path) -> str:
    """The text of a file of the kernel; empty when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
