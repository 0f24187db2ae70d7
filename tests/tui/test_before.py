"""What the Config tab says of the time before a launch and after the load."""

import pytest

from deploytui.record.facts import Fit, MemoryUse, Preparation, RecoveryCheck
from deploytui.record.state import CandidateState
from deploytui.tui.details.before import before_lines
from deploytui.tui.pieces import text_of
from deploytui.units import GIB

ROW = CandidateState(name="a", engine_name="vllm", artifact_label="bf16")


def said(**facts: object) -> list[str]:
    import msgspec

    return [text_of(part) for part in before_lines(msgspec.structs.replace(ROW, **facts))]


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert said() == []


@pytest.mark.parametrize(("on", "measured"), [("gpu", "measured 19.0 GiB"), ("host", "measured 3.0 GiB")])
def test_the_expected_memory_stands_beside_the_measured(on: str, measured: str) -> None:
    fit = Fit(
        verdict="may_not_fit",
        weights_bytes=16 * GIB,
        kv_cache_bytes=2 * GIB,
        needed_bytes=19 * GIB,
        free_bytes=20 * GIB,
        on=on,  # type: ignore[arg-type]
        devices=2,
        why="It rests on config.json.",
    )
    lines = said(fit=fit, memory=MemoryUse(peak_gpu_bytes=19 * GIB, peak_host_bytes=3 * GIB))
    assert "may not fit" in lines[0]
    assert "19.0 GiB of 20.0 GiB free on each of 2" in lines[0]
    assert "weights 16.0 GiB + KV cache 2.0 GiB" in lines[1]
    assert "overhead" not in lines[1]
    assert lines[2].strip() == "It rests on config.json."
    assert measured in lines[3]


def test_an_unknown_fit_shows_no_figure_and_no_measured_value_before_there_is_one() -> None:
    lines = said(fit=Fit(verdict="unknown", why="The files do not tell the model's shape."))
    assert len(lines) == 2
    assert "not known" in lines[0]


def test_a_preparation_says_whether_it_was_reused_and_what_it_took() -> None:
    made = Preparation(name="onnx int4", key="k", reused=True, seconds=12.34, output_bytes=GIB)
    (line,) = said(preparations=(made,))
    assert "onnx int4" in line
    assert "reused · built in 12.3 s · 1.0 GiB" in line


def test_recovery_says_what_it_bore_and_what_it_did_not() -> None:
    checks = (
        RecoveryCheck(name="client_abort", answers=True, seconds=0.5, kv_idle=True),
        RecoveryCheck(name="burst", answers=False, note="it died"),
    )
    first, second = said(recovery=checks)
    assert "✔ clients that hang up: serves again after 0.5 s, KV cache idle again" in first
    assert "✘ a burst above its capacity: does not answer any more  it died" in second
