"""What is said while an engine starts."""

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from deploytui.engine.adapter import Adapter
from deploytui.profile.schema import Candidate
from deploytui.run import watching
from deploytui.run.bench import Bench
from deploytui.run.failing import CandidateFailed
from deploytui.run.keeping import Kept
from deploytui.run.watching import StartWatch, without_head

LIMIT_S = 20.0


class Served(Adapter):
    """An engine by name."""

    name = title = "served"


def _watch(folder: Path, process: "subprocess.Popen[bytes]", said: list[Any], stall_s: float) -> StartWatch:
    ctx: Any = SimpleNamespace(recorder=SimpleNamespace(say=said.append, state=SimpleNamespace(node=None)))
    bench = Bench(Candidate(name="x", engine="served"), Served(), "http://127.0.0.1:9", folder)
    bench.kept = Kept(SimpleNamespace(pid=process.pid))  # type: ignore[arg-type]
    return StartWatch(ctx, bench, stall_s)


def _looked(folder: Path, argv: tuple[str, ...], stall_s: float, seconds: float) -> tuple[list[Any], str | None]:
    """What was said, and the last words of the failure, if it came within that time."""
    said: list[Any] = []

    async def look(process: "subprocess.Popen[bytes]") -> str | None:
        watch = _watch(folder, process, said, stall_s)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                watch()
                await anyio.sleep(0.02)
        except CandidateFailed as error:
            return f"{error.failure.what} {error.failure.why}"
        return None

    with subprocess.Popen(argv) as process:
        try:
            return said, anyio.run(look, process)
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "NOTE_S", 0.0)


def test_an_engine_that_stands_still_is_told_with_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("INFO init\nINFO waiting for NCCL peers\n")
    said, why = _looked(tmp_path, ("sleep", "3600"), 0.3, LIMIT_S)
    assert why is not None
    assert "served stands still" in why
    assert why.endswith("INFO waiting for NCCL peers")
    assert [event.text for event in said] == ["waiting for NCCL peers"]


def test_an_engine_that_works_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("INFO Capturing CUDA graphs 1/35\n")
    said, why = _looked(tmp_path, ("sh", "-c", "while :; do :; done"), 1.0, 2.5)
    assert why is None
    assert [event.text for event in said] == ["capture · Capturing CUDA graphs 1/35"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("(EngineCore pid=18838) INFO 11-30 20:33:02 [core.py:133] \treserved_cpus=[]", "reserved_cpus=[]"),
        ("0.00.014.482 I srv    load_model: loading model 'm'", "srv load_model: loading model 'm'"),
        ("[2026-11-30 10:00:00 TP0] Load weight begin. avail mem=17.13 GB", "Load weight begin. avail mem=17.13 GB"),
        ("2026-11-30T10:00:00.123456Z  INFO text_generation_launcher: Args {", "text_generation_launcher: Args {"),
        ("INFO:     Started server process [1]", "Started server process [1]"),
        ("Loading checkpoint shards:  50%", "Loading checkpoint shards: 50%"),
        ("INFO ", "INFO "),
        ("", ""),
    ],
)
def test_a_log_line_is_told_without_who_wrote_it_and_when(line: str, said: str) -> None:
    assert without_head(line) == said
