"""Gates: what holds, what misses, what is too near to tell."""

import pytest
from msgspec.structs import replace

from deploytui.decide.gates import asked_gates, judged
from deploytui.decide.subject import subject
from deploytui.profile.schema import Candidate, Gates, Limits
from deploytui.record.facts import ColdStart
from deploytui.record.verdict import Reason
from tests.decide.build import CPU, GATES, H100, candidate, codes, one, profile, repeat, session


def line(gates: Gates, **other: object) -> Reason:
    """What the only gate says."""
    asked = profile("a", gates=gates)
    events = candidate("a", gates=gates, **other)  # type: ignore[arg-type]
    (gate,) = asked_gates(gates)
    return judged(subject(asked, session(events), "a"), gate)


def spread(*bases: float) -> list[object]:
    return [repeat(ttft_ms=base) for base in bases]


def test_a_gate_that_held_is_told_with_its_figures() -> None:
    found = line(Gates(max_ttft_ms=Limits(p95=500)))
    assert found.passed
    assert (found.metric, found.n, found.limit) == ("ttft_ms.p95", 60, 500)
    assert found.value == pytest.approx(118.05)
    assert found.margin == pytest.approx(500 - 118.05)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 118.05 <= found.high
    assert "≤ 500 ms" in found.text
    assert found.next == ""


def test_a_miss_tells_the_excess_and_what_to_change() -> None:
    found = line(Gates(max_ttft_ms=Limits(p95=50)))
    assert (found.code, found.passed) == ("ttft_over_max", False)
    assert found.margin == pytest.approx(50 - 118.05)
    assert "> 50 ms" in found.text
    assert found.next


def test_a_limit_is_inclusive() -> None:
    assert line(Gates(max_peak_host_gib=2.0), host_gib=2.0).passed
    assert line(Gates(min_quality=0.95), hits=19).passed


def test_each_statistic_of_a_latency_is_a_gate_of_its_own() -> None:
    gates = Gates(max_ttft_ms=Limits(mean=1, p50=2, p90=3, max=4), max_e2e_ms=Limits(p99=5))
    assert [gate.metric for gate in asked_gates(gates)] == [
        "ttft_ms.mean",
        "ttft_ms.p50",
        "ttft_ms.p90",
        "ttft_ms.max",
        "e2e_ms.p99",
    ]


def test_an_empty_table_of_limits_asks_nothing() -> None:
    assert asked_gates(Gates(max_ttft_ms=Limits())) == ()
    assert asked_gates(Gates(confirm={"min_quality": "point"})) == ()


def test_repeats_that_disagree_make_a_near_limit_noisy() -> None:
    found = line(GATES_TTFT, repeats=spread(450, 480, 510))
    assert found.code == "noisy"
    assert found.low is not None
    assert found.high is not None
    assert found.low < 500 < found.high
    assert "repeats would settle it" in found.next


GATES_TTFT = Gates(max_ttft_ms=Limits(p95=500))


def test_the_same_limit_is_decided_where_the_profile_asks_for_the_point() -> None:
    gates = replace(GATES_TTFT, confirm={"max_ttft_ms": "point"})
    found = line(gates, repeats=spread(450, 480, 510))
    assert found.code == "ttft_over_max"
    assert found.low is not None


def test_a_wide_sample_is_noisy_by_its_own_interval() -> None:
    """Repeats agree exactly, but 60 requests leave the 95th percentile wide."""
    found = line(GATES_TTFT, repeats=[repeat(ttft_ms=30, step_ms=25) for _ in range(3)])
    assert found.code == "noisy"
    assert "requests would settle it (now 60)" in found.next


def test_quality_is_decided_on_the_observed_score_with_its_interval_shown() -> None:
    found = line(Gates(min_quality=0.8), hits=17)
    assert found.passed
    assert found.low is not None
    assert found.low < 0.8 < (found.high or 0)


def test_quality_may_be_asked_to_hold_with_its_whole_interval() -> None:
    found = line(Gates(min_quality=0.8, confirm={"min_quality": "interval"}), hits=17)
    assert found.code == "noisy"
    assert "quality items would settle it" in found.next


def test_throughput_rests_on_the_spread_between_repeats() -> None:
    found = line(Gates(min_output_tok_s=1.0))
    assert found.passed
    assert found.n == 3
    near = line(Gates(min_output_tok_s=found.value), repeats=spread(90, 100, 130))
    assert near.code == "noisy"


def test_a_value_exactly_at_its_limit_says_that_measuring_more_hardly_helps() -> None:
    value = line(Gates(min_output_tok_s=1.0), repeats=spread(90, 100, 130)).value
    assert "move the limit" in line(Gates(min_output_tok_s=value), repeats=spread(90, 100, 130)).next


def test_a_percentile_without_its_samples_names_the_number_needed() -> None:
    found = line(Gates(max_ttft_ms=Limits(p99=500)))
    assert (found.code, found.n) == ("insufficient_samples", 60)
    assert "100" in found.text
    assert found.value is None


def test_unknown_token_counts_leave_tpot_and_throughput_unjudged() -> None:
    rows = [repeat(tokens=None) for _ in range(3)]
    for gates in (Gates(max_tpot_ms=Limits(p95=50)), Gates(min_output_tok_s=1.0)):
        assert line(gates, repeats=rows).code == "missing_measurements"


def test_gpu_memory_is_never_passed_on_a_node_without_gpu() -> None:
    found = one(gates=Gates(min_quality=0.1, max_peak_gpu_gib=80.0), environment=CPU)
    assert found.decision == "tune"
    assert codes(found) == ["missing_measurements"]
    assert "gate_unavailable" in [note.code for note in found.notes]


def test_gpu_memory_that_was_not_read_on_a_gpu_node_is_missing() -> None:
    found = one(gates=Gates(min_quality=0.1, max_peak_gpu_gib=80.0), environment=H100)
    assert codes(found) == ["missing_measurements"]
    assert "gate_unavailable" not in [note.code for note in found.notes]


def test_gpu_memory_is_judged_where_it_was_read() -> None:
    gates = Gates(min_quality=0.1, max_peak_gpu_gib=80.0)
    assert one(gates=gates, environment=H100, gpu_gib=70.0).decision == "accept"
    assert codes(one(gates=gates, environment=H100, gpu_gib=81.0)) == ["memory_over_max"]


def test_a_host_figure_never_stands_for_a_gpu_one() -> None:
    found = one(gates=Gates(min_quality=0.1, max_peak_gpu_gib=80.0), environment=H100, host_gib=1.0)
    assert found.decision == "tune"


def test_a_cold_start_with_an_unknown_part_is_missing() -> None:
    found = line(Gates(max_cold_start_s=100), start=ColdStart(launch_s=1.0, load_s=1.0))
    assert found.code == "missing_measurements"


def test_nothing_to_prepare_holds_any_limit_on_preparation() -> None:
    found = line(Gates(max_prepare_s=1.0))
    assert (found.passed, found.value) == (True, 0.0)


def test_an_attached_endpoint_was_not_seen_starting() -> None:
    gates = Gates(min_quality=0.1, max_prepare_s=1.0)
    rows = (Candidate(name="a", engine="openai", base_url="http://127.0.0.1:1"),)
    assert codes(one(gates=gates, asked=profile("a", gates=gates, candidates=rows))) == ["missing_measurements"]


def test_cost_is_price_over_output_tokens() -> None:
    gates = Gates(max_cost_per_mtok=1e9)
    rows = (Candidate(name="a", engine="llamacpp", price_per_hour=3.6),)
    asked = profile("a", gates=gates, candidates=rows)
    made = subject(asked, session(candidate("a", repeats=spread(90, 100, 130))), "a")  # type: ignore[arg-type]
    found = judged(made, asked_gates(gates)[0])
    assert made.metrics is not None
    assert made.metrics.output_tok_s is not None
    assert found.value == pytest.approx(3.6 / 3600 * 1e6 / made.metrics.output_tok_s)
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.value or 0) < found.high


def test_cost_without_a_price_is_missing_and_says_which_key() -> None:
    found = line(Gates(max_cost_per_mtok=1.0))
    assert found.code == "missing_measurements"
    assert "price_per_hour" in found.text


def test_goodput_without_a_latency_gate_can_not_be_judged() -> None:
    found = line(Gates(min_goodput=1.0))
    assert found.code == "missing_measurements"
    assert "max_ttft_ms" in found.text


def test_the_baseline_drops_by_nothing() -> None:
    gates = Gates(max_quality_drop=0.02)
    found = judged(subject(profile("a", gates=gates), session(candidate("a")), "a"), asked_gates(gates)[0])
    assert (found.passed, found.value) == (True, 0.0)


@pytest.mark.parametrize(("hits", "passed"), [(19, True), (18, False), (20, True)])
def test_a_drop_is_measured_against_the_baseline(hits: int, passed: bool) -> None:
    gates = replace(GATES, max_quality_drop=0.04)
    state = session(candidate("a", hits=19), candidate("b", hits=hits), names=("a", "b"))
    made = subject(profile("a", "b", gates=gates), state, "b")
    drop = next(gate for gate in asked_gates(gates) if gate.metric == "quality_drop")
    found = judged(made, drop)
    assert found.passed == passed
    assert found.value == pytest.approx((19 - hits) / 20)
