"""What a load costs this process: processor time and memory."""

import platform
import resource
import time
from pathlib import Path

_STATUS = Path("/proc/self/status")


class Effort:
    """Processor time from its making on."""

    def __init__(self) -> None:
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()

    def cpu_share(self) -> float | None:
        """Share of one core; None when no time went by."""
        wall_s = time.monotonic() - self._wall_s
        return (time.process_time() - self._cpu_s) / wall_s if wall_s > 0 else None


def peak_rss_bytes() -> int | None:
    """The most memory this process ever had resident [bytes]; None where that can't be told.

    Linux counts what its parent had in the usual figure, so there it is read elsewhere.
    """
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if platform.system() == "Darwin" else peak << 10
    peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peaks[0]) << 10 if peaks else None
