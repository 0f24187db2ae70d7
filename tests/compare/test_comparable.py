"""Whether candidates did the same work, under the same definitions, on the same hardware."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.compare.comparable import mismatches
from deploytui.profile.schema import Candidate, Profile, Sampling
from deploytui.record.state import SessionState
from tests.decide.build import candidate, profile, prompts, repeat, session, started

AB = ("a", "b")


def found(state: SessionState, name: str = "a", asked: Profile | None = None) -> list[str | None]:
    return [f"{reason.code}.{reason.metric}" for reason in mismatches(asked or profile(*AB), state, name)]


def lengths(own: int, theirs: int | None = None, **other: Any) -> SessionState:
    rows: Sequence[Any] = [candidate("a", repeats=[repeat(prompt_tokens=own) for _ in range(3)])]
    if theirs is not None:
        rows = [*rows, candidate("b", repeats=[repeat(prompt_tokens=theirs) for _ in range(3)])]
    return session(*rows, names=AB, before=(prompts(**other),))


def test_candidates_that_did_the_same_are_comparable() -> None:
    assert found(lengths(74, 74)) == []
    assert found(lengths(74, 74), "b") == []


def test_the_asked_length_counts_with_and_without_the_template() -> None:
    assert found(lengths(64)) == []
    assert found(lengths(74)) == []
    assert found(lengths(85)) == ["workload_mismatch.prompt_tokens"]
    assert found(lengths(50)) == ["workload_mismatch.prompt_tokens"]


def test_a_length_nobody_asked_for_is_not_checked() -> None:
    assert found(lengths(999, target_tokens=None)) == []
    assert found(lengths(999, overhead_tokens=None)) == []
    assert found(session(candidate("a"), names=AB)) == []


@pytest.mark.parametrize(("target", "got", "same"), [(128, 140, False), (128, 130, True), (1024, 1044, True)])
def test_prompts_may_differ_by_two_percent_or_two_tokens(target: int, got: int, same: bool) -> None:
    state = lengths(got, target_tokens=target, overhead_tokens=0)
    assert (found(state) == []) == same


def test_the_same_model_with_other_prompt_lengths_did_other_work() -> None:
    assert found(lengths(74, 90), "b") == ["workload_mismatch.prompt_tokens"]


def test_another_tokenizer_rightly_counts_otherwise() -> None:
    rows = (Candidate(name="a", engine="x", model="m1"), Candidate(name="b", engine="x", model="m2"))
    assert found(lengths(74, 90), "b", profile(candidates=rows)) == []


def test_short_replies_under_ignore_eos_are_other_work() -> None:
    state = session(candidate("a", repeats=[repeat(tokens=12) for _ in range(3)]))
    (reason,) = mismatches(profile("a"), state, "a")
    assert (reason.code, reason.metric, reason.value, reason.n) == ("workload_mismatch", "short_outputs", 1.0, 60)
    assert "ignore_eos" in reason.text


def test_one_short_reply_in_a_hundred_is_borne() -> None:
    assert found(session(candidate("a", change={"ok": 100, "short_outputs": 1}), names=("a",))) == []
    assert found(session(candidate("a", change={"ok": 100, "short_outputs": 2}), names=("a",))) != []


def test_without_ignore_eos_replies_may_end_where_they_like() -> None:
    asked = profile("a")
    asked = replace(asked, workload=replace(asked.workload, sampling=Sampling(ignore_eos=False)))
    state = session(candidate("a", repeats=[repeat(tokens=12) for _ in range(3)]))
    assert found(state, asked=asked) == []


def test_a_session_that_went_on_under_other_definitions_is_not_comparable() -> None:
    state = session([started(definitions=999), *candidate("a")])
    assert found(state) == ["definition_mismatch.definitions"]


def test_a_session_that_went_on_elsewhere_is_not_comparable() -> None:
    state = session([started(hostname="elsewhere"), *candidate("a")])
    assert found(state) == ["environment_mismatch.hostname"]


def test_a_session_that_was_resumed_after_a_reboot_is_comparable() -> None:
    assert found(session([started(boot_id="other"), *candidate("a")])) == []


def test_a_cpu_run_never_stands_for_a_gpu_one() -> None:
    rows = (Candidate(name="a", engine="x", device="cuda"),)
    asked = profile(candidates=rows)
    assert found(session(candidate("a", device="cpu")), asked=asked) == ["environment_mismatch.device"]
    assert found(session(candidate("a", device="cuda:0")), asked=asked) == []
    assert found(session(candidate("a", device=None)), asked=asked) == []


def test_a_candidate_that_was_not_measured_has_no_mismatch() -> None:
    assert found(session(candidate("a", repeats=[]), names=AB)) == []
