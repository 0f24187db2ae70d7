"""GPU memory through a session: above what was there before, the worst device, and given back at the end.

The driver library is ours, its state a file that the test moves; the binding, the telemetry process, the runner and the
engine process are the real ones.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from deploytui.record.events import Freed, PhaseStarted, StatusSet
from tests.run.sessions import Done, begin, ended, events, wait_for, write_profile

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
