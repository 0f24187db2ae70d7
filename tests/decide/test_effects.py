"""One row a code, each code exactly one effect; a real decision drives every code this version can produce."""

from collections import Counter
from collections.abc import Callable
from typing import get_args

import pytest
from msgspec.structs import replace

from deploytui.decide.effects import DECISIONS, EFFECTS, ROWS, Effect, by_precedence, decided, effect_of
from deploytui.decide.gates import GATES as GATE_TABLE
from deploytui.decide.session import decide
from deploytui.decide.verdict import verdict_of
from deploytui.profile.rules import GATE_NAMES
from deploytui.profile.schema import Candidate, Gates, Limits
from deploytui.record.facts import ColdStart, Failure
from deploytui.record.measured import ToolError
from deploytui.record.verdict import Reason, Verdict
from tests.decide.build import GATES, candidate, codes, one, profile, prompts, repeat, session, started

TABLE: dict[Effect, str] = {
    "not_comparable": "workload_mismatch definition_mismatch environment_mismatch",
    "no_result": "invalid_config unsupported load_failed oom run_failed checksum_mismatch",
    "unfit": "missing_measurements insufficient_samples noisy quality_not_measured smoke client_bound "
    "stream_not_incremental cache_contaminated throttled foreign_gpu_process gate_open nothing_asked",
    "gate": "ttft_over_max tpot_over_max e2e_over_max throughput_below_min goodput_below_min quality_below_min "
    "quality_drop format_below_min success_rate_low memory_over_max cold_start_over_max prepare_over_max "
    "cost_over_max artifact_over_max conversion_mismatch",
    "regression": "regression",
    "note": "confounded_change output_diverges not_reproducible gate_unavailable no_baseline cpu_only",
}

LATER = ("throttled", "foreign_gpu_process", "conversion_mismatch", "regression", "output_diverges", "not_reproducible")
"""Codes whose evidence nothing collects yet."""


def gated(gates: Gates, **other: object) -> Verdict:
    """A candidate under one gate besides those that hold."""
    return one(gates=replace(gates, min_quality=0.1), **other)  # type: ignore[arg-type]


def failed(status: str, kind: str) -> Verdict:
    return one(status=status, run=None, fail=Failure(kind=kind, what="it broke"))  # type: ignore[arg-type]


def resumed(**change: object) -> Verdict:
    state = session([started(**change), *candidate("a")])
    return decide(profile("a"), state).verdicts[0]


def second(*, gates: Gates, factors: tuple[str, ...] = (), base_hits: int | None = 20, hits: int = 20) -> Verdict:
    """The verdict on `b` beside the baseline `a`."""
    rows = (candidate("a", gates=gates, hits=base_hits), candidate("b", gates=gates, hits=hits))
    found = decide(profile("a", "b", gates=gates), session(*rows, names=("a", "b"), factors=factors))
    return found.verdicts[1]


def priced() -> Verdict:
    gates = Gates(min_quality=0.1, max_cost_per_mtok=0.01)
    asked = profile("a", gates=gates, candidates=(Candidate(name="a", engine="llamacpp", price_per_hour=3.0),))
    return one(gates=gates, asked=asked)


def contaminated() -> Verdict:
    rows = [repeat(cached_tokens=60) for _ in range(3)]
    return decide(profile("a"), session(candidate("a", repeats=rows), before=(prompts(),))).verdicts[0]


PRODUCED: dict[str, Callable[[], Verdict]] = {
    "workload_mismatch": lambda: one(repeats=[repeat(tokens=12) for _ in range(3)]),
    "definition_mismatch": lambda: resumed(definitions=999),
    "environment_mismatch": lambda: resumed(hostname="elsewhere"),
    "invalid_config": lambda: failed("invalid_config", "invalid_config"),
    "unsupported": lambda: failed("unsupported", "not_installed"),
    "load_failed": lambda: failed("load_failed", "corrupt"),
    "oom": lambda: one(run="run_failed", oom=True, fail=Failure(kind="oom", what="out of memory")),
    "run_failed": lambda: one(run="run_failed", fail=Failure(kind="crashed", what="it died")),
    "checksum_mismatch": lambda: failed("load_failed", "checksum_mismatch"),
    "missing_measurements": lambda: one(repeats=[]),
    "insufficient_samples": lambda: one(repeats=[repeat(requests=6) for _ in range(3)]),
    "noisy": lambda: one(repeats=[repeat(ttft_ms=base) for base in (450, 480, 510)]),
    "quality_not_measured": lambda: one(hits=None),
    "smoke": lambda: one(repeats=[repeat(), repeat()]),
    "client_bound": lambda: one(tool=ToolError(client_bound=True)),
    "stream_not_incremental": lambda: one(gap_s=0.00001),
    "cache_contaminated": contaminated,
    "gate_open": lambda: one(run="gate_open"),
    "nothing_asked": lambda: one(gates=Gates()),
    "ttft_over_max": lambda: gated(Gates(max_ttft_ms=Limits(p95=50))),
    "tpot_over_max": lambda: gated(Gates(max_tpot_ms=Limits(p95=5))),
    "e2e_over_max": lambda: gated(Gates(max_e2e_ms=Limits(mean=10))),
    "throughput_below_min": lambda: gated(Gates(min_output_tok_s=1e6)),
    "goodput_below_min": lambda: gated(Gates(max_ttft_ms=Limits(p95=500), min_goodput=1e6)),
    "quality_below_min": lambda: one(hits=5),
    "quality_drop": lambda: second(gates=Gates(min_quality=0.1, max_quality_drop=0.02), hits=15),
    "format_below_min": lambda: one(gates=Gates(min_format_pass_rate=0.99)),
    "success_rate_low": lambda: gated(Gates(min_success_rate=0.99), repeats=[repeat(failed=1) for _ in range(3)]),
    "memory_over_max": lambda: gated(Gates(max_peak_host_gib=1.0)),
    "cold_start_over_max": lambda: gated(Gates(max_cold_start_s=1.0)),
    "prepare_over_max": lambda: gated(
        Gates(max_prepare_s=1.0), start=ColdStart(prepare_s=60.0, launch_s=1.0, load_s=1.0, first_token_s=1.0)
    ),
    "cost_over_max": priced,
    "artifact_over_max": lambda: gated(Gates(max_artifact_gib=0.5)),
    "confounded_change": lambda: second(gates=GATES, factors=("engine", "artifact")),
    "gate_unavailable": lambda: gated(Gates(max_peak_gpu_gib=10.0)),
    "no_baseline": lambda: second(gates=Gates(min_quality=0.1, max_quality_drop=0.02), base_hits=None),
    "cpu_only": one,
}


def test_the_table_has_one_row_a_code_and_all_of_them() -> None:
    assert Counter(row.code for row in ROWS).most_common(1)[0][1] == 1
    assert {row.code: row.effect for row in ROWS} == {
        code: effect for effect, listed in TABLE.items() for code in listed.split()
    }


def test_every_code_is_either_produced_or_named_as_later() -> None:
    assert set(PRODUCED) | set(LATER) == set(EFFECTS)
    assert not set(PRODUCED) & set(LATER)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_every_row_says_what_it_means_and_what_to_change(row: object) -> None:
    found = EFFECTS[getattr(row, "code", "")]
    assert found.effect in get_args(Effect)
    assert found.meaning.endswith(".")
    assert found.remedy.endswith(".")


@pytest.mark.parametrize("code", sorted(EFFECTS))
def test_a_code_alone_has_exactly_its_effect(code: str) -> None:
    found = verdict_of("a", [Reason(code=code)])
    effect = effect_of(code)
    assert found.decision == dict(DECISIONS).get(effect, "accept")
    assert found.comparable == (effect != "not_comparable")
    assert (codes(found) == [code]) == (effect != "note")
    assert [note.code for note in found.notes] == ([code] if effect == "note" else [])


@pytest.mark.parametrize("code", sorted(PRODUCED))
def test_a_real_session_gives_the_code_and_its_effect(code: str) -> None:
    found = PRODUCED[code]()
    effect = effect_of(code)
    if effect == "note":
        assert code in [note.code for note in found.notes]
        assert all(effect_of(reason.code) != "note" for reason in found.reasons)
        return
    assert code in codes(found)
    assert effect_of(found.reasons[0].code) == effect
    assert found.decision == dict(DECISIONS)[effect]
    reason = next(reason for reason in found.reasons if reason.code == code)
    assert reason.text
    assert reason.next
    assert not reason.passed


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (("quality_below_min", "noisy", "oom", "workload_mismatch"), "reject"),
        (("quality_below_min", "noisy"), "tune"),
        (("quality_below_min",), "reject"),
        (("cpu_only",), "accept"),
        ((), "accept"),
    ],
)
def test_the_first_effect_in_precedence_decides(found: tuple[str, ...], word: str) -> None:
    assert decided(Reason(code=code) for code in found) == word


def test_reasons_are_told_with_the_deciding_one_in_front() -> None:
    found = by_precedence(Reason(code=code) for code in ("quality_below_min", "smoke", "noisy", "workload_mismatch"))
    assert [reason.code for reason in found] == ["workload_mismatch", "smoke", "noisy", "quality_below_min"]


def test_a_code_without_a_row_is_a_bug() -> None:
    with pytest.raises(KeyError):
        effect_of("no_such_code")


def test_every_gate_of_a_profile_has_a_row_in_the_gate_table() -> None:
    assert {gate.key for gate in GATE_TABLE} == set(GATE_NAMES)
    assert all(effect_of(gate.code) == "gate" for gate in GATE_TABLE)
