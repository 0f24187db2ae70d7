"""The plain-text end of a run: everything on it is true, fits the terminal, and is safe to print."""

import pytest

from deploytui.export.table import summary_text, visible
from deploytui.record.fold import fold_all
from deploytui.session.speech import fitting
from tests.export.parts import WITH_MOCK, profile
from tests.export.sessions import started, whole_state


def line_of(text: str, begin: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(begin))


def test_the_table_has_a_row_a_candidate_with_its_figures() -> None:
    text = summary_text(profile(), whole_state())
    row = line_of(text, "fast ")
    for part in (
        "llamacpp 2026.10",
        "ok",
        "100 ms",
        "170 ms",
        "1.43 ms",
        "143",
        "0.33 GiB host",
        "0.81 (n=16)",
        "accept",
    ):
        assert part in row
    assert "unsupported: not_installed" in line_of(text, "absent ")
    assert "load_failed: corrupt" in line_of(text, "broken ")
    assert "cancelled" in line_of(text, "dropped ")


def test_what_was_not_measured_is_a_dash_and_never_0() -> None:
    row = line_of(summary_text(profile(), whole_state()), "absent ")
    assert row.split()[-7:] == ["–"] * 6 + ["reject"]


def test_gpu_memory_is_told_from_the_hosts() -> None:
    assert "2.00 GiB GPU" in line_of(summary_text(profile(), whole_state(gpu=True)), "fast ")


def test_the_decision_stands_below_with_reasons_and_what_to_do() -> None:
    text = summary_text(profile(), whole_state())
    assert "ACCEPT fast for this CPU host only" in text
    assert "not covered: dropped" in text
    assert "✔ TTFT p95 170 ≤ 500 ms" in text
    assert "✘ unsupported: vllm is not installed." in text
    assert "next: Install vllm." in text


def test_a_simulated_candidate_is_stamped_twice() -> None:
    text = summary_text(profile(WITH_MOCK), whole_state(mock=True))
    assert text.startswith("SIMULATED: pretend")
    assert line_of(text, "pretend [SIMULATED]")
    assert "SIMULATED" not in summary_text(profile(), whole_state())


def test_a_session_without_a_decision_says_so() -> None:
    text = summary_text(profile(), fold_all([started()]))
    assert "No decision yet." in text
    assert "queued" in line_of(text, "fast ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", None, "no-such-encoding"])
def test_a_terminal_without_utf_8_gets_plain_signs(encoding: str | None) -> None:
    text = summary_text(profile(), whole_state(), encoding=encoding)
    assert "+ TTFT p95 170 <= 500 ms" in text or encoding == "cp437"
    text.encode("ascii" if encoding in (None, "no-such-encoding") else encoding)


def test_nothing_in_the_text_is_obeyed_by_a_terminal() -> None:
    state = whole_state()
    text = summary_text(profile(), state)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert visible("a\x1b[31m\nb\u202ec") == "a\\x1b[31m\\nb\\u202ec"


def test_a_text_that_fits_is_left_alone() -> None:
    assert fitting("✔ ok", "utf-8") == "✔ ok"
    assert fitting("✔ 漢", "ascii") == "+ \\u6f22"


def test_columns_stand_under_each_other_also_for_wide_characters() -> None:
    text = summary_text(profile(WITH_MOCK.replace('"pretend"', '"漢字"')), fold_all([started()]))
    head, row = line_of(text, "candidate"), line_of(text, "漢字")
    assert len(row[: row.index("mock")]) + 2 == head.index("engine")
