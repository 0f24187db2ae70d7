"""GPU memory through a session: above what was there before, the worst device, and given back at the end.

The driver library is ours, its state a file that the test moves; the binding, the telemetry process, the runner and the
engine process are the real ones.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deploytui.record.engine_events import EngineRead, Freed
from deploytui.record.events import PhaseStarted, StatusSet
from deploytui.record.facts import EngineFacts
from tests.run.sessions import Done, begin, deploytui, ended, events, wait_for, write_profile

GIB = 1 << 30
BEFORE, LOADED, PEAK = 2, 10, 12


@pytest.fixture
def use_gib(nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets what is in use on the second of two GPUs [GiB]; the engine is on that one alone."""
    state = tmp_path / "nvml-state"
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")

    def use(gib: float) -> None:
        new = state.with_suffix(".new")
        rows = [
            (-1, "count", 2),
            (0, "total", 80 * GIB),
            (1, "total", 80 * GIB),
            (0, "used", 70 * GIB),
            (1, "used", int(gib * GIB)),
        ]
        new.write_text("".join(f"{gpu} {key} {value}\n" for gpu, key, value in rows), encoding="utf-8")
        new.replace(state)

    use(BEFORE)
    return use


def _has(state: Path, kind: type, **fields: object) -> Callable[[], bool]:
    return lambda: any(
        isinstance(event, kind) and all(getattr(event, key) == value for key, value in fields.items())
        for event in events(state)
    )


def _session(tmp_path: Path, use: Callable[[float], None], after: float) -> Done:
    """A session during which the memory is moved: loaded, at its peak, and `after` the engine's end."""
    state = tmp_path / "state"
    profile = write_profile(tmp_path, {"one": ["--ready-after-s", "2", "--ttft-ms", "100", "--itl-ms", "20"]})
    process = begin(state, "run", profile, "--json", "-")
    wait_for(_has(state, PhaseStarted, phase="loading"), "loading")
    use(LOADED)
    wait_for(_has(state, PhaseStarted, phase="measuring"), "measuring")
    use(PEAK)
    wait_for(_has(state, PhaseStarted, phase="quality"), "quality")
    use(LOADED)
    wait_for(_has(state, PhaseStarted, phase="stopping"), "stopping")
    use(after)
    return ended(process)


def test_memory_is_counted_above_what_was_there_before(tmp_path: Path, use_gib: Callable[[float], None]) -> None:
    done = _session(tmp_path, use_gib, after=BEFORE)
    metrics = done.row("one")["metrics"]
    assert metrics["load_gpu_gib"] == pytest.approx(LOADED - BEFORE)
    assert metrics["peak_gpu_gib"] == pytest.approx(PEAK - BEFORE)
    assert "peak_gpu_gib" not in done.row("one")["missing"]
    (freed,) = (event for event in events(tmp_path / "state") if isinstance(event, Freed))
    assert freed.gpu_left_bytes == 0
    assert _has(tmp_path / "state", StatusSet, status="load_success")()


def test_memory_that_does_not_come_back_is_said(tmp_path: Path, use_gib: Callable[[float], None]) -> None:
    done = _session(tmp_path, use_gib, after=BEFORE + 5)
    assert "5.00 GiB of its GPU's memory did not come back" in done.err


def _placed(tmp_path: Path, use: Callable[..., None], keys: str, rows: str) -> tuple[Done, EngineFacts]:
    """A short session with further keys of its candidate and rows of the driver's state."""
    state = tmp_path / "nvml-state"
    use(BEFORE)
    state.write_text(state.read_text(encoding="utf-8") + rows, encoding="utf-8")
    profile = write_profile(tmp_path, {"one": ["--itl-ms", "5"]})
    profile.write_text(profile.read_text(encoding="utf-8") + keys, encoding="utf-8")
    done = deploytui(tmp_path / "state", "run", profile, "--json", "-")
    engine = [event.engine for event in events(tmp_path / "state") if isinstance(event, EngineRead)][-1]
    return done, engine


def test_a_foreign_process_on_the_gpu_is_named_and_on_the_record(
    tmp_path: Path, use_gib: Callable[[float], None]
) -> None:
    with subprocess.Popen(("sleep", "100")) as neighbour:
        done, engine = _placed(tmp_path, use_gib, "", f"1 pid0 {neighbour.pid}\n1 pid_memory0 {2 * GIB}\n")
        # Whoever else is there, it is not ours to end.
        assert neighbour.poll() is None
        neighbour.kill()
    (told,) = engine.foreign_gpu_processes
    assert f"process {neighbour.pid} (sleep, 2.00 GiB)" in told
    assert done.err.count(f": one: {told}") == 1


def test_the_engine_gets_gpus_by_uuid_in_the_drivers_order(
    tmp_path: Path, use_gib: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    _, engine = _placed(tmp_path, use_gib, "devices = 2\n", "")
    assert [uuid[:12] for uuid in engine.gpu_uuids] == ["GPU-00000001", "GPU-00000000"]


def test_more_gpus_than_there_are_is_said_before_anything_is_launched(
    tmp_path: Path, use_gib: Callable[[float], None]
) -> None:
    profile = write_profile(tmp_path, {"one": []})
    profile.write_text(profile.read_text(encoding="utf-8") + "devices = 2\n", encoding="utf-8")
    row = deploytui(tmp_path / "state", "run", profile, "--json", "-").row("one")
    assert (row["status"], row["failure"]["kind"]) == ("unsupported", "wrong_device")
    assert "needs 2 GPUs, and this process may use 1" in row["failure"]["what"]
    phases = [event.phase for event in events(tmp_path / "state") if isinstance(event, PhaseStarted)]
    assert phases == ["checking", "done"]
