"""While an engine starts: its newest log line and its phase for the screen, and whether it stands still."""

import re
import time
from pathlib import Path

from deploytui.record.events import Progress
from deploytui.record.facts import Failure
from deploytui.run.bench import Bench
from deploytui.run.context import Context
from deploytui.run.failing import LOGS, CandidateFailed, last_line
from deploytui.run.recorder import now_ns
from deploytui.run.stall import Activity, Stall
from deploytui.telemetry.tree import cpu_seconds, parents, sum_resident, tree

NOTE_S = 1.0
"""Between two looks at an engine that loads [s]."""
STALL_S = 300.0
"""How long nothing at all may happen while an engine starts [s]; compiling or loading for long is no standstill."""
LINE_LENGTH = 200

PHASES = (
    ("capture", re.compile(r"captur.*graph|graph.*captur|capturing batches", re.IGNORECASE)),
    ("compile", re.compile(r"torch\.compile|\bcompil|dynamo|inductor|autotun|building .*engine", re.IGNORECASE)),
    ("download", re.compile(r"\bdownload|\bfetching \d+ files|\bpull(ing|ed)? ", re.IGNORECASE)),
    (
        "load",
        re.compile(r"\bload(ing|ed)?\b.*\b(weights?|shards?|model|tensors?|safetensors)|load_tensors", re.IGNORECASE),
    ),
    ("warm-up", re.compile(r"\bwarm(ing)?[ -]?up|profil", re.IGNORECASE)),
    ("kv cache", re.compile(r"\bkv[ _-]?cache|memory pool", re.IGNORECASE)),
)
"""The phases of a start, by words that engines log; the first that is found in a line is its phase."""


_HEAD = re.compile(
    r"^(?:\([\w:. -]*\bpid=\d+\)\s*)?"  # (EngineCore pid=18838)
    r"(?:\[?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\]?:?\s+)?"
    r"(?:\[(?:\d{4}-)?\d\d-\d\d[ T]\d\d:[^\]]*\]\s*|(?:\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\S+\s+(?:-\s+)?)?"
    r"(?:\d+\.\d\d\.\d{3}\.\d{3} [DIWE] )?"  # 0.00.014.482 I
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?"
    r"(?:\[[\w./-]+\.py:\d+\]\s*)?"  # [core.py:133]
)


def phase_of(line: str) -> str | None:
    """The phase of a start that a log line tells of; None when it tells of none."""
    return next((name for name, words in PHASES if words.search(line)), None)


def without_head(line: str) -> str:
    """A log line without who wrote it, when, and how serious it is: a narrow screen has room for what it says."""
    said = _HEAD.sub("", line)
    return " ".join(said.split()) or line


class StartWatch:
    """Called again and again while an engine loads; looks once a second."""

    def __init__(self, ctx: Context, bench: Bench, stall_s: float = STALL_S) -> None:
        self._ctx, self._bench = ctx, bench
        self._stall = Stall(stall_s)
        self._looked_s = float("-inf")
        self._said = ""
        self._phase: str | None = None

    def __call__(self) -> None:
        """Say what is new; CandidateFailed when the start stands still."""
        now_s = time.monotonic()
        if now_s - self._looked_s < NOTE_S:
            return
        self._looked_s = now_s
        line = last_line(self._bench.folder)[:LINE_LENGTH]
        self._say(line)
        if self._bench.kept is not None and self._stall.stands_still(now_s, self._activity()):
            raise CandidateFailed(stalled(self._bench.engine.title, self._stall.limit_s, line))

    def _say(self, line: str) -> None:
        self._phase, said = phase_of(line) or self._phase, without_head(line)
        text = f"{self._phase} · {said}" if self._phase else said
        if line and text != self._said:
            self._said = text
            self._ctx.recorder.say(Progress(at_ns=now_ns(), candidate=self._bench.candidate.name, done=0, text=text))

    def _activity(self) -> Activity:
        root = self._bench.root_pid
        members = tree(root, parents()) if root is not None else ()
        return Activity(
            log_bytes=log_bytes(self._bench.folder),
            cpu_s=cpu_seconds(members),
            resident_bytes=sum_resident(members),
            gpu_percent=self._gpu_percent(),
        )

    def _gpu_percent(self) -> float | None:
        node = self._ctx.recorder.state.node
        used = [
            device.utilisation.max
            for device in (node.devices if node else ())
            if device.uuid in self._bench.gpu_uuids and device.utilisation is not None
        ]
        return max(used, default=None)


def log_bytes(folder: Path) -> int:
    """How much the engine has logged [bytes]."""
    return sum(path.stat().st_size for name in LOGS if (path := folder / name).is_file())


def stalled(title: str, seconds: float, line: str) -> Failure:
    """The failure of a start in which nothing happens any more."""
    return Failure(
        kind="timeout",
        what=f"{title} stands still: for {seconds:g} s no line in its log and no work on CPU or GPU.",
        why=line,
        fix="Its last line says what it waits for: often other processes of it, a lock, or the network.",
    )
