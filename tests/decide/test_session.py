"""The decision on a whole session."""

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from deploytui.decide.session import decide
from deploytui.profile.schema import Candidate, Gates
from deploytui.record import events as ev
from deploytui.record.events import AnyEvent, decoder, encode
from deploytui.record.facts import ColdStart, Environment, Failure, Gpu, Host
from deploytui.record.fold import fold_all
from deploytui.record.keys import StepKey
from deploytui.record.planned import PlannedStep
from deploytui.record.state import SessionState
from tests.decide.build import CPU, H100, candidate, codes, one, profile, repeat, session
from tests.record.strategies import EVENT_LISTS

AB = ("a", "b")
ABC = ("a", "b", "c")


def fast(name: str, **other: object) -> list[AnyEvent]:
    return candidate(name, repeats=[repeat(tpot_ms=3) for _ in range(3)], **other)  # type: ignore[arg-type]


def broken(name: str, status: str = "load_failed") -> list[AnyEvent]:
    return candidate(name, status=status, run=None, fail=Failure(kind="corrupt", what=f"{name} broke."))


def test_one_that_passes_accepts_the_session_whatever_became_of_the_others() -> None:
    found = decide(profile(*ABC), session(broken("a"), candidate("b", hits=None), candidate("c"), names=ABC))
    assert (found.decision, found.accepted, found.winner) == ("accept", ("c",), "c")
    assert [verdict.decision for verdict in found.verdicts] == ["reject", "tune", "accept"]
    assert found.reasons == ()


def test_the_title_names_the_winner_and_the_hardware() -> None:
    assert decide(profile("a"), session(candidate("a"))).title == "ACCEPT a for this CPU host only"
    gpu = decide(profile("a"), session(candidate("a"), environment=H100))
    assert gpu.title == "ACCEPT a on 1× H100-80G"


def test_without_an_environment_the_hardware_is_unknown() -> None:
    assert decide(profile("a"), session(candidate("a"), environment=None)).title == "ACCEPT a on unknown hardware"


def test_a_cpu_candidate_on_a_gpu_node_is_not_titled_with_the_gpu() -> None:
    found = decide(profile("a"), session(candidate("a", device="cpu"), environment=H100))
    assert found.title == "ACCEPT a on the CPU of a host with 1× H100-80G"
    assert "cpu_only" in [note.code for note in found.verdicts[0].notes]


def test_an_attached_endpoint_is_titled_with_its_declared_hardware() -> None:
    row = Candidate(name="a", engine="openai", base_url="http://x", declared={"hardware": "1x H100-80G"})
    found = decide(profile("a", candidates=(row,)), session(candidate("a")))
    assert found.title == "ACCEPT a on 1x H100-80G (declared)"


def test_eight_gpus_of_one_kind_are_counted() -> None:
    gpus = tuple(Gpu(uuid=f"GPU-{i}", index=i, name="H100-80G") for i in range(8))
    node = Environment(host=Host(hostname="n"), gpus=gpus)
    assert decide(profile("a"), session(candidate("a"), environment=node)).title == "ACCEPT a on 8× H100-80G"


def test_a_simulated_session_says_so_in_front() -> None:
    found = decide(profile("a"), session(candidate("a"), engine="mock"))
    assert found.simulated
    assert found.title.startswith("SIMULATED: ACCEPT a")


def test_the_faster_one_wins_by_default() -> None:
    found = decide(profile(*AB), session(candidate("a"), fast("b"), names=AB))
    assert (found.objective, found.accepted, found.winner) == ("output_tok_s", ("b", "a"), "b")
    assert (found.recommended, found.tie) == ("b", ())


def test_a_difference_inside_the_margin_is_a_tie_and_the_baseline_is_recommended() -> None:
    noisy = [repeat(tpot_ms=pace) for pace in (9, 10, 11.5)]
    state = session(candidate("a"), candidate("b", repeats=noisy), names=AB)
    found = decide(profile(*AB), state)
    assert (found.decision, found.winner, set(found.tie), found.recommended) == ("accept", None, {"a", "b"}, "a")
    assert "tie on output throughput" in found.title


def test_in_a_tie_without_the_baseline_less_memory_is_recommended() -> None:
    state = session(broken("a"), candidate("b", host_gib=3.0), candidate("c", host_gib=2.0), names=ABC)
    assert decide(profile(*ABC), state).recommended == "c"


def test_in_a_tie_at_equal_memory_the_shorter_cold_start_is_recommended() -> None:
    quick = ColdStart(launch_s=0.1, load_s=0.1, first_token_s=0.1)
    state = session(broken("a"), candidate("b"), candidate("c", start=quick), names=ABC)
    assert decide(profile(*ABC), state).recommended == "c"


@pytest.mark.parametrize(
    ("objective", "winner"), [("ttft_ms.p95", "a"), ("tpot_ms.p50", "b"), ("peak_host_gib", "a"), ("request_s", "b")]
)
def test_the_objective_orders_in_its_own_direction(objective: str, winner: str) -> None:
    slow_start = [repeat(ttft_ms=150, tpot_ms=3) for _ in range(3)]
    state = session(candidate("a", host_gib=1.0), candidate("b", repeats=slow_start, host_gib=2.0), names=AB)
    found = decide(profile(*AB, objective=objective), state)
    assert (found.objective, found.winner) == (objective, winner)


def test_cost_can_order() -> None:
    rows = tuple(Candidate(name=name, engine="llamacpp", price_per_hour=price) for name, price in (("a", 9), ("b", 1)))
    found = decide(
        profile(candidates=rows, objective="cost_per_mtok"), session(candidate("a"), candidate("b"), names=AB)
    )
    assert found.winner == "b"


def test_at_the_edge_memory_orders() -> None:
    state = session(candidate("a", host_gib=3.0), fast("b", host_gib=4.0), names=AB)
    found = decide(profile(*AB, form="edge"), state)
    assert (found.objective, found.winner) == ("peak_host_gib", "a")
    gpu = session(candidate("a", gpu_gib=3.0), candidate("b", gpu_gib=2.0), names=AB, environment=H100)
    found = decide(profile(*AB, form="edge"), gpu)
    assert (found.objective, found.winner) == ("peak_gpu_gib", "b")


def test_an_objective_that_nobody_measured_names_no_winner() -> None:
    found = decide(profile(*AB, objective="peak_gpu_gib"), session(candidate("a"), candidate("b"), names=AB))
    assert (found.decision, found.winner, found.recommended) == ("accept", None, "a")


def test_if_nothing_passes_but_something_tunes_the_session_tunes() -> None:
    found = decide(profile(*AB), session(candidate("a", hits=None), candidate("b", hits=1), names=AB))
    assert found.decision == "tune"
    assert [reason.code for reason in found.reasons] == ["quality_not_measured", "quality_below_min"]
    assert found.reasons[0].text.startswith("a: ")
    assert found.title == "TUNE: nothing can be accepted yet for this CPU host only"


def test_if_all_miss_a_gate_the_session_rejects_with_each_cause() -> None:
    found = decide(profile(*AB), session(candidate("a", hits=1), broken("b"), names=AB))
    assert (found.decision, found.accepted, found.winner) == ("reject", (), None)
    assert [reason.code for reason in found.reasons] == ["quality_below_min", "load_failed"]


def test_if_nothing_can_be_compared_the_session_says_so_with_each_cause_below() -> None:
    found = decide(profile(*AB), session(broken("a"), broken("b", "unsupported"), names=AB))
    assert found.decision == "reject"
    assert [reason.code for reason in found.reasons] == ["no_comparable_candidate", "load_failed", "unsupported"]
    assert "a broke." in found.reasons[1].text


def test_a_candidate_that_did_other_work_is_out_of_the_ranking() -> None:
    short = candidate("b", repeats=[repeat(tokens=5) for _ in range(3)])
    found = decide(profile(*AB), session(candidate("a"), short, names=AB))
    assert found.accepted == ("a",)
    assert not found.verdicts[1].comparable
    alone = decide(profile("b"), session(short, names=("b",)))
    assert [reason.code for reason in alone.reasons] == ["no_comparable_candidate", "workload_mismatch"]


def test_while_it_runs_the_title_says_so_far_and_lists_what_is_not_covered() -> None:
    running: list[AnyEvent] = [
        ev.StatusSet(at_ns=1, candidate="b", status="load_success"),
        ev.PhaseStarted(at_ns=2, candidate="b", phase="measuring"),
    ]
    found = decide(profile(*ABC), session(candidate("a"), running, names=ABC), final=False)
    assert (found.decision, found.final, found.not_covered) == ("accept", False, ("b", "c"))
    assert found.title == "ACCEPT a for this CPU host only, so far"
    assert [verdict.candidate for verdict in found.verdicts] == ["a"]


def test_before_anything_is_measured_nothing_is_rejected() -> None:
    found = decide(profile(*AB), session(names=AB), final=False)
    assert (found.decision, found.verdicts, found.not_covered) == ("tune", (), AB)
    assert [reason.code for reason in found.reasons] == ["missing_measurements"] * 2


def test_an_empty_session_does_not_stop_the_decision() -> None:
    found = decide(profile(*AB), SessionState())
    assert (found.decision, found.not_covered, found.fallback) == ("tune", AB, "none measured")


def test_an_interrupted_candidate_is_not_covered_and_keeps_the_session_open() -> None:
    cut = candidate("b", repeats=[repeat()], run="interrupted", done=False)
    rejected = decide(profile(*AB), session(candidate("a", hits=1), cut, names=AB))
    assert (rejected.decision, rejected.not_covered) == ("tune", ("b",))
    accepted = decide(profile(*AB), session(candidate("a"), cut, names=AB))
    assert (accepted.decision, accepted.not_covered) == ("accept", ("b",))


def test_a_skipped_candidate_is_not_covered_and_nobody_is_told_to_give_up() -> None:
    skipped: list[AnyEvent] = [ev.StatusSet(at_ns=1, candidate="b", status="cancelled")]
    found = decide(profile(*AB), session(candidate("a", hits=1), skipped, names=AB))
    assert (found.decision, found.not_covered) == ("tune", ("b",))
    assert [reason.code for reason in found.reasons] == ["quality_below_min", "missing_measurements"]
    assert decide(profile(*AB), session(candidate("a"), skipped, names=AB)).decision == "accept"


def test_candidates_left_out_of_the_plan_are_not_covered() -> None:
    found = decide(profile(*ABC), session(candidate("a"), names=("a",)))
    assert (found.decision, found.not_covered) == ("accept", ("b", "c"))


def test_while_it_runs_a_candidate_waits_for_all_its_steps() -> None:
    state = session(candidate("a", done=False))
    planned = PlannedStep(key=StepKey("a", repeat=9), requests=1)
    assert decide(profile("a"), replace(state, steps=(planned,)), final=False).verdicts == ()
    assert decide(profile("a"), state, final=False).verdicts[0].decision == "accept"
    assert decide(profile("a"), replace(state, steps=(planned,)), final=True).verdicts[0].decision == "accept"


def test_the_fallback_is_the_baseline_where_it_has_a_result() -> None:
    missed = decide(profile(*AB), session(candidate("a", hits=1), candidate("b"), names=AB))
    assert missed.fallback == "a"
    lost = decide(profile(*AB), session(broken("a"), candidate("b"), names=AB))
    assert lost.fallback == "none measured"
    unnamed = decide(profile(*AB, baseline=None), session(candidate("a"), names=AB))
    assert unnamed.fallback == "none measured"


def test_a_profile_without_gates_accepts_nothing() -> None:
    found = decide(profile("a", gates=Gates()), session(candidate("a")))
    assert (found.decision, codes(found)) == ("tune", ["nothing_asked"])


def test_the_same_session_always_gives_the_same_decision() -> None:
    state = session(candidate("a"), fast("b"), broken("c"), names=ABC)
    assert decide(profile(*ABC), state) == decide(profile(*ABC), state)


@pytest.mark.parametrize("environment", [CPU, H100, None])
def test_a_decision_can_be_written_to_the_journal_and_read_back(environment: Environment | None) -> None:
    state = session(candidate("a"), fast("b"), broken("c"), names=ABC, environment=environment)
    decision = decide(profile(*ABC), state)
    event = ev.Decided(at_ns=1, decision=decision)
    assert decoder.decode(encode(event)) == event
    assert msgspec.json.decode(msgspec.json.encode(decision))["decision"] == "accept"


@settings(deadline=None)
@given(EVENT_LISTS)
def test_no_sequence_of_events_stops_the_decision(events: list[AnyEvent]) -> None:
    state = fold_all(events, session(candidate("a"), names=AB))
    for final in (True, False):
        found = decide(profile(*AB), state, final)
        assert found.decision in ("accept", "tune", "reject")
        assert found.title


def test_two_factors_at_once_are_a_note_never_a_reason() -> None:
    state = session(candidate("a"), candidate("b"), names=AB, factors=("engine", "runtime"))
    found = decide(profile(*AB), state)
    assert found.verdicts[1].decision == "accept"
    assert "engine, runtime" in found.verdicts[1].notes[-1].text


def test_a_single_candidate_verdict_is_what_the_session_says() -> None:
    assert one().decision == decide(profile("a"), session(candidate("a"))).decision
