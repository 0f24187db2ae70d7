"""Why a killed engine is gone: the kernel's own count says more than the signal."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploytui.engine.mock import Mock
from deploytui.run import failing
from deploytui.run.failing import why_it_died
from deploytui.run.keeping import Kept


def died(folder: Path, log: str, before: int | None, **end: Any) -> Any:
    (folder / "engine.log").write_text(log, "utf-8")
    kept = SimpleNamespace(exit_code=None, exit_signal=None, spawn_error="", oom_kills=before)
    kept.__dict__.update(end)
    return why_it_died(Mock(), cast(Kept, kept), folder, "serving")


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing, "oom_kills", lambda: 3)


def test_a_kill_that_the_kernel_counts_is_out_of_memory(tmp_path: Path) -> None:
    failure = died(tmp_path, "loading\n", 2, exit_signal=9)
    assert failure.kind == "oom"
    assert "oom_kill 2 before the launch, 3 now" in failure.why
    assert "loading" in failure.why


def test_a_kill_that_it_does_not_count_is_somebody_elses(tmp_path: Path) -> None:
    for before in (3, None):
        failure = died(tmp_path, "loading\n", before, exit_signal=9)
        assert failure.kind == "crashed"
        assert "SIGKILL" in failure.what


def test_a_root_cause_in_the_log_stays_where_the_engine_ended_itself(tmp_path: Path) -> None:
    assert died(tmp_path, "OSError: [Errno 98] Address already in use\n", 2, exit_code=1).kind == "port_in_use"


def test_an_engine_that_kills_its_own_tree_is_not_out_of_memory_by_its_status_alone(tmp_path: Path) -> None:
    log = "ValueError: Cannot find model module. 'NewForCausalLM' is not a registered model\n"
    assert died(tmp_path, log, 3, exit_code=137).kind == "unsupported_arch"
