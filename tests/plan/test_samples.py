"""Whether a workload can give what its gates ask for."""

import pytest
from msgspec.structs import replace

from deploytui.plan.samples import most_in_flight, sample_faults, sample_needs
from deploytui.profile.load_schema import Burst, Closed
from deploytui.profile.schema import Gates, Limits, Profile
from tests.plan.cases import profile


def codes(asked: Profile) -> list[str]:
    """The codes of all faults."""
    return [fault.code for fault in sample_faults(asked)]


def test_a_sound_workload_has_no_fault() -> None:
    assert sample_faults(profile(gates=Gates(max_ttft_ms=Limits(p95=500.0, mean=300.0)))) == ()


def test_a_gated_percentile_says_how_many_requests_it_needs() -> None:
    asked = profile(gates=Gates(max_ttft_ms=Limits(p95=500.0, p99=900.0)), requests=20)
    p95, p99 = sample_needs(asked)
    assert (p95.asked_by, p95.samples, p95.needed, p95.enough) == ("gates.max_ttft_ms.p95", 60, 20, True)
    assert (p99.samples, p99.needed, p99.requests_needed, p99.enough) == (60, 100, 34, False)
    (fault,) = sample_faults(asked)
    assert fault.code == "insufficient_samples"
    assert "set workload.requests to at least 34" in fault.text
    enough = replace(asked, workload=replace(asked.workload, requests=34))
    assert sample_faults(enough) == ()


def test_an_objective_that_is_a_percentile_needs_its_samples_too() -> None:
    asked = replace(profile(), objective="e2e_ms.p99")
    assert [need.asked_by for need in sample_needs(asked)] == ["objective"]
    assert codes(asked) == ["insufficient_samples"]
    assert codes(replace(asked, objective="output_tok_s")) == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (profile(repeats=2), "workload.repeats = 2"),
        (profile(warmup_requests=1), "at least the concurrency, 2"),
        (profile(load=Closed(concurrency=(2, 8)), decide_at=2), "at least the concurrency, 8"),
    ],
)
def test_a_smoke_test_is_called_one_before_it_costs_anything(asked: Profile, words: str) -> None:
    (fault,) = sample_faults(asked)
    assert fault.code == "smoke"
    assert words in fault.text


def test_a_load_without_users_asks_for_no_warm_up_of_them() -> None:
    asked = profile(load=Burst(), warmup_requests=0)
    assert most_in_flight(asked) is None
    assert sample_faults(asked) == ()


def test_tpot_of_a_single_token_is_known_to_be_missing() -> None:
    assert codes(profile(gates=Gates(max_tpot_ms=Limits(mean=50.0)), output_tokens=1)) == ["missing_measurements"]
