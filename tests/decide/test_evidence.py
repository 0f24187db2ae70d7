"""Evidence: what must be there, and what spoils it."""

from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.decide.session import decide
from deploytui.decide.subject import decided_concurrency, decided_point
from deploytui.profile.load_schema import Burst, Closed, Poisson
from deploytui.profile.schema import Candidate, Gates, Limits, Settings, Workload
from deploytui.record.facts import Failure
from deploytui.record.verdict import Verdict
from tests.decide.build import GATES, candidate, codes, one, profile, prompts, repeat, session
from tests.record.build import failure


def test_a_candidate_that_measured_all_and_holds_all_is_accepted() -> None:
    found = one()
    assert (found.decision, found.reasons) == ("accept", ())
    assert [line.metric for line in found.held] == ["quality", "ttft_ms.p95"]


def test_who_shared_the_gpu_is_named_and_the_numbers_are_not_taken_for_its_own() -> None:
    found = one(foreign=("GPU 0 is in use by train.py (pid 4711, 30.0 GiB)",))
    assert (found.decision, codes(found)) == ("tune", ["foreign_gpu_process"])
    assert "train.py (pid 4711" in found.reasons[0].text


def test_without_a_score_it_tunes_however_fast_it_is() -> None:
    found = one(hits=None)
    assert (found.decision, codes(found)) == ("tune", ["quality_not_measured"])


def test_quality_is_required_even_where_no_gate_asks_for_it() -> None:
    assert codes(one(gates=Gates(max_ttft_ms=Limits(p95=500)), hits=None)) == ["quality_not_measured"]


def test_questions_without_an_answer_are_not_wrong_answers() -> None:
    """12 right, 8 silent of 20: the limit of 0.8 lies between both readings."""
    assert codes(one(hits=12, answered=12)) == ["quality_not_measured"]
    assert codes(one(hits=12, answered=20)) == ["quality_below_min"]
    assert codes(one(hits=5, answered=10)) == ["quality_below_min"]
    assert codes(one(hits=0, answered=0)) == ["quality_not_measured"]


def test_ttft_is_required_even_where_no_gate_asks_for_it() -> None:
    rows = [[replace(record, first_token_ns=None) for record in repeat()] for _ in range(3)]
    found = one(gates=Gates(min_quality=0.5), repeats=rows)
    assert (found.decision, codes(found)) == ("tune", ["missing_measurements"])


def test_nothing_measured_is_said_once_for_ttft() -> None:
    found = one(repeats=[])
    assert codes(found).count("missing_measurements") == 1


def test_when_every_request_fails_the_run_failed() -> None:
    rows = [[failure(number, kind="empty") for number in range(20)] for _ in range(3)]
    found = one(repeats=rows)
    assert (found.decision, codes(found)) == ("reject", ["run_failed"])
    assert "empty ×60" in found.reasons[0].text


def test_out_of_memory_under_load_is_a_reject_not_missing_numbers() -> None:
    fail = Failure(kind="oom", what="a ran out of memory under load.", why="CUDA out of memory", fix="Lower it.")
    found = one(repeats=[repeat()], run="run_failed", oom=True, fail=fail)
    assert (found.decision, codes(found)) == ("reject", ["oom"])
    assert "CUDA out of memory" in found.reasons[0].text
    assert found.reasons[0].next == "Lower it."


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("unsupported", "not_installed", "unsupported"),
        ("load_failed", "crashed", "load_failed"),
        ("load_failed", "oom", "oom"),
        ("load_failed", "checksum_mismatch", "checksum_mismatch"),
        ("invalid_config", "bad_flag", "invalid_config"),
    ],
)
def test_a_candidate_that_did_not_load_rejects_with_its_cause(status: str, kind: Any, code: str) -> None:
    found = one(status=status, run=None, fail=Failure(kind=kind, what="It broke.", why="engine: no", fix="Mend it."))
    assert (found.decision, codes(found)) == ("reject", [code])
    assert found.reasons[0].text == "It broke. engine: no"
    assert found.reasons[0].next == "Mend it."


def test_a_failure_without_words_still_has_a_text_and_a_remedy() -> None:
    found = one(status="load_failed", run=None)
    assert found.reasons[0].text
    assert found.reasons[0].next


def test_two_repeats_are_a_smoke_test() -> None:
    found = one(repeats=[repeat(), repeat()])
    assert (found.decision, codes(found)) == ("tune", ["smoke"])
    assert "2 of at least 3 repeats" in found.reasons[0].text


def test_a_warm_up_below_the_concurrency_is_a_smoke_test() -> None:
    asked = profile("a")
    found = one(asked=replace(asked, workload=replace(asked.workload, warmup_requests=1)))
    assert codes(found) == ["smoke"]
    assert "warm-up" in found.reasons[0].text


def test_a_gated_percentile_without_its_samples_is_a_smoke_test_too() -> None:
    found = one(repeats=[repeat(requests=6) for _ in range(3)])
    assert codes(found) == ["smoke", "insufficient_samples"]


def test_a_clumped_stream_withholds_ttft_and_tpot() -> None:
    gates = replace(GATES, max_ttft_ms=Limits(p95=1), max_tpot_ms=Limits(p95=1))
    found = one(gates=gates, gap_s=0.00001)
    assert codes(found) == ["stream_not_incremental"]
    assert all(not (line.metric or "").startswith(("ttft", "tpot")) for line in found.held)


def test_a_reply_in_one_chunk_is_no_stream() -> None:
    rows = [repeat(chunks=1) for _ in range(3)]
    assert "stream_not_incremental" in codes(one(repeats=rows))


def test_several_tokens_a_chunk_at_an_even_pace_are_a_stream() -> None:
    rows = [repeat(chunks=5) for _ in range(3)]
    assert one(repeats=rows).decision == "accept"


def test_a_quick_short_reply_is_not_taken_for_a_clump() -> None:
    asked = profile("a")
    asked = replace(asked, workload=replace(asked.workload, output_tokens=1))
    rows = [repeat(tokens=1) for _ in range(3)]
    found = decide(asked, session(candidate("a", repeats=rows, change={"short_outputs": 0}))).verdicts[0]
    assert found.decision == "accept"


def cached(tokens: int, *, overhead: int | None = 10, prefix_cache: bool | None = None) -> Verdict:
    rows = (Candidate(name="a", engine="llamacpp", settings=Settings(prefix_cache=prefix_cache)),)
    asked = profile("a", candidates=rows)
    events = candidate("a", repeats=[repeat(cached_tokens=tokens) for _ in range(3)])
    return decide(asked, session(events, before=(prompts(overhead_tokens=overhead),))).verdicts[0]


def test_the_shared_chat_template_is_no_contamination() -> None:
    assert cached(26).decision == "accept"
    assert codes(cached(27)) == ["cache_contaminated"]


def test_a_prefix_cache_that_was_asked_for_is_no_contamination() -> None:
    assert cached(60, prefix_cache=True).decision == "accept"
    assert codes(cached(60, prefix_cache=False)) == ["cache_contaminated"]


def test_an_unknown_template_gets_the_benefit_of_the_doubt() -> None:
    assert cached(60, overhead=None).decision == "accept"
    assert codes(cached(100, overhead=None)) == ["cache_contaminated"]


def test_an_open_engine_gate_tunes() -> None:
    found = one(run="gate_open")
    assert (found.decision, codes(found)) == ("tune", ["gate_open"])


def test_unfit_evidence_decides_before_a_missed_gate_which_is_told_all_the_same() -> None:
    found = one(hits=5, repeats=[repeat(), repeat()])
    assert found.decision == "tune"
    assert codes(found) == ["smoke", "quality_below_min"]


def test_different_work_decides_before_unfit_evidence() -> None:
    found = one(repeats=[repeat(tokens=12)])
    assert (found.decision, found.comparable) == ("reject", False)
    assert codes(found) == ["workload_mismatch", "smoke"]


def workload(load: Any, decide_at: float | None = None) -> Workload:
    return Workload(prompt_tokens=8, load=load, decide_at=decide_at)


def test_the_point_of_a_sweep_is_where_the_profile_decides() -> None:
    sweep = Closed(concurrency=(1, 4, 16))
    assert decided_point(workload(sweep, 4)) == 1
    assert decided_point(workload(sweep, 5)) is None
    assert decided_point(workload(Closed(concurrency=8))) == 0
    assert decided_concurrency(workload(sweep, 16)) == 16
    assert decided_concurrency(workload(Closed(concurrency=8))) == 8
    assert decided_concurrency(workload(Poisson(rate=2.0))) is None
    assert decided_point(workload(Burst())) == 0


def test_only_the_point_that_is_decided_on_counts() -> None:
    asked = profile("a")
    asked = replace(asked, workload=replace(asked.workload, load=Closed(concurrency=(1, 2)), decide_at=2))
    elsewhere = decide(asked, session(candidate("a", point=0))).verdicts[0]
    assert (elsewhere.decision, codes(elsewhere)[0]) == ("tune", "missing_measurements")
    assert decide(asked, session(candidate("a", point=1))).verdicts[0].decision == "accept"
