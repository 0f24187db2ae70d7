"""What engines and what they run in say when a launch fails; texts are ours, in the shape seen in the field."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.engine.cause import BLOCK, find_cause
from deploytui.engine.failures import RULES, explain_exit, explain_log, status_of

CASES = tomllib.loads((Path(__file__).parent.parent / "data" / "launch_failures.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_launch_that_fails_is_understood_with_the_numbers_and_the_key(case: dict[str, Any]) -> None:
    log, words = case["log"].split("\n"), case["words"]
    failure = explain_log(log)
    assert (failure.kind if failure else None) == case.get("kind")
    if failure is not None:
        said = f"{failure.what} {failure.fix}"
        assert [word for word in words if word not in said] == []
        assert any(failure.why.strip("…") in line for line in log)
        assert failure.what.endswith(".")
        assert "{" not in said


def test_a_launch_that_is_not_allowed_is_a_matter_of_the_configuration() -> None:
    assert status_of("not_allowed") == "invalid_config"


def test_an_image_that_has_to_be_pulled_first_is_no_failure() -> None:
    log = [
        "Unable to find image 'org/engine:9' locally",
        "9: Pulling from org/engine",
        "Status: Downloaded newer image",
    ]
    assert explain_log(log) is None


def test_what_the_engine_calls_a_warning_is_not_why_it_ended() -> None:
    log = ["WARNING 11-30 10:00:00 [x.py:1] OSError: [Errno 28] No space left on device", "Traceback:", "Oops"]
    assert explain_log(log) is None


def test_memory_that_ran_out_after_the_capture_is_not_the_captures() -> None:
    log = ["Capturing CUDA graphs", "Graph capturing finished in 5 secs", "torch.OutOfMemoryError: CUDA out of memory."]
    failure = explain_log(log)
    assert failure is not None
    assert "captured" not in failure.what


@given(before=st.integers(0, 3 * BLOCK), behind=st.integers(0, 3 * BLOCK))
@settings(max_examples=30, deadline=None)
def test_the_decisive_line_is_found_wherever_it_stands(before: int, behind: int) -> None:
    log = ["loading shard"] * before + ["OSError: [Errno 98] Address already in use"] + ["Traceback"] * behind
    cause = find_cause(iter(log), RULES)
    assert cause is not None
    assert cause.line == before + 1
    assert cause.failure.kind == "port_in_use"


def test_of_two_lines_of_one_rule_the_earlier_counts() -> None:
    cause = find_cause(["std::bad_alloc 1", "std::bad_alloc 2"], RULES)
    assert cause is not None
    assert (cause.line, cause.failure.why) == (1, "std::bad_alloc 1")


def test_colours_are_no_part_of_a_line() -> None:
    cause = find_cause(["\x1b[31mERROR\x1b[0m unknown model \x1b[1marchitecture: 'x'"], RULES)
    assert cause is not None
    assert cause.failure.why == "ERROR unknown model architecture: 'x'"


def test_a_progress_bar_before_the_line_is_left_out() -> None:
    cause = find_cause(["Loading: 1%\rLoading: 9%\rstd::bad_alloc"], RULES)
    assert cause is not None
    assert cause.failure.why == "std::bad_alloc"


def test_death_without_a_word_is_told_as_the_signal_it_was() -> None:
    failure = explain_exit(-11, None, ["loading model tensors"], doing="loading")
    assert "SIGSEGV" in failure.what
    assert failure.why == "loading model tensors"
