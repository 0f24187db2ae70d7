"""What the gates say of one load, and what a session about capacity ends in."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.decide.capacity import answer_at, bounds, decide_capacity, noted
from deploytui.decide.exit import exit_status
from deploytui.decide.subject import Subject, subject
from deploytui.profile.schema import Gates, Limits, Profile
from deploytui.record import events as ev
from deploytui.record.capacity import Capacity, TriedPoint
from deploytui.record.facts import Failure
from deploytui.record.measured import ToolError
from deploytui.record.planned import PlannedPoint
from deploytui.record.state import SessionState
from tests.decide.build import candidate, codes, profile, repeat, session

LIMITS = Gates(max_ttft_ms=Limits(p50=200), min_success_rate=0.9)


def at(*, gates: Gates = LIMITS, state: SessionState | None = None, **other: Any) -> Subject:
    return subject(profile("a", gates=gates), state or session(candidate("a", gates=gates, **other)), "a")


def steady(ttft_ms: float, times: int = 3) -> list[Any]:
    """Repeats that all say the same."""
    return [repeat(ttft_ms=ttft_ms, step_ms=0.01) for _ in range(times)]


def found(value: float | None, first_bad: float | None, **other: Any) -> Capacity:
    tried = tuple(
        TriedPoint(asked=asked, repeats=3, held=asked == value) for asked in (value, first_bad) if asked is not None
    )
    return Capacity(by="concurrency", value=value, first_bad=first_bad, tried=tried, **other)


def searched(name: str, capacity: Capacity, **other: Any) -> list[ev.AnyEvent]:
    """A candidate whose search is over."""
    events = candidate(name, gates=LIMITS, hits=None, **other)
    return [*events[:-1], ev.CapacityFound(at_ns=8, candidate=name, point=0, capacity=capacity), events[-1]]


def decided(*candidates: list[ev.AnyEvent], gates: Gates = LIMITS, final: bool = True) -> Any:
    names = ("a", "b")[: len(candidates)]
    asked: Profile = profile(*names, gates=gates)
    return decide_capacity(asked, session(*candidates, names=names), final)


def test_a_load_within_the_gates_is_told_so() -> None:
    told = answer_at(at(repeats=steady(100)))
    assert (told.held, told.settled, told.hopeless, told.gate) == (True, True, False, "")


def test_a_load_beyond_them_names_the_gate_that_is_furthest_off() -> None:
    told = answer_at(at(repeats=steady(230)))
    assert (told.held, told.settled, told.hopeless) == (False, True, False)
    assert told.gate == "ttft_ms.p50"
    assert "230 > 200 ms" in told.why


def test_a_limit_inside_the_interval_is_not_settled() -> None:
    told = answer_at(at(repeats=[repeat(ttft_ms=wait, step_ms=0) for wait in (150, 250, 190)]))
    assert told.held
    assert not told.settled
    assert not told.hopeless


@pytest.mark.parametrize(
    "beyond",
    [
        {"repeats": steady(450, 1)},
        {"repeats": [repeat(failed=30)]},
        {"repeats": [repeat(requests=0, failed=30)]},
        {"repeats": []},
    ],
)
def test_what_is_far_beyond_the_gates_needs_no_second_repeat(beyond: dict[str, Any]) -> None:
    told = answer_at(at(**beyond))
    assert told.hopeless
    assert not told.held
    assert told.gate


def test_a_median_beyond_the_limit_of_the_p95_is_hopeless_too() -> None:
    gates = Gates(max_ttft_ms=Limits(p95=200))
    assert answer_at(at(gates=gates, repeats=steady(230))).hopeless
    assert not answer_at(at(gates=gates, repeats=[repeat(ttft_ms=100, step_ms=6)] * 3)).hopeless


def test_too_few_samples_ask_for_more() -> None:
    gates = Gates(max_ttft_ms=Limits(p99=300))
    told = answer_at(at(gates=gates, repeats=steady(100, 1)))
    assert (told.held, told.settled, told.hopeless) == (False, False, False)


def test_a_metric_that_can_not_be_had_here_ends_it_at_once() -> None:
    gates = Gates(max_tpot_ms=Limits(p50=50))
    told = answer_at(at(gates=gates, repeats=[repeat(tokens=None)]))
    assert told.hopeless
    assert told.gate == "tpot_ms.p50"


def test_the_search_goes_by_what_load_breaks() -> None:
    gates = Gates(min_quality=0.8, min_output_tok_s=10, max_tpot_ms=Limits(p95=50), max_peak_gpu_gib=70)
    assert [one.metric for one in bounds(gates)] == ["tpot_ms.p95"]
    assert bounds(Gates(min_quality=0.8)) == ()


def test_all_have_a_capacity() -> None:
    decision = decided(searched("a", found(24, 25)), searched("b", found(8, 12)))
    assert decision.decision == "accept"
    assert decision.title.startswith("CAPACITY a 24, b 8 to 11: concurrent requests within the gates")
    assert (decision.accepted, decision.winner) == (("a", "b"), "a")
    assert exit_status(decision) == 0
    assert [line.metric for line in decision.verdicts[0].held] == ["success_rate", "ttft_ms.p50"]


def test_intervals_that_overlap_are_a_tie() -> None:
    decision = decided(searched("a", found(24, 28)), searched("b", found(20, 26)))
    assert (decision.winner, decision.tie) == (None, ("a", "b"))


def test_none_meets_the_gates_at_the_lowest() -> None:
    decision = decided(searched("a", found(None, 1), repeats=steady(900)))
    assert decision.decision == "reject"
    assert codes(decision.verdicts[0]) == ["ttft_over_max"]
    assert exit_status(decision) == 4


def test_one_of_two_without_a_capacity_is_neither() -> None:
    decision = decided(searched("a", found(24, 25)), searched("b", found(None, 1), repeats=steady(900)))
    assert decision.decision == "tune"
    assert decision.accepted == ("a",)
    assert exit_status(decision) == 3


def test_an_engine_that_died_under_its_load_is_rejected_whatever_it_bore_before() -> None:
    fail = Failure(kind="oom", what="a ran out of memory.", why="", fix="")
    decision = decided(searched("a", found(24, 48, complete=False), run="run_failed", fail=fail, oom=True))
    assert codes(decision.verdicts[0]) == ["oom"]


def test_a_search_without_a_single_load_decides_nothing() -> None:
    nothing = Capacity(by="rate", value=None, first_bad=None, complete=False)
    decision = decided(searched("a", nothing))
    assert (decision.decision, codes(decision.verdicts[0])) == ("tune", ["missing_measurements"])
    assert decision.title.startswith("CAPACITY a none: requests per second")


def test_what_is_still_to_come_is_not_judged() -> None:
    decision = decided(searched("a", found(24, 25)), [], final=False)
    assert (decision.decision, decision.not_covered) == ("tune", ("b",))
    assert decision.title.endswith("so far")


def test_a_floor_is_looked_at_where_the_capacity_lies() -> None:
    gates = replace(LIMITS, min_output_tok_s=1e6)
    decision = decided(searched("a", found(24, 25)), gates=gates)
    assert codes(decision.verdicts[0]) == ["throughput_below_min"]
    assert decision.decision == "reject"


def test_a_load_generator_at_its_limit_is_noted() -> None:
    tool = ToolError(client_bound=True)
    points: Iterable[PlannedPoint] = (PlannedPoint(point=0, by="concurrency", asked=64.0),)
    state = replace(session(candidate("a", gates=LIMITS, tool=tool)), points=tuple(points))
    assert noted(at(state=state), found(64, None)).notes == (
        "At 64 the load generator itself was at its limit: client_bound.",
    )


@pytest.mark.parametrize(
    ("capacity", "span"),
    [
        (Capacity(by="concurrency", value=24, first_bad=25), "24"),
        (Capacity(by="concurrency", value=24, first_bad=27), "24 to 26"),
        (Capacity(by="concurrency", value=1024, first_bad=None), "at least 1024"),
        (Capacity(by="rate", value=2.5, first_bad=2.625), "2.5/s to 2.625/s"),
        (Capacity(by="rate", value=None, first_bad=1), "none"),
    ],
)
def test_an_interval_is_told_in_words(capacity: Capacity, span: str) -> None:
    assert capacity.span == span
