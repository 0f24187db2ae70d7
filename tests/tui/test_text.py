"""Foreign text, tones, figures, bars: the small pure parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from deploytui.record.series import Point, Series, append
from deploytui.tui.figures import clock, gibs, grouped, latency, number, size
from deploytui.tui.pieces import Piece, fitted, line, spread, text_of, width_of
from deploytui.tui.plain import cut, visible
from deploytui.tui.sparks import plot, sparkline
from deploytui.tui.wrapping import wrapped
from deploytui.units import GIB

ODD = ["ERROR [/tool] failed [core.py:712] [bold]", "a[b]c", "[/INST]"]


@pytest.mark.parametrize("text", ODD)
def test_brackets_of_others_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("a\tb", "a    b"),
        ("a\r\nb", "a␍␊b"),
        ("\x7f", "␡"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("Größe 模型", "Größe 模型"),
    ],
)
def test_what_a_terminal_would_obey_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_control_character_ever_reaches_the_terminal(text: str) -> None:
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in visible(text))


@given(st.text(max_size=60), st.integers(0, 40))
def test_cut_text_fits(text: str, width: int) -> None:
    assert cell_len(cut(visible(text), width)) <= width


@given(st.lists(st.text(max_size=12), max_size=6), st.integers(0, 60))
def test_a_fitted_line_fits(texts: list[str], width: int) -> None:
    assert width_of(fitted(line(*map(visible, texts)), width)) <= width


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(4, 60))
def test_wrapping_loses_no_word_and_fits(texts: list[str], width: int) -> None:
    whole = line(*(Piece(visible(text), "dim") for text in texts))
    rows = list(wrapped(whole, width))
    assert all(width_of(row) <= width for row in rows)
    assert "".join("".join(map(text_of, rows)).split()) == "".join(text_of(whole).split())


def test_wrapped_lines_stand_under_the_text_behind_the_sign() -> None:
    rows = [text_of(row) for row in wrapped(line(Piece("✔ ", "good"), "TTFT p95 182 ≤ 500 ms"), 14)]
    assert rows == ["✔ TTFT p95 182", "  ≤ 500 ms"]


def test_the_right_end_of_a_line_stays_whole() -> None:
    assert text_of(spread(line("a long name"), line("00:41"), 14)) == "a long…  00:41"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(None), "–"),
        (number(0.0), "0.00"),
        (number(48.2), "48.2"),
        (number(4812.0), "4\u2009812"),
        (grouped(1234567), "1\u2009234\u2009567"),
        (latency(0.182), "182 ms"),
        (latency(12.34), "12.3 s"),
        (latency(None), "–"),
        (size(70.1 * GIB), "70.1 GiB"),
        (size(225 << 20), "225 MiB"),
        (gibs(None), "–"),
        (clock(61), "01:01"),
        (clock(3661), "1:01:01"),
        (clock(None), "–"),
    ],
)
def test_figures_say_what_is_missing_and_never_0_for_it(shown: str, expected: str) -> None:
    assert shown == expected


def series(*values: float) -> Series:
    whole = Series()
    for place, value in enumerate(values):
        whole = append(whole, Point(place, value, value, value))
    return whole


def test_a_sparkline_shows_the_newest_and_keeps_peaks() -> None:
    assert sparkline(series(1, 0, 0, 8, 0, 0, 4), 2, per_bar=3) == "▇▄"
    assert sparkline(series(*range(9)), 3) == "▅▆▇"


def test_nothing_measured_draws_nothing() -> None:
    assert sparkline(Series(), 5) == ""
    assert plot(Series(), 5, 3) == []


def test_all_zero_draws_the_lowest_bars() -> None:
    assert sparkline(series(0, 0), 5) == "▁▁"


def test_a_plot_is_as_high_as_asked_and_as_wide_at_most() -> None:
    rows = plot(series(*range(100)), 20, 4)
    assert len(rows) == 4
    assert {len(row) for row in rows} == {20}
    assert rows[0][-1] == "█"
    assert rows[0][0] == " "
    assert rows[3][0] != " "
