"""What engines do after what they have to bear, seen in whole sessions; measured results stay."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from deploytui.engine.mock import Mock
from deploytui.record.engine_events import RecoveryDone
from deploytui.record.events import AnyEvent
from deploytui.record.facts import RecoveryCheck
from deploytui.record.trace import RequestRecord
from deploytui.run import recovery
from deploytui.run.bench import Bench
from deploytui.run.recovery import check_recovery
from tests.host.mocks import mock
from tests.run.contexts import context
from tests.run.sessions import assert_nothing_left, deploytui, events, only_session, write_profile

PACED = ("--itl-ms", "5", "--slots", "4", "--context", "400")


REAL = """
schema = 1
[workload]
prompt_tokens = 64
output_tokens = 8
requests = 2
load = { kind = "closed", concurrency = 2 }
warmup_requests = 1
repeats = 1
[checks]
recovery = true
checksum = "off"
[[candidates]]
name = "real"
engine = "llamacpp"
model = "builtin:smollm2-135m-instruct-q4_1"
device = "cpu"
settings = { threads = 1, max_num_seqs = 2, max_model_len = 512 }
"""


def recovered(folder: Path, *args: str) -> tuple[dict[str, RecoveryCheck], dict[str, Any]]:
    """The checks by their names, and the candidate's row in the result."""
    path = write_profile(folder, {"bears": [*PACED, *args]}, requests=4)
    path.write_text(path.read_text("utf-8").replace("[gates]", "[checks]\nrecovery = true\n[gates]"), "utf-8")
    done = deploytui(folder / "state", "run", path, "--json", "-")
    told = [event for event in events(folder / "state") if isinstance(event, RecoveryDone)]
    assert_nothing_left(only_session(folder / "state").name)
    assert len(told) == 1, done.err
    return {check.name: check for check in told[0].checks}, done.row("bears")


def test_an_engine_that_bears_all_serves_again_and_its_cache_is_idle(tmp_path: Path) -> None:
    checks, row = recovered(tmp_path)
    assert list(checks) == ["over_long_prompt", "client_abort", "burst"]
    assert all(check.answers and check.seconds is not None for check in checks.values())
    assert checks["over_long_prompt"].status == 400
    assert "tokens, the context 400" in checks["over_long_prompt"].note
    assert checks["client_abort"].kv_idle is True
    assert checks["client_abort"].kv_idle_s is not None
    assert checks["client_abort"].note.startswith("2 streams cut; none running")
    assert checks["burst"].note == "8 of 8 answered, 0 refused as too many"
    assert row["run"] == "ok"


def test_refused_requests_of_a_burst_are_fine(tmp_path: Path) -> None:
    checks, row = recovered(tmp_path, "--queue", "1")
    assert checks["burst"].answers
    assert "refused as too many" in checks["burst"].note
    assert row["run"] == "ok"


def test_an_engine_that_goes_on_counting_clients_that_left_is_found_out(tmp_path: Path) -> None:
    checks, row = recovered(tmp_path, "--abort-leak")
    assert checks["client_abort"].kv_idle is False
    assert checks["client_abort"].kv_idle_s is None
    assert "still counts 2 running" in checks["client_abort"].note
    assert checks["client_abort"].answers
    assert row["run"] == "ok"


def test_an_engine_that_dies_of_a_long_prompt_keeps_what_was_measured(tmp_path: Path) -> None:
    checks, row = recovered(tmp_path, "--crash-over-context")
    assert list(checks) == ["over_long_prompt"]
    assert checks["over_long_prompt"].answers is False
    assert "ended with status 1 while serving" in checks["over_long_prompt"].note
    assert (row["status"], row["run"]) == ("load_success", "ok")
    assert row["metrics"]["success_rate"]["value"] == 1.0


def test_nothing_is_checked_unless_it_was_asked(tmp_path: Path) -> None:
    deploytui(tmp_path / "state", "run", write_profile(tmp_path, {"plain": PACED}, requests=4))
    assert not any(isinstance(event, RecoveryDone) for event in events(tmp_path / "state"))


def test_a_real_llama_cpp_bears_all(tmp_path: Path) -> None:
    path = tmp_path / "real.toml"
    path.write_text(REAL, "utf-8")
    done = deploytui(tmp_path / "state", "run", path, "--json", "-", timeout_s=240)
    (told,) = (event for event in events(tmp_path / "state") if isinstance(event, RecoveryDone))
    checks = {check.name: check for check in told.checks}
    assert list(checks) == ["over_long_prompt", "client_abort", "burst"], done.err
    assert all(check.answers for check in checks.values())
    assert checks["over_long_prompt"].status == 400
    assert checks["client_abort"].kv_idle is not False
    assert "still counts" not in checks["client_abort"].note
    assert done.row("real")["run"] == "ok"
    assert_nothing_left(only_session(tmp_path / "state").name)


def test_a_disk_that_fills_in_a_check_is_told_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> list[RequestRecord]:
        raise OSError(28, "No space left on device")

    for name in ("ask_over_long", "cut_streams", "burst"):
        monkeypatch.setattr(recovery, name, full)
    said: list[AnyEvent] = []

    async def checked(url: str) -> None:
        ctx = context(tmp_path / "state", tmp_path, said)
        bench = Bench(ctx.profile.candidates[0], Mock(), url, tmp_path, served_model="m")
        await check_recovery(ctx, bench)

    with mock() as engine:
        anyio.run(checked, f"http://127.0.0.1:{engine.port}")
    (told,) = (event for event in said if isinstance(event, RecoveryDone))
    assert [(check.answers, "No space left" in check.note) for check in told.checks] == [(True, True)] * 3
