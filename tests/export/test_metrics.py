"""Numbers with their units in their names."""

import pytest

from deploytui.export.metrics import load_metrics
from tests.export.parts import metrics, spread_of


def test_an_open_loop_tells_its_latencies_from_the_scheduled_time() -> None:
    found = load_metrics(metrics(100, ttft_scheduled=spread_of(100, 0.3), e2e_scheduled=spread_of(90, 0.7)))
    assert found["ttft_scheduled_ms"]["p50"] == pytest.approx(300)
    assert (found["e2e_scheduled_ms"]["n"], found["e2e_scheduled_ms"]["p99"]) == (90, None)


def test_a_closed_loop_has_none() -> None:
    for found in (load_metrics(metrics(24)), load_metrics(None)):
        assert found["ttft_scheduled_ms"]["n"] == found["e2e_scheduled_ms"]["n"] == 0
        assert found["ttft_scheduled_ms"]["p50"] is None
