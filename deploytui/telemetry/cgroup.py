"""What the kernel counts for our control group, which is the engine's as well: whom it killed for want of memory."""

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OURS = Path("/proc/self/cgroup")


def oom_kills(ours: Path = OURS, root: Path = ROOT) -> int | None:
    """Processes killed for want of memory so far, in our control group and those above; None where nothing tells.

    A limit may be on any group above ours; in a container ours looks like the topmost.
    """
    try:
        lines = ours.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    counts = [count for line in lines for count in _counts(line, root)]
    return max(counts, default=None)


def _counts(line: str, root: Path) -> list[int]:
    """The counts of one hierarchy's groups: version 2 in `memory.events`, version 1 in `memory.oom_control`."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers and "memory" not in controllers.split(","):
        return []
    base, name = (root / "memory", "memory.oom_control") if controllers else (root, "memory.events")
    group = base / path.lstrip("/")
    places = [place for place in (group, *group.parents) if place == base or base in place.parents]
    return [count for place in places if (count := _count(place / name)) is not None]


def _count(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = [line.split() for line in text.splitlines()]
    return next(
        (int(words[1]) for words in found if len(words) == 2 and words[0] == "oom_kill" and words[1].isdigit()), None
    )
