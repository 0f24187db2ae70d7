"""A sweep is decided on at one of its points, and everything that decides is looked at there."""

from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.decide.session import decide
from deploytui.profile.load_schema import Closed
from deploytui.profile.schema import Gates, Limits, Profile
from deploytui.record import events as ev
from deploytui.record.verdict import Decision
from tests.decide.build import candidate, codes, profile, prompts, repeat, session

SWEEP = (1, 2, 8)


def sweep(decide_at: int = 2, *, warmup: int = 8, gates: Gates | None = None) -> Profile:
    asked = profile("a", "b", **({"gates": gates} if gates else {}))
    workload = replace(asked.workload, load=Closed(concurrency=SWEEP), decide_at=decide_at, warmup_requests=warmup)
    return replace(asked, workload=workload)


def measured(name: str, *ttfts: float, **other: Any) -> list[ev.AnyEvent]:
    """A candidate measured at the points of the sweep, each with its TTFT [ms]."""
    parts = [
        candidate(name, point=point, repeats=[repeat(ttft_ms=ttft)] * 3, **other) for point, ttft in enumerate(ttfts)
    ]
    first, *rest = parts
    return [*first, *(event for part in rest for event in part if isinstance(event, ev.RepeatDone | ev.Measured))]


def decided(asked: Profile, *events: list[ev.AnyEvent], before: tuple[ev.AnyEvent, ...] = ()) -> Decision:
    return decide(asked, session(*events, names=("a", "b")[: len(events)], before=before))


@pytest.mark.parametrize(("decide_at", "word"), [(1, "accept"), (2, "accept"), (8, "reject")])
def test_the_gates_decide_at_their_point(decide_at: int, word: str) -> None:
    asked = replace(sweep(decide_at), candidates=sweep().candidates[:1])
    found = decided(asked, measured("a", 100, 150, 900))
    assert found.decision == word
    assert f"at concurrency {decide_at}" in found.title


def test_the_proof_of_a_gate_is_a_file_of_its_point() -> None:
    found = decided(sweep(8), measured("a", 100, 150, 160)).verdicts[0]
    assert ".p2." in next(line.proof or "" for line in found.held if line.metric == "ttft_ms.p95")


def test_a_point_that_is_not_there_is_missing_whatever_was_measured_elsewhere() -> None:
    found = decided(sweep(8), measured("a", 100, 150)).verdicts[0]
    assert "missing_measurements" in codes(found)
    assert found.decision == "tune"


def test_repeats_of_other_points_do_not_make_up_for_few() -> None:
    few = [
        *measured("a", 100, 150),
        *(
            event
            for event in candidate("a", point=2, repeats=[repeat()] * 2)
            if isinstance(event, ev.RepeatDone | ev.Measured)
        ),
    ]
    found = decided(sweep(8), few).verdicts[0]
    assert codes(found) == ["smoke"]
    assert "2 of at least 3 repeats" in found.reasons[0].text


def test_the_warm_up_is_held_against_the_load_that_is_decided_on() -> None:
    assert codes(decided(sweep(8, warmup=2), measured("a", 100, 150, 160)).verdicts[0]) == ["smoke"]
    assert codes(decided(sweep(2, warmup=2), measured("a", 100, 150, 160)).verdicts[0]) == []


def test_too_few_samples_at_the_point_are_not_made_up_for_either() -> None:
    gates = Gates(min_quality=0.8, max_ttft_ms=Limits(p99=500))
    found = decided(sweep(2, gates=gates), measured("a", 100, 150, 160)).verdicts[0]
    assert "insufficient_samples" in codes(found)


def test_prompts_are_compared_with_those_of_the_same_point() -> None:
    same = decided(sweep(8), measured("a", 100, 150, 160), measured("b", 100, 150, 160), before=(prompts(),))
    assert all(verdict.comparable for verdict in same.verdicts)
    longer = [
        replace(event, metrics=replace(event.metrics, prompt_tokens=replace(event.metrics.prompt_tokens, median=400.0)))
        if isinstance(event, ev.Measured) and event.point == 2
        else event
        for event in measured("b", 100, 150, 160)
    ]
    other = decided(sweep(8), measured("a", 100, 150, 160), longer, before=(prompts(),))
    assert [verdict.comparable for verdict in other.verdicts] == [True, False]
    elsewhere = decided(sweep(2), measured("a", 100, 150, 160), longer, before=(prompts(),))
    assert all(verdict.comparable for verdict in elsewhere.verdicts)
